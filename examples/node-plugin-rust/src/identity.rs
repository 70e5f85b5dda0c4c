//! The identity service.

use csi_proxy_client::{Client, ErrorKind};
use tonic::{Request, Response, Status};

use crate::DRIVER_NAME;
use crate::proto::csi::v1::plugin_capability::{self, Service, service};
use crate::proto::csi::v1::{
    GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse, GetPluginInfoRequest,
    GetPluginInfoResponse, PluginCapability, ProbeRequest, ProbeResponse, identity_server,
};

pub(crate) struct Identity {
    pub(crate) client: Client,
}

#[tonic::async_trait]
impl identity_server::Identity for Identity {
    async fn get_plugin_info(
        &self,
        _: Request<GetPluginInfoRequest>,
    ) -> Result<Response<GetPluginInfoResponse>, Status> {
        let (name, vendor_version) = (DRIVER_NAME.into(), env!("CARGO_PKG_VERSION").into());
        Ok(Response::new(GetPluginInfoResponse {
            name,
            vendor_version,
            ..Default::default()
        }))
    }

    /// Describes the driver as a whole, whose controller is a program of its own.
    async fn get_plugin_capabilities(
        &self,
        _: Request<GetPluginCapabilitiesRequest>,
    ) -> Result<Response<GetPluginCapabilitiesResponse>, Status> {
        let controller = Service {
            r#type: service::Type::ControllerService.into(),
        };
        let capability = PluginCapability {
            r#type: Some(plugin_capability::Type::Service(controller)),
        };
        Ok(Response::new(GetPluginCapabilitiesResponse {
            capabilities: vec![capability],
        }))
    }

    /// Returns whether csi-proxy answers. The plugin becomes ready when csi-proxy runs, without a
    /// restart. Any answer will do: kubelet's folder may be another one, whose question csi-proxy
    /// refuses.
    async fn probe(&self, _: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Status> {
        let answer = self
            .client
            .filesystem()
            .path_exists(r"C:\var\lib\kubelet")
            .await;
        let kind = answer.err().map(|error| error.kind());
        let is_missing = [ErrorKind::Unavailable, ErrorKind::DeadlineExceeded].map(Some);
        Ok(Response::new(ProbeResponse {
            ready: Some(!is_missing.contains(&kind)),
        }))
    }
}
