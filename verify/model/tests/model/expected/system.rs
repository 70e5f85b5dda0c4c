//! The calls of the system group.

use super::{Expected, NOT_FOUND, PRECONDITION};
use crate::messages::Payload;
use crate::reference_model::Model;

impl Model {
    pub(super) fn get_service(&self, name: &str) -> Expected {
        let Some(service) = self.services.get(name) else { return Expected::fails(NOT_FOUND) };
        Expected::Returns(Payload::Service {
            name: name.to_owned(),
            start: if service.disabled { "DISABLED" } else { "MANUAL" }.to_owned(),
            status: if service.running { "RUNNING" } else { "STOPPED" }.to_owned(),
        })
    }

    pub(super) fn start_service(&mut self, name: &str) -> Expected {
        let Some(service) = self.services.get(name) else { return Expected::fails(NOT_FOUND) };
        if service.disabled {
            return Expected::fails(PRECONDITION);
        }
        // Windows starts the dependencies of a service first.
        let mut next = self.services.get_key_value(name).map(|(name, _)| *name);
        while let Some(service) = next.and_then(|name| self.services.get_mut(name)) {
            service.running = true;
            next = service.needs;
        }
        Expected::nothing()
    }

    pub(super) fn stop_service(&mut self, name: &str, force: bool) -> Expected {
        if !self.services.contains_key(name) {
            return Expected::fails(NOT_FOUND);
        }
        let dependents = self.dependents(name);
        let running = |name: &&str| self.services[name].running;
        if !force && running(&name) && dependents.iter().any(running) {
            return Expected::fails(PRECONDITION);
        }
        if running(&name) {
            for name in dependents.into_iter().chain([name]) {
                self.services.get_mut(name).expect("the service exists").running = false;
            }
        }
        Expected::nothing()
    }

    /// Returns the services that depend on a service, directly or indirectly.
    fn dependents(&self, of: &str) -> Vec<&'static str> {
        let direct = self.services.iter().filter(|(_, service)| service.needs == Some(of)).map(|(name, _)| *name);
        direct.flat_map(|name| [self.dependents(name), vec![name]].concat()).collect()
    }
}
