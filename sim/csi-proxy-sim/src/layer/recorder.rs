//! Records the calls of a driver as a sequence that `csi-proxy-sim replay` plays.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Mutex;

use csi_proxy::platform::restrict_to_owner;
use prost_reflect::SerializeOptions;
use serde_json::{Map, Value, json};
use tonic::Code;

use super::answer::{Answer, PREFIX};
use super::known_rpcs::{CONTROL, KnownRpc, NODE_FILE, is_secret};

const HEAD: &str = "{\"driver\": \"recorded\", \"about\": \"recorded by csi-proxy-sim\",\n\"phases\": [{\"name\": \"Recorded\", \"steps\": [";

/// A file that is a complete sequence after each call.
#[derive(Debug)]
pub(crate) struct Recorder(Mutex<Recording>);

#[derive(Debug)]
struct Recording {
    file: File,
    /// Where the next step begins.
    end: u64,
    /// The volumes that an answer has named, in the order of their variables.
    volumes: Vec<String>,
    /// The secret fields that a request had. Their values are not recorded.
    secrets: Map<String, Value>,
    /// The ids of the faults that the replay injects, in their order.
    faults: Vec<Value>,
}

impl Recorder {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        // The calls name users and paths.
        restrict_to_owner(&mut options);
        let file = options.open(path)?;
        let (volumes, secrets, faults) = (Vec::new(), Map::new(), Vec::new());
        let mut recording = Recording {
            file,
            end: HEAD.len() as u64,
            volumes,
            secrets,
            faults,
        };
        recording.file.write_all(HEAD.as_bytes())?;
        recording.write("")?;
        Ok(Self(Mutex::new(recording)))
    }

    /// Records a call, its request without secrets, and the answer.
    pub(super) fn record(&self, rpc: &KnownRpc, request: Value, answer: &Answer) {
        let mut recording = os::lock(&self.0);
        let Some(step) = recording.step(rpc, request, answer) else {
            return;
        };
        let comma = if recording.end == HEAD.len() as u64 {
            ""
        } else {
            ","
        };
        if let Err(error) = recording.write(&format!("{comma}\n{step}")) {
            tracing::warn!(%error, rpc = rpc.name, "cannot record a call");
        }
    }
}

impl Recording {
    /// Returns the step that replays a call; `None` if the replay does not need it.
    fn step(&mut self, rpc: &KnownRpc, mut request: Value, answer: &Answer) -> Option<Value> {
        let status = answer.status();
        let message = answer.data.get(PREFIX..).unwrap_or_default();
        let response = || {
            rpc.rpc
                .response_json(message, SerializeOptions::new())
                .unwrap_or_default()
        };
        if !rpc.is_of_driver()
            && (status.code() != Code::Ok || !self.is_replayed(&mut request, response))
        {
            return None;
        }
        self.note_secrets(&request);
        let known = self.volumes.len();
        self.name_volumes(known, &mut request);
        if let Some(name) = rpc.name.strip_prefix(CONTROL) {
            return Some(json!({ "control": name.trim_start_matches('/'), "request": request }));
        }
        let mut step = json!({ "call": rpc.name, "request": request });
        if status.code() == Code::Ok {
            let mut response = response();
            remove_page83(&mut response);
            let mut keep = Map::new();
            self.find_volumes(&response, "", &mut keep);
            self.name_volumes(known, &mut response);
            step["want"] = response;
            step["keep"] = keep.into();
        } else {
            let mut message = Value::from(status.message());
            self.name_volumes(known, &mut message);
            step["code"] = format!("{:?}", status.code()).into();
            step["note"] = message;
        }
        Some(step)
    }

    /// Returns whether the replay makes a call of the control API. Faults of RPCs are left out,
    /// because what they disturb is between the driver and the daemon; so are holds, which would
    /// wait for a test that is not there. A fault that is cleared gets the number that it has in
    /// the replay.
    fn is_replayed(&mut self, request: &mut Value, response: impl FnOnce() -> Value) -> bool {
        if let Some(fault) = request.get("fault") {
            let is_replayed = fault.get("rpc").is_none() && fault.get("hold").is_none();
            if is_replayed {
                self.faults.push(response()["id"].clone());
            }
            return is_replayed;
        }
        let Some(id) = request.get_mut("id") else {
            return true;
        };
        let Some(index) = self.faults.iter().position(|fault| fault == id) else {
            return false;
        };
        *id = (index + 1).into();
        true
    }

    /// Writes a step and the end of the file.
    fn write(&mut self, step: &str) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.end))?;
        let variables = Value::from(self.secrets.clone());
        self.file
            .write_all(format!("{step}\n]}}],\n\"variables\": {variables}}}\n").as_bytes())?;
        self.end += step.len() as u64;
        Ok(())
    }

    fn note_secrets(&mut self, request: &Value) {
        request
            .as_array()
            .into_iter()
            .flatten()
            .for_each(|item| self.note_secrets(item));
        for (name, value) in request.as_object().into_iter().flatten() {
            if is_secret(name) {
                self.secrets.insert(name.clone(), "".into());
            }
            if let Some(node) = (name == NODE_FILE)
                .then(|| toml::from_str(value.as_str()?).ok())
                .flatten()
            {
                self.note_secrets(&node);
            }
            self.note_secrets(value);
        }
    }

    /// Makes variables of the volumes in an answer that are new.
    fn find_volumes(&mut self, value: &Value, path: &str, keep: &mut Map<String, Value>) {
        let below = |key: &str| {
            if path.is_empty() {
                key.to_owned()
            } else {
                format!("{path}.{key}")
            }
        };
        match value {
            Value::String(text) if is_volume(text) && !self.volumes.contains(text) => {
                keep.insert(variable(self.volumes.len()), path.into());
                self.volumes.push(text.clone());
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, item)| {
                    self.find_volumes(item, &below(&index.to_string()), keep);
                });
            }
            Value::Object(fields) => fields
                .iter()
                .for_each(|(key, item)| self.find_volumes(item, &below(key), keep)),
            _ => {}
        }
    }

    /// Writes the variables of the first `known` volumes instead of their GUIDs. The others are
    /// kept by this step, and have no value before it.
    fn name_volumes(&self, known: usize, value: &mut Value) {
        match value {
            Value::String(text) => {
                for (index, volume) in self.volumes.iter().enumerate() {
                    let name = if index < known {
                        format!("${}", variable(index))
                    } else {
                        "<volume>".to_owned()
                    };
                    *text = text.replace(volume, &name);
                }
            }
            Value::Array(items) => items
                .iter_mut()
                .for_each(|item| self.name_volumes(known, item)),
            Value::Object(fields) => fields
                .values_mut()
                .for_each(|item| self.name_volumes(known, item)),
            _ => {}
        }
    }
}

/// Leaves out the identifiers that the simulator makes for a disk whose node file gives none.
fn remove_page83(response: &mut Value) {
    for disk in response
        .get_mut("diskIDs")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flat_map(Map::values_mut)
    {
        disk.as_object_mut().map(|ids| ids.remove("page83"));
    }
}

fn is_volume(text: &str) -> bool {
    text.starts_with(r"\\?\Volume{") && text.ends_with(r"}\")
}

/// Returns the variable of a volume, in letters only: `volumeA`, `volumeB`, and so on.
fn variable(index: usize) -> String {
    let letter = |digit: usize| char::from(b'A' + u8::try_from(digit % 26).unwrap_or_default());
    format!(
        "volume{}{}",
        if index < 26 {
            String::new()
        } else {
            letter(index / 26 - 1).into()
        },
        letter(index)
    )
}
