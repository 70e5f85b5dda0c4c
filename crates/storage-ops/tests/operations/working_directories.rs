//! Tests of opening paths below a working directory.

use crate::setup::{exists, has_code, mkdir, node_on, refused, says, traced};
use faults::{Fault, FaultAction, When};
use os::OsError;
use storage_ops::ErrorKind::{AlreadyExists, FailedPrecondition, NotFound, PermissionDenied};

#[test]
fn mkdir_fails_if_a_component_cannot_be_opened() {
    let sim = os_sim::node().dir(r"C:\var\lib\kubelet\pods\p").build();
    for (name, code, kind) in [
        ("pods", OsError::ACCESS_DENIED, PermissionDenied),
        ("p", OsError::SHARING_VIOLATION, FailedPrecondition),
        ("q", OsError::IO_DEVICE, FailedPrecondition),
    ] {
        let end = format!(r"\{name}");
        let blocked = Fault::each(
            move |call| call.primitive.starts_with("open") && call.object.ends_with(&end),
            When::Before,
            FaultAction::Fail(code),
        );
        let (node, trace) = traced(&sim, blocked);
        let error = refused(&node, &mkdir(r"\pods\p\q"), kind);
        assert_eq!(error.code(), Some(code), "{name}");
        let records = trace.take();
        assert!(
            records.len() > 1 && records.iter().all(|record| !record.call.mutates),
            "{name}: {records:?}"
        );
    }
}

#[test]
fn nothing_exists_or_is_created_below_a_file() {
    let sim = os_sim::node()
        .file(r"C:\var\lib\kubelet\pods\f", "data")
        .build();
    let (node, before) = (node_on(&sim), sim.snapshot());
    for below in [r"\pods\f\x", r"\pods\f\x\y"] {
        assert!(!node.run(&exists(below)).unwrap());
        let error = refused(&node, &mkdir(below), NotFound);
        has_code(&error, OsError::PATH_NOT_FOUND);
        says(&error, "f is not a directory");
    }
    refused(&node, &mkdir(r"\pods\f"), AlreadyExists);
    assert_eq!(sim.snapshot(), before);
}
