//! gRPC reflection, by which clients such as grpcurl learn the services of an endpoint and their
//! messages.
//!
//! csi-proxy itself does not serve it: drivers have the messages, and a privileged process answers
//! no more than it must.

use server::{BoxedService, EndpointSpec};
use tonic_reflection::pb;
use tonic_reflection::server::Builder;

use crate::tonic_service;

/// Returns the reflection of an endpoint for drivers: its group-versions and their health.
pub(crate) fn services(spec: &EndpointSpec) -> Vec<BoxedService> {
    let rows = spec.group_versions().map(api::GroupVersion::descriptors);
    of(rows
        .chain([tonic_health::pb::FILE_DESCRIPTOR_SET])
        .collect())
    .into()
}

/// Returns the reflection of services and of itself, in its two versions: older clients know only
/// `v1alpha`. The first call decodes the descriptors.
///
/// # Panics
///
/// The first call panics unless each of `descriptors` is an encoded `FileDescriptorSet`.
pub(crate) fn of(descriptors: Vec<&'static [u8]>) -> [BoxedService; 2] {
    let v1alpha = descriptors.clone();
    [
        tonic_service::boxed(move || {
            builder(descriptors)
                .build_v1()
                .expect("the descriptors decode")
        }),
        tonic_service::boxed(move || {
            builder(v1alpha)
                .build_v1alpha()
                .expect("the descriptors decode")
        }),
    ]
}

/// Returns the builder of the reflection of services and of itself.
pub(crate) fn builder(descriptors: Vec<&'static [u8]>) -> Builder<'static> {
    let own = [
        pb::v1::FILE_DESCRIPTOR_SET,
        pb::v1alpha::FILE_DESCRIPTOR_SET,
    ];
    let builder = Builder::configure().include_reflection_service(false);
    descriptors
        .into_iter()
        .chain(own)
        .fold(builder, Builder::register_encoded_file_descriptor_set)
}
