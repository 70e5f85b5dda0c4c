//! Kubelet's plugin registration: all that the sidecar node-driver-registrar does.

use tonic::{Request, Response, Status};

use crate::DRIVER_NAME;
use crate::proto::pluginregistration::{
    InfoRequest, PluginInfo, RegistrationStatus, RegistrationStatusResponse, registration_server,
};

/// Answers kubelet, which finds the socket in its folder plugins_registry.
pub(crate) struct Registration {
    /// The path of csi.sock as kubelet sees it.
    pub(crate) endpoint: String,
}

#[tonic::async_trait]
impl registration_server::Registration for Registration {
    async fn get_info(&self, _: Request<InfoRequest>) -> Result<Response<PluginInfo>, Status> {
        Ok(Response::new(PluginInfo {
            r#type: "CSIPlugin".into(),
            name: DRIVER_NAME.into(),
            endpoint: self.endpoint.clone(),
            supported_versions: vec!["1.0.0".into()],
        }))
    }

    async fn notify_registration_status(
        &self,
        request: Request<RegistrationStatus>,
    ) -> Result<Response<RegistrationStatusResponse>, Status> {
        let status = request.into_inner();
        if !status.plugin_registered {
            eprintln!("kubelet has not registered the plugin: {}", status.error);
            // The container is restarted and tries again.
            std::process::exit(1);
        }
        eprintln!("registered with kubelet");
        Ok(Response::new(RegistrationStatusResponse {}))
    }
}
