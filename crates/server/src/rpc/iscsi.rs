//! The conversions of the messages of the iSCSI group.

use api::iscsi::v1alpha2;
use storage_ops::{
    AddTargetPortal, Authentication, ConnectTarget, DisconnectTarget, DiscoverTargetPortal,
    DiskNumber, GetTargetDisks, Iqn, ListTargetPortals, OperationError, OperationResult,
    RemoveTargetPortal, SecretText, SetMutualChapSecret, TargetPortal,
};

use crate::rpc::convert;

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

convert::requests! {
    |request, config|
    v1alpha2::AddTargetPortalRequest => AddTargetPortal {
        portal: portal(request.target_portal)?,
    }
    v1alpha2::DiscoverTargetPortalRequest => DiscoverTargetPortal {
        portal: portal(request.target_portal)?,
    }
    v1alpha2::RemoveTargetPortalRequest => RemoveTargetPortal {
        portal: portal(request.target_portal)?,
    }
    v1alpha2::ListTargetPortalsRequest => ListTargetPortals {}
    // The secret first, so that no error leaves it in memory.
    v1alpha2::ConnectTargetRequest => ConnectTarget {
        secret: SecretText::parse(request.chap_secret, "the CHAP secret")?,
        portal: portal(request.target_portal)?,
        iqn: Iqn::parse(&request.iqn)?,
        authentication: authentication(request.auth_type)?,
        username: SecretText::parse(request.chap_username, "the CHAP user name")?,
    }
    v1alpha2::DisconnectTargetRequest => DisconnectTarget {
        portal: portal(request.target_portal)?,
        iqn: Iqn::parse(&request.iqn)?,
    }
    v1alpha2::GetTargetDisksRequest => GetTargetDisks {
        portal: portal(request.target_portal)?,
        iqn: Iqn::parse(&request.iqn)?,
    }
    v1alpha2::SetMutualChapSecretRequest => SetMutualChapSecret {
        secret: SecretText::parse(request.mutual_chap_secret, "the CHAP secret")?,
    }
}

convert::responses! {
    |result|
    Vec<String> => v1alpha2::DiscoverTargetPortalResponse { iqns: result }
    Vec<TargetPortal> => v1alpha2::ListTargetPortalsResponse {
        target_portals: result
            .into_iter()
            .map(|TargetPortal { address, port }| v1alpha2::TargetPortal {
                target_address: address,
                target_port: port.into(),
            })
            .collect(),
    }
    Vec<DiskNumber> => v1alpha2::GetTargetDisksResponse {
        disk_ids: result.into_iter().map(|disk| disk.0.to_string()).collect(),
    }
}
