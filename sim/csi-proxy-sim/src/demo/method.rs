//! An RPC of a group-version, called with JSON.

use std::fmt;
use std::str::FromStr;

use api::{GROUP_VERSIONS, GroupVersion};
use csi_proxy_client::{Client, EncodedRpc, Error};
use dynamic_client::Rpc;
use prost::Message as _;
use prost_reflect::{DynamicMessage, SerializeOptions};
use serde_json::Value;

/// An RPC of a group-version. Parses from `disk/v1/ListDiskIDs`.
#[derive(Clone, Debug)]
pub(super) struct Method {
    version: &'static GroupVersion,
    name: &'static str,
    rpc: Rpc,
}

impl Method {
    /// Returns the name of the RPC, without its group-version.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Builds a request. An unknown field or a value of the wrong type is an error.
    pub(super) fn request(&self, json: &Value) -> Result<DynamicMessage, String> {
        self.rpc
            .try_request(json)
            .map_err(|error| format!("{json} is not a request of {self}: {error}"))
    }

    /// Calls the RPC. The response has all fields, including those with default values.
    pub(super) async fn call(
        &self,
        client: &Client,
        request: &DynamicMessage,
    ) -> Result<Value, Error> {
        let (group, versions) = (self.version.group.name(), &[self.version.version]);
        let rpc = EncodedRpc {
            group,
            versions,
            name: self.name,
        };
        let response = client.call_encoded(rpc, request.encode_to_vec()).await?;
        let json = self.rpc.response_json(&response, SerializeOptions::new());
        Ok(json.unwrap_or_else(|error| panic!("{self}: {error}")))
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let method = |version: &'static GroupVersion| {
            let name =
                text.strip_prefix(&format!("{}/{}/", version.group.name(), version.version))?;
            let (name, rpc) = dynamic_client::rpcs(version).remove_entry(name)?;
            Some(Self { version, name, rpc })
        };
        GROUP_VERSIONS
            .iter()
            .find_map(method)
            .ok_or_else(|| format!("unknown RPC {text}"))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{} {}",
            self.version.group.name(),
            self.version.version,
            self.name
        )
    }
}
