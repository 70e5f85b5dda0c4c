//! gRPC reflection, by which clients such as grpcurl learn the services of an endpoint and their messages.
//!
//! csi-proxy itself does not serve it: drivers have the messages, and a privileged process answers no more than it must.

use server::{BoxedService, EndpointSpec};
use tonic_reflection::pb;
use tonic_reflection::server::Builder;

/// Returns the reflection of an endpoint for drivers: its group-versions and their health.
pub(crate) fn services(spec: &EndpointSpec) -> Vec<BoxedService> {
    let rows = spec.group_versions().map(api::GroupVersion::descriptors);
    let descriptors: Vec<_> = rows.chain([tonic_health::pb::FILE_DESCRIPTOR_SET]).collect();
    of(&descriptors).into()
}

/// Returns the reflection of services and of itself, in its two versions: older clients know only `v1alpha`.
///
/// # Panics
///
/// Panics unless each of `descriptors` is an encoded `FileDescriptorSet`.
pub(crate) fn of(descriptors: &[&[u8]]) -> [BoxedService; 2] {
    let builder = || {
        let own = [pb::v1::FILE_DESCRIPTOR_SET, pb::v1alpha::FILE_DESCRIPTOR_SET];
        let builder = Builder::configure().include_reflection_service(false);
        let all = descriptors.iter().copied().chain(own);
        all.fold(builder, Builder::register_encoded_file_descriptor_set)
    };
    [
        BoxedService::new(builder().build_v1().expect("the descriptors decode")),
        BoxedService::new(builder().build_v1alpha().expect("the descriptors decode")),
    ]
}
