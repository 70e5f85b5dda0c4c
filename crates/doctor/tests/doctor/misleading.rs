//! Names that come from others cannot make the output read as another, neither as text nor as JSON.

use doctor::{ServiceRegistration, json_text};
use os::is_misleading;
use serde_json::Value;

use crate::setup::Patient;

/// Control characters, a line separator, and characters that change the direction of text or are invisible.
const MISLEADING: &str = "\u{9b}31m\u{2028}\u{202e}\u{200b}\u{e0041}";

/// A node on which each name that others choose has misleading characters.
fn patient() -> Patient {
    let mut patient = Patient::changed(|text| {
        let serial = format!("serial = \"disk-serial\"\nprovider_serial = \"serial{MISLEADING}\"");
        let text = text.replace("serial = \"disk-serial\"", &serial);
        let text = text.replace(r"plugins\link", &format!(r"plugins\link{MISLEADING}"));
        text.replace(r"target = 'C:\var\lib\kubelet\pods\1'", r"target = 'C:\gone'")
    });
    let program = format!("C:\\etc\\x{MISLEADING}\x7f\r\n\x1b[0m.exe");
    patient.system.pipes.values_mut().for_each(|pipe| pipe.program = Some(program.clone()));
    let account = Some(format!("account{MISLEADING}"));
    patient.system.service = Some(ServiceRegistration { command_line: program, account, restarts: Ok(true) });
    patient.settings.service = format!("csiproxy{MISLEADING}");
    patient.settings.log_file = Some(format!("C:\\{MISLEADING}\n.log"));
    patient.settings.show_names = true;
    patient
}

#[track_caller]
fn assert_plain(text: &str, names: &[&str]) {
    let text = anstream::adapter::strip_str(text).to_string();
    let found = text.chars().find(|character| is_misleading(*character) && *character != '\n');
    assert_eq!(found, None, "{text:?}");
    let joined: String = text.split_whitespace().collect();
    for name in names {
        assert!(joined.contains(name), "{name} is not in {text}");
    }
}

#[test]
fn text_has_no_misleading_character() {
    let patient = patient();
    let shown = r"\u{9b}31m\u{2028}\u{202e}\u{200b}\u{e0041}";
    let of = |name: &str| format!("{name}{shown}");
    let report = patient.examine().to_string();
    let names = [of(r"plugins\link"), of(r"C:\etc\x") + r"\u{7f}\r\n\u{1b}[0m.exe", of("account")];
    assert_plain(&report, &names.each_ref().map(String::as_str));
    let parity = doctor::compare(&patient.os(), &patient.settings.node, true).to_string();
    assert_plain(&parity, &[&of("serial")]);
}

#[test]
fn json_has_no_misleading_character_and_is_parsed_to_the_names() {
    let patient = patient();
    let report = patient.examine().to_json("node\u{202e}", "0.0.0");
    let parity = doctor::compare(&patient.os(), &patient.settings.node, true).to_json("node", "0.0.0");
    for (json, name) in [(report, r"C:\etc\x"), (parity, "serial")] {
        assert!(json.to_string().contains(MISLEADING), "{name}: {json}");
        for text in [json.to_string(), format!("{json:#}")] {
            let text = json_text(&text);
            assert_plain(&text, &[r"\u009b31m\u2028\u202e\u200b\udb40\udc41"]);
            assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), json);
        }
    }
}
