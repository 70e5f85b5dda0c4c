//! Checks that ignore what they should look at.

use facts::{DiskKind, Fact, TestNode, Verdict};
use libtest_mimic::Failed;
use os::abi::FileAttributeTagInfo;
use os::{Access, FileInfo, Options};
use zerocopy::{FromZeros, IntoBytes};

type Check = fn(&dyn TestNode) -> Verdict;

/// Checks, each with what is reported about it.
const CHECKS: &[(Check, Option<&str>)] = &[
    (makes_no_call, Some("the check passes whatever the node answers to no call")),
    (ignores_a_code, Some("the check passes if call 0 (open")),
    (ignores_every_success, Some("the check passes whatever the node answers to call 0 (open")),
    (ignores_an_answer, Some("the check passes whatever the node answers to call 0 (open")),
    (expects_a_code, None),
    (expects_an_answer, None),
    (expects_success, None),
];

fn makes_no_call(node: &dyn TestNode) -> Verdict {
    node.disk(DiskKind::Raw).map(|_| ())
}

fn ignores_a_code(node: &dyn TestNode) -> Verdict {
    let opened = node.directory()?.existing("missing", Access::READ_DATA, Options::empty());
    assert!(opened.is_err());
    Ok(())
}

fn ignores_every_success(node: &dyn TestNode) -> Verdict {
    let directory = node.directory()?;
    let _ = directory.existing("", Access::READ_DATA, Options::DIRECTORY);
    expects_a_code(node)
}

fn expects_a_code(node: &dyn TestNode) -> Verdict {
    let opened = node.directory()?.existing("missing", Access::READ_DATA, Options::empty());
    assert_eq!(opened.err(), Some(os::OsError::FILE_NOT_FOUND));
    Ok(())
}

fn ignores_an_answer(node: &dyn TestNode) -> Verdict {
    let mut information = FileAttributeTagInfo::new_zeroed();
    let handle = node.directory()?.handle();
    handle.query(FileInfo::AttributeTag, information.as_mut_bytes()).expect("the attributes");
    Ok(())
}

fn expects_an_answer(node: &dyn TestNode) -> Verdict {
    let mut information = FileAttributeTagInfo::new_zeroed();
    let handle = node.directory()?.handle();
    handle.query(FileInfo::AttributeTag, information.as_mut_bytes()).expect("the attributes");
    assert_ne!(information.attributes & os::abi::FILE_ATTRIBUTE_DIRECTORY, 0);
    Ok(())
}

fn expects_success(node: &dyn TestNode) -> Verdict {
    node.directory()?.handle();
    Ok(())
}

pub(crate) fn are_reported() -> Result<(), Failed> {
    for (index, (check, expected)) in CHECKS.iter().enumerate() {
        let report = crate::test(&Fact::published("BAD", "A sentence.", "WF", *check)).err();
        let as_expected = match (&report, expected) {
            (Some(report), Some(expected)) => report.starts_with(expected),
            (report, expected) => report.is_none() && expected.is_none(),
        };
        if !as_expected {
            return Err(format!("check {index}: {report:?} instead of {expected:?}").into());
        }
    }
    Ok(())
}
