//! The conversions of the messages of the system group.

use api::system::v1alpha1;
use storage_ops::{
    GetBiosSerialNumber, GetService, ServiceInfo, ServiceName, StartService, StopService,
};

use crate::rpc::convert;

convert::requests! {
    |request, config|
    v1alpha1::GetBiosSerialNumberRequest => GetBiosSerialNumber {}
    v1alpha1::StartServiceRequest => StartService {
        name: ServiceName::parse(&request.name)?,
    }
    v1alpha1::StopServiceRequest => StopService {
        name: ServiceName::parse(&request.name)?,
        force: request.force,
    }
    v1alpha1::GetServiceRequest => GetService {
        name: ServiceName::parse(&request.name)?,
    }
}

convert::responses! {
    |result|
    String => v1alpha1::GetBiosSerialNumberResponse {
        serial_number: result,
    }
    // The enumerations on the wire have the numbers that Windows uses.
    ServiceInfo => v1alpha1::GetServiceResponse {
        display_name: result.display_name,
        start_type: result.start_type.try_into()?,
        status: result.state.try_into()?,
    }
}
