//! The iSCSI group.

use api::Request as _;
use api::iscsi::v1alpha2;

use super::Client;
use super::disk::DiskNumber;
use crate::credentials::Credentials;
use crate::error::{Error, ErrorKind};

/// The iSCSI initiator of the node: target portals, and the sessions with targets behind them.
#[derive(Clone, Debug)]
pub struct Iscsi(pub(crate) Client);

/// Where an iSCSI target listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TargetPortal {
    /// An IP address or a DNS name.
    pub address: String,
    /// The TCP port.
    pub port: u16,
}

/// How the two sides of an iSCSI session authenticate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Authentication<'a> {
    /// No authentication.
    None,
    /// The initiator authenticates, with CHAP.
    OneWayChap(Credentials<'a>),
    /// The initiator authenticates with these credentials, and the target with the secret of
    /// [`set_mutual_chap_secret`](Iscsi::set_mutual_chap_secret).
    MutualChap(Credentials<'a>),
}

impl TargetPortal {
    /// The TCP port of iSCSI.
    pub const DEFAULT_PORT: u16 = 3260;

    /// Creates the portal at this address and the default port.
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            port: Self::DEFAULT_PORT,
        }
    }

    fn to_message(&self) -> v1alpha2::TargetPortal {
        v1alpha2::TargetPortal {
            target_address: self.address.clone(),
            target_port: self.port.into(),
        }
    }
}

impl Iscsi {
    /// Adds a portal to the portals that the initiator knows. Succeeds if the initiator already
    /// knows the portal.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    pub async fn add_target_portal(&self, portal: &TargetPortal) -> Result<(), Error> {
        let target_portal = Some(portal.to_message());
        self.0
            .change(v1alpha2::AddTargetPortalRequest { target_portal })
            .await
            .map(drop)
    }

    /// Lists the qualified names of the targets that the portal offers.
    ///
    /// A read: [repeated](crate#retries) while the daemon is unavailable.
    pub async fn discover_target_portal(
        &self,
        portal: &TargetPortal,
    ) -> Result<Vec<String>, Error> {
        let target_portal = Some(portal.to_message());
        let response = self
            .0
            .read(v1alpha2::DiscoverTargetPortalRequest { target_portal })
            .await?;
        Ok(response.iqns)
    }

    /// Makes the initiator forget the portal.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    pub async fn remove_target_portal(&self, portal: &TargetPortal) -> Result<(), Error> {
        let target_portal = Some(portal.to_message());
        self.0
            .change(v1alpha2::RemoveTargetPortalRequest { target_portal })
            .await
            .map(drop)
    }

    /// Lists the portals that the initiator knows.
    ///
    /// A read: [repeated](crate#retries) while the daemon is unavailable.
    pub async fn list_target_portals(&self) -> Result<Vec<TargetPortal>, Error> {
        let portals = self
            .0
            .read(v1alpha2::ListTargetPortalsRequest {})
            .await?
            .target_portals;
        let portal = |v1alpha2::TargetPortal {
                          target_address: address,
                          target_port,
                      }| {
            let port = target_port.try_into().map_err(|_| {
                let message = format!("the node answered port {target_port}");
                Error::new(
                    ErrorKind::Internal,
                    v1alpha2::ListTargetPortalsRequest::RPC,
                    message,
                )
            })?;
            Ok(TargetPortal { address, port })
        };
        portals.into_iter().map(portal).collect()
    }

    /// Opens a session with the target through the portal. Succeeds if the target is already
    /// connected.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    pub async fn connect_target(
        &self,
        portal: &TargetPortal,
        iqn: &str,
        authentication: Authentication<'_>,
    ) -> Result<(), Error> {
        let (auth_type, credentials) = match authentication {
            Authentication::None => (
                v1alpha2::AuthenticationType::None,
                Credentials {
                    username: "",
                    password: "",
                },
            ),
            Authentication::OneWayChap(credentials) => {
                (v1alpha2::AuthenticationType::OneWayChap, credentials)
            }
            Authentication::MutualChap(credentials) => {
                (v1alpha2::AuthenticationType::MutualChap, credentials)
            }
        };
        let request = v1alpha2::ConnectTargetRequest {
            target_portal: Some(portal.to_message()),
            iqn: iqn.to_owned(),
            auth_type: auth_type.into(),
            chap_username: credentials.username.to_owned(),
            chap_secret: credentials.password.to_owned(),
        };
        self.0.change(request).await.map(drop)
    }

    /// Ends the session with the target. Succeeds if the target is not connected, and fails if
    /// another session with a target of this name remains.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    pub async fn disconnect_target(&self, portal: &TargetPortal, iqn: &str) -> Result<(), Error> {
        let (target_portal, iqn) = (Some(portal.to_message()), iqn.to_owned());
        self.0
            .change(v1alpha2::DisconnectTargetRequest { target_portal, iqn })
            .await
            .map(drop)
    }

    /// Lists the numbers of the disks of the target. The list is empty if the target is not
    /// connected.
    ///
    /// A read: [repeated](crate#retries) while the daemon is unavailable.
    pub async fn get_target_disks(
        &self,
        portal: &TargetPortal,
        iqn: &str,
    ) -> Result<Vec<DiskNumber>, Error> {
        let (target_portal, iqn) = (Some(portal.to_message()), iqn.to_owned());
        let disks = self
            .0
            .read(v1alpha2::GetTargetDisksRequest { target_portal, iqn })
            .await?
            .disk_ids;
        let number = |text: String| {
            text.parse().map(DiskNumber).map_err(|_| {
                let message = format!("the node answered disk number '{text}'");
                Error::new(
                    ErrorKind::Internal,
                    v1alpha2::GetTargetDisksRequest::RPC,
                    message,
                )
            })
        };
        disks.into_iter().map(number).collect()
    }

    /// Sets the secret with which targets authenticate in mutual CHAP. The initiator has one secret
    /// for all targets.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    ///
    /// # Errors
    ///
    /// [`Unimplemented`](crate::ErrorKind::Unimplemented) if the node does not serve iscsi
    /// v1alpha2.
    pub async fn set_mutual_chap_secret(&self, secret: &str) -> Result<(), Error> {
        let mutual_chap_secret = secret.to_owned();
        self.0
            .change(v1alpha2::SetMutualChapSecretRequest { mutual_chap_secret })
            .await
            .map(drop)
    }
}
