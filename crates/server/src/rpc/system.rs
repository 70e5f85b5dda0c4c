//! The conversions of the messages of the system group.

use std::num::TryFromIntError;

use api::system::v1alpha1;
use storage_ops::{
    Config, GetBiosSerialNumber, GetService, OperationResult, ServiceInfo, ServiceName,
    StartService, StopService,
};

use crate::rpc::convert::{IntoOperation, IntoResponse};

impl IntoOperation for v1alpha1::GetBiosSerialNumberRequest {
    type Operation = GetBiosSerialNumber;

    fn operation(self, _: &Config) -> OperationResult<GetBiosSerialNumber> {
        Ok(GetBiosSerialNumber)
    }
}

impl IntoResponse<v1alpha1::GetBiosSerialNumberResponse> for String {
    fn into_response(self) -> Result<v1alpha1::GetBiosSerialNumberResponse, TryFromIntError> {
        Ok(v1alpha1::GetBiosSerialNumberResponse {
            serial_number: self,
        })
    }
}

impl IntoOperation for v1alpha1::StartServiceRequest {
    type Operation = StartService;

    fn operation(self, _: &Config) -> OperationResult<StartService> {
        Ok(StartService {
            name: ServiceName::parse(&self.name)?,
        })
    }
}

impl IntoOperation for v1alpha1::StopServiceRequest {
    type Operation = StopService;

    fn operation(self, _: &Config) -> OperationResult<StopService> {
        Ok(StopService {
            name: ServiceName::parse(&self.name)?,
            force: self.force,
        })
    }
}

impl IntoOperation for v1alpha1::GetServiceRequest {
    type Operation = GetService;

    fn operation(self, _: &Config) -> OperationResult<GetService> {
        Ok(GetService {
            name: ServiceName::parse(&self.name)?,
        })
    }
}

impl IntoResponse<v1alpha1::GetServiceResponse> for ServiceInfo {
    fn into_response(self) -> Result<v1alpha1::GetServiceResponse, TryFromIntError> {
        let Self {
            display_name,
            start_type,
            state,
            ..
        } = self;
        // The enumerations on the wire have the numbers that Windows uses.
        let (start_type, status) = (start_type.try_into()?, state.try_into()?);
        Ok(v1alpha1::GetServiceResponse {
            display_name,
            start_type,
            status,
        })
    }
}
