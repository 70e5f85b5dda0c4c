//! The client, and where it looks for csi-proxy.

use clap::ArgMatches;
use command_line::args;
use command_line::endpoints::{Endpoints, given_folder};
use csi_proxy_client::{Builder, Client};

pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) endpoints: Endpoints,
}

impl Session {
    pub(crate) fn new(matches: &ArgMatches) -> Self {
        let builder = Client::builder().deadline(args::timeout(matches));
        let client = given_folder(matches)
            .into_iter()
            .fold(builder, Builder::socket_folder)
            .build();
        Self {
            client,
            endpoints: Endpoints::new(matches),
        }
    }
}
