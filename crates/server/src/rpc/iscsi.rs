//! The conversions of the messages of the iSCSI group.

use std::num::TryFromIntError;

use api::iscsi::v1alpha2;
use storage_ops::{
    AddTargetPortal, Authentication, Config, ConnectTarget, DisconnectTarget, DiscoverTargetPortal,
    DiskNumber, GetTargetDisks, Iqn, ListTargetPortals, OperationError, OperationResult,
    RemoveTargetPortal, SecretText, SetMutualChapSecret, TargetPortal,
};

use crate::rpc::convert::{IntoOperation, IntoResponse};

fn portal(message: Option<v1alpha2::TargetPortal>) -> OperationResult<TargetPortal> {
    let message = message.ok_or_else(|| OperationError::invalid("target_portal is missing"))?;
    TargetPortal::parse(&message.target_address, message.target_port)
}

fn authentication(number: i32) -> OperationResult<Authentication> {
    match v1alpha2::AuthenticationType::try_from(number) {
        Ok(v1alpha2::AuthenticationType::None) => Ok(Authentication::None),
        Ok(v1alpha2::AuthenticationType::OneWayChap) => Ok(Authentication::OneWayChap),
        Ok(v1alpha2::AuthenticationType::MutualChap) => Ok(Authentication::MutualChap),
        Err(_) => Err(OperationError::invalid(format!(
            "auth_type {number} is unknown; use NONE (0), ONE_WAY_CHAP (1) or MUTUAL_CHAP (2)"
        ))),
    }
}

impl IntoOperation for v1alpha2::AddTargetPortalRequest {
    type Operation = AddTargetPortal;

    fn operation(self, _: &Config) -> OperationResult<AddTargetPortal> {
        Ok(AddTargetPortal {
            portal: portal(self.target_portal)?,
        })
    }
}

impl IntoOperation for v1alpha2::DiscoverTargetPortalRequest {
    type Operation = DiscoverTargetPortal;

    fn operation(self, _: &Config) -> OperationResult<DiscoverTargetPortal> {
        Ok(DiscoverTargetPortal {
            portal: portal(self.target_portal)?,
        })
    }
}

impl IntoResponse<v1alpha2::DiscoverTargetPortalResponse> for Vec<String> {
    fn into_response(self) -> Result<v1alpha2::DiscoverTargetPortalResponse, TryFromIntError> {
        Ok(v1alpha2::DiscoverTargetPortalResponse { iqns: self })
    }
}

impl IntoOperation for v1alpha2::RemoveTargetPortalRequest {
    type Operation = RemoveTargetPortal;

    fn operation(self, _: &Config) -> OperationResult<RemoveTargetPortal> {
        Ok(RemoveTargetPortal {
            portal: portal(self.target_portal)?,
        })
    }
}

impl IntoOperation for v1alpha2::ListTargetPortalsRequest {
    type Operation = ListTargetPortals;

    fn operation(self, _: &Config) -> OperationResult<ListTargetPortals> {
        Ok(ListTargetPortals)
    }
}

impl IntoResponse<v1alpha2::ListTargetPortalsResponse> for Vec<TargetPortal> {
    fn into_response(self) -> Result<v1alpha2::ListTargetPortalsResponse, TryFromIntError> {
        let message = |TargetPortal { address, port }| v1alpha2::TargetPortal {
            target_address: address,
            target_port: u32::from(port),
        };
        Ok(v1alpha2::ListTargetPortalsResponse {
            target_portals: self.into_iter().map(message).collect(),
        })
    }
}

impl IntoOperation for v1alpha2::ConnectTargetRequest {
    type Operation = ConnectTarget;

    fn operation(self, _: &Config) -> OperationResult<ConnectTarget> {
        let secret = SecretText::parse(self.chap_secret, "the CHAP secret")?;
        Ok(ConnectTarget {
            portal: portal(self.target_portal)?,
            iqn: Iqn::parse(&self.iqn)?,
            authentication: authentication(self.auth_type)?,
            username: SecretText::parse(self.chap_username, "the CHAP user name")?,
            secret,
        })
    }
}

impl IntoOperation for v1alpha2::DisconnectTargetRequest {
    type Operation = DisconnectTarget;

    fn operation(self, _: &Config) -> OperationResult<DisconnectTarget> {
        Ok(DisconnectTarget {
            portal: portal(self.target_portal)?,
            iqn: Iqn::parse(&self.iqn)?,
        })
    }
}

impl IntoOperation for v1alpha2::GetTargetDisksRequest {
    type Operation = GetTargetDisks;

    fn operation(self, _: &Config) -> OperationResult<GetTargetDisks> {
        Ok(GetTargetDisks {
            portal: portal(self.target_portal)?,
            iqn: Iqn::parse(&self.iqn)?,
        })
    }
}

impl IntoResponse<v1alpha2::GetTargetDisksResponse> for Vec<DiskNumber> {
    fn into_response(self) -> Result<v1alpha2::GetTargetDisksResponse, TryFromIntError> {
        Ok(v1alpha2::GetTargetDisksResponse {
            disk_ids: self.into_iter().map(|disk| disk.0.to_string()).collect(),
        })
    }
}

impl IntoOperation for v1alpha2::SetMutualChapSecretRequest {
    type Operation = SetMutualChapSecret;

    fn operation(self, _: &Config) -> OperationResult<SetMutualChapSecret> {
        Ok(SetMutualChapSecret {
            secret: SecretText::parse(self.mutual_chap_secret, "the CHAP secret")?,
        })
    }
}
