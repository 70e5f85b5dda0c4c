//! The sequences: which calls a CSI driver makes for a volume, in which order, and what it expects
//! of each.
//!
//! Each file in `drivers/` is one driver; verify/go-client reads the same files. A step is one of
//!
//! - `{"call": "volume/v1/MountVolume", "request": {...}}`: an RPC. `want` is what the response
//!   must contain, `keep` stores values of the response in variables, `find` stores the key of the
//!   one matching map entry. `fails` is text that the error must contain, and `code` the code that
//!   it must have.
//! - `{"as": "kubelet", "do": "MkdirAll", ...}`: an action on the node without csi-proxy. `fails` is
//!   text that its error must contain.
//! - `{"control": "Simulation/UnplugDisk", "request": {...}}`: an RPC of the control API, in
//!   `csi-proxy-sim replay`.
//! - `{"check": "staged", ...}`: a state of the node that must hold.
//! - `{"part": "unstage"}`: the steps of that name in `parts`.
//!
//! `$name` in any text is replaced by a variable. Any step may have a `note`. An unknown key is an
//! error.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::expectation::Find;
use super::method::Method;

/// The files in the order in which they run. azurefile keeps its SMB mapping, which the credentials
/// of smb and trident would not match, so these run first.
const FILES: [(&str, &str); 12] = [
    (
        "01-azuredisk",
        include_str!("../../drivers/01-azuredisk.json"),
    ),
    (
        "02-azuredisk-v1beta",
        include_str!("../../drivers/02-azuredisk-v1beta.json"),
    ),
    ("03-smb", include_str!("../../drivers/03-smb.json")),
    ("04-trident", include_str!("../../drivers/04-trident.json")),
    (
        "05-azurefile",
        include_str!("../../drivers/05-azurefile.json"),
    ),
    (
        "06-azurefile-v1beta",
        include_str!("../../drivers/06-azurefile-v1beta.json"),
    ),
    ("07-gce-pd", include_str!("../../drivers/07-gce-pd.json")),
    (
        "08-gce-pd-v1beta",
        include_str!("../../drivers/08-gce-pd-v1beta.json"),
    ),
    ("09-aws-ebs", include_str!("../../drivers/09-aws-ebs.json")),
    ("10-vsphere", include_str!("../../drivers/10-vsphere.json")),
    (
        "11-longhorn-fork",
        include_str!("../../drivers/11-longhorn-fork.json"),
    ),
    (
        "12-local-static-provisioner",
        include_str!("../../drivers/12-local-static-provisioner.json"),
    ),
];

/// The calls of one driver for one volume.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequence {
    /// The driver.
    pub driver: String,
    /// What is particular about the driver.
    pub about: String,
    /// What `verify/cases` adds; tests/cases.rs reads the value.
    #[serde(default, rename = "case")]
    _case: IgnoredAny,
    #[serde(default)]
    pub(super) variables: Variables,
    #[serde(default)]
    parts: BTreeMap<String, Vec<Value>>,
    pub(super) phases: Vec<Phase>,
}

/// One call of kubelet to the driver, with the parts inserted. Steps are JSON until their variables
/// are known.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Phase {
    pub(super) name: String,
    pub(super) steps: Vec<Value>,
}

impl Sequence {
    /// Returns all sequences, in the order in which they run on one node.
    pub fn all() -> Result<Vec<Self>, String> {
        FILES
            .iter()
            .map(|(name, text)| {
                text.parse()
                    .map_err(|error| format!("{name}.json: {error}"))
            })
            .collect()
    }
}

impl FromStr for Sequence {
    type Err = String;

    /// Parses a sequence and checks each step: its keys, its RPC, the fields of its request and its
    /// variables.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut sequence: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut known = sequence.variables.clone();
        for phase in &mut sequence.phases {
            phase.steps = insert_parts(&phase.steps, &sequence.parts)?;
            for step in &phase.steps {
                let context = |error| format!("{}, step {step}: {error}", phase.name);
                let step = Step::parse(known.fill(step).map_err(context)?).map_err(context)?;
                // Any value: only whether the name is known matters here.
                step.kept()
                    .into_iter()
                    .for_each(|name| known.set(name, "0".to_owned()));
            }
        }
        Ok(sequence)
    }
}

fn insert_parts(
    steps: &[Value],
    parts: &BTreeMap<String, Vec<Value>>,
) -> Result<Vec<Value>, String> {
    let mut inserted = Vec::new();
    for step in steps {
        match step
            .as_object()
            .filter(|step| step.len() == 1)
            .and_then(|step| step.get("part"))
        {
            None => inserted.push(step.clone()),
            Some(name) => {
                let part = name.as_str().and_then(|name| parts.get(name));
                inserted.extend_from_slice(part.ok_or_else(|| format!("unknown part {name}"))?);
            }
        }
    }
    Ok(inserted)
}

/// The variables of a running sequence.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Gives each variable whose value is empty, such as a password that was not recorded, the value
    /// that `lookup` returns for its name.
    pub(super) fn complete(
        &mut self,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<(), String> {
        for (name, value) in self.0.iter_mut().filter(|(_, value)| value.is_empty()) {
            let variable = format!("CSI_PROXY_SIM_{}", name.to_ascii_uppercase());
            *value = lookup(&variable).ok_or_else(|| {
                format!("the variable {name} has no value, and {variable} is not set")
            })?;
        }
        Ok(())
    }

    pub(super) fn set(&mut self, name: &str, value: String) {
        self.0.insert(name.to_owned(), value);
    }

    /// Replaces `$name` in all text.
    pub(super) fn fill(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => Value::String(self.fill_text(text)?),
            Value::Array(items) => Value::Array(
                items
                    .iter()
                    .map(|item| self.fill(item))
                    .collect::<Result<_, _>>()?,
            ),
            Value::Object(fields) => {
                let filled =
                    |(name, value): (&String, &Value)| Ok((name.clone(), self.fill(value)?));
                Value::Object(fields.iter().map(filled).collect::<Result<_, String>>()?)
            }
            other => other.clone(),
        })
    }

    fn fill_text(&self, text: &str) -> Result<String, String> {
        let mut parts = text.split('$');
        let mut filled = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part
                .find(|c: char| !c.is_ascii_alphabetic())
                .unwrap_or(part.len());
            let value = self
                .0
                .get(&part[..end])
                .ok_or_else(|| format!("unknown variable ${}", &part[..end]))?;
            filled += value;
            filled += &part[end..];
        }
        Ok(filled)
    }
}

/// A step with its variables replaced.
#[derive(Debug)]
pub(super) enum Step {
    Call(Box<Call>),
    Control(ControlCall),
    /// Who acts, what is done, and text of the error with which it must fail.
    Action(String, Operation, Option<String>),
    Check(Check),
}

/// A value that a file gives as text, as variables do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<T>(pub(super) T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map(Self)
            .map_err(|error| serde::de::Error::custom(format!("'{text}': {error}")))
    }
}

/// An RPC, and what the driver expects of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    #[serde(rename = "call")]
    pub(super) method: Text<Method>,
    #[serde(default)]
    pub(super) request: Map<String, Value>,
    pub(super) want: Option<Value>,
    #[serde(default)]
    pub(super) keep: BTreeMap<String, String>,
    pub(super) find: Option<Find>,
    pub(super) fails: Option<String>,
    /// The code of the error, as tonic writes it.
    pub(super) code: Option<String>,
}

/// An RPC of the control API, as a test has called it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ControlCall {
    pub(super) control: String,
    #[serde(default)]
    pub(super) request: Map<String, Value>,
}

/// Who acts on the node without csi-proxy: kubelet, which creates directories before it calls the
/// driver; the driver's own container, which has kubelet's directory mounted; the pod that uses the
/// volume; the cloud that provides the disks.
const ACTORS: [&str; 4] = ["kubelet", "container", "pod", "cloud"];

/// An operation by its name in Go or in Windows, and what its result must be. `GrowDisk` grows a
/// disk by half of its size, and keeps the new size in a variable.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", deny_unknown_fields)]
pub(super) enum Operation {
    MkdirAll {
        path: String,
    },
    WriteFile {
        path: String,
        data: String,
    },
    ReadFile {
        path: String,
        want: String,
    },
    ReadDir {
        path: String,
        contains: String,
    },
    Readlink {
        path: String,
        want: String,
    },
    Lstat {
        path: String,
        want: FileKind,
    },
    GetDiskFreeSpaceEx {
        path: String,
    },
    GrowDisk {
        disk: Text<u32>,
        keep: Option<String>,
    },
}

/// What `Lstat` distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum FileKind {
    Directory,
    Link,
}

/// A state of the node:
///
/// - `staged`: the disk's volume is mounted at the path and nowhere else, and `formatted-once`.
/// - `unstaged`: the disk's volume is mounted nowhere, and nothing exists at the path.
/// - `formatted-once`: the disk's volume has NTFS and was formatted once, or not at all if it had a
///   file system before the sequence.
/// - `fills-disk`: the file system fills the disk, except for what the partition table needs.
/// - `size-at-least`: a size that an RPC returned is at least the requested one.
/// - `size-in-gib`: a size that an RPC returned is the requested one when it is rounded up to GiB.
/// - `below-size-in-gib`: it is less than the requested one, so that the driver gives up the
///   request.
/// - `link`: the link at the path has this target, as Go's `os.Readlink` returns it.
/// - `absent`: nothing exists at the path.
/// - `mappings`: these and no other shares are mapped.
/// - `mappings-encrypted`: every SMB mapping requires encryption.
#[derive(Debug, Deserialize)]
#[serde(tag = "check", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Check {
    Staged {
        disk: Text<u32>,
        path: String,
    },
    Unstaged {
        disk: Text<u32>,
        path: String,
    },
    FormattedOnce {
        disk: Text<u32>,
    },
    Online {
        disk: Text<u32>,
    },
    Offline {
        disk: Text<u32>,
    },
    NoDisk {
        disk: Text<u32>,
    },
    FillsDisk {
        disk: Text<u32>,
    },
    SizeAtLeast {
        bytes: Text<u64>,
        requested: Text<u64>,
    },
    SizeInGib {
        bytes: Text<u64>,
        requested: Text<u64>,
    },
    BelowSizeInGib {
        bytes: Text<u64>,
        requested: Text<u64>,
    },
    Link {
        path: String,
        target: String,
    },
    Absent {
        path: String,
    },
    Mappings {
        remotes: Vec<String>,
    },
    MappingsEncrypted {},
}

impl Step {
    /// Parses a step whose variables are replaced.
    pub(super) fn parse(step: Value) -> Result<Self, String> {
        let Value::Object(mut step) = step else {
            return Err("not an object".to_owned());
        };
        if step.remove("note").is_some_and(|note| !note.is_string()) {
            return Err("the note is not text".to_owned());
        }
        if step.contains_key("call") {
            let call: Call = typed(Value::Object(step))?;
            call.method
                .0
                .request(&Value::Object(call.request.clone()))?;
            Ok(Self::Call(Box::new(call)))
        } else if step.contains_key("control") {
            Ok(Self::Control(typed(Value::Object(step))?))
        } else if let Some(actor) = step.remove("as") {
            let known = ACTORS.iter().find(|known| actor == **known);
            let actor = known.ok_or_else(|| format!("unknown actor {actor}"))?;
            let fails = step.remove("fails").map(typed).transpose()?;
            Ok(Self::Action(
                (*actor).to_owned(),
                typed(Value::Object(step))?,
                fails,
            ))
        } else {
            Ok(Self::Check(typed(Value::Object(step))?))
        }
    }

    /// Returns the variables that the step sets.
    fn kept(&self) -> Vec<&str> {
        match self {
            Self::Call(call) => call
                .keep
                .keys()
                .map(String::as_str)
                .chain(call.find.as_ref().map(|find| find.keep.as_str()))
                .collect(),
            Self::Action(
                _,
                Operation::GrowDisk {
                    keep: Some(name), ..
                },
                _,
            ) => vec![name],
            Self::Action(..) | Self::Control(_) | Self::Check(_) => Vec::new(),
        }
    }
}

fn typed<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{FILES, Sequence};

    #[test]
    fn every_file_of_the_folder_runs_in_the_order_of_its_name() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/drivers");
        let entries = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = entries.collect();
        names.sort();
        assert_eq!(names, FILES.map(|(name, _)| format!("{name}.json")));
        Sequence::all().unwrap();
    }

    fn refused(step: &str) -> String {
        let text = format!(
            r#"{{"driver":"","about":"","variables":{{"path":"C:\\x"}},"phases":[{{"name":"x","steps":[{step}]}}]}}"#
        );
        text.parse::<Sequence>().expect_err(step)
    }

    #[test]
    fn a_mistake_in_a_file_is_an_error_that_names_it() {
        for (step, message) in [
            (r#"{"call": "disk/v1/Scan"}"#, "unknown RPC disk/v1/Scan"),
            (
                r#"{"call": "disk/v1/Rescan", "wants": {}}"#,
                "unknown field `wants`",
            ),
            (
                r#"{"call": "disk/v1/Rescan", "note": 1}"#,
                "the note is not text",
            ),
            (
                r#"{"call": "disk/v1/GetDiskStats", "request": {"disk": 1}}"#,
                "is not a request of disk/v1 GetDiskStats",
            ),
            (
                r#"{"call": "filesystem/v1/Mkdir", "request": {"path": "$pat"}}"#,
                "unknown variable $pat",
            ),
            (
                r#"{"as": "kubelet", "do": "MkdirAll", "path": "x", "mode": "x"}"#,
                "unknown field `mode`",
            ),
            (
                r#"{"as": "admin", "do": "MkdirAll", "path": "x"}"#,
                "unknown actor \"admin\"",
            ),
            (
                r#"{"as": "pod", "do": "Chmod", "path": "x"}"#,
                "unknown variant `Chmod`",
            ),
            (
                r#"{"check": "online", "disk": "one"}"#,
                "'one': invalid digit",
            ),
            (r#"{"check": "clean"}"#, "unknown variant `clean`"),
            (
                r#"{"check": "mappings-encrypted", "disk": "1"}"#,
                "unknown field `disk`",
            ),
            (r#"{"part": "stage"}"#, "unknown part \"stage\""),
        ] {
            let error = refused(step);
            assert!(error.contains(message), "{error}");
        }
    }
}
