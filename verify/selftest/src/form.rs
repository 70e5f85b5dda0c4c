//! The forms of texts that could identify a disk, a machine or a person.
//!
//! A form has the length of the text, its blanks and separators, what a driver looks for at the
//! beginning of a word, and for each word the class of its characters. All letters and digits of a
//! word become one character, so that the form does not tell where its digits are:
//!
//! | character | the word consists of |
//! |---|---|
//! | `9` | digits |
//! | `h`, `H` | hexadecimal digits in lower or upper case |
//! | `a`, `A` | letters in lower or upper case, and digits |
//! | `x` | letters of both cases, and digits |
//! | `?` | (this character alone) no printable ASCII |

/// What drivers and csi-proxy look for at the beginning of a word, and what names only a vendor or
/// a format: the ids of EBS, of persistent volumes, the IEEE ids of VMware and Microsoft after NAA
/// 6, and `MSFT` with four blanks in hexadecimal.
const PREFIXES: [&str; 19] = [
    "4D53465420202020",
    "4d53465420202020",
    "6000C29",
    "6000c29",
    "6002248",
    "AWS",
    "Google",
    "MSFT",
    "Msft",
    "NVMe",
    "SCSI",
    "eui.",
    "naa.",
    "nvme",
    "pvc-",
    "scsi",
    "t10.",
    "uuid.",
    "vol",
];

/// The words of vendors and products of clouds. A device shows the first sixteen characters of a
/// product, so that the last word may be cut.
const WORDS: [&str; 31] = [
    "accelerator",
    "amazon",
    "aws",
    "block",
    "card",
    "device",
    "direct",
    "disk",
    "ebs",
    "ec2",
    "elastic",
    "ephemeraldisk",
    "google",
    "harddisk",
    "instance",
    "inc",
    "microsoft",
    "msft",
    "nvme",
    "pd",
    "persistentdisk",
    "pvdisk",
    "qemu",
    "red",
    "hat",
    "scsi",
    "storage",
    "store",
    "virtio",
    "virtual",
    "vmware",
];

/// The words before and between the numbers of a location.
const LOCATION: [&str; 14] = [
    "Adapter",
    "Bus",
    "Device",
    "Embedded",
    "Function",
    "IDE",
    "Integrated",
    "LUN",
    "PCI",
    "Port",
    "SATA",
    "SCSI",
    "Slot",
    "Target",
];

/// Returns the form of an identifier, such as a serial number.
pub(crate) fn of_id(text: &str) -> String {
    words(text).map(of_word).collect()
}

/// Returns the form of a binary identifier of page 83, in hexadecimal: an NAA identifier of the
/// types 5 and 6 keeps its first seven digits, which are the type and the IEEE id of the company.
pub(crate) fn of_naa(hex: &str) -> String {
    match hex.split_at_checked(7) {
        Some((company, rest)) if hex.starts_with(['5', '6']) => format!("{company}{}", of_id(rest)),
        _ => of_id(hex),
    }
}

/// Returns the form of the name of a vendor or product. Known words stay.
pub(crate) fn of_name(text: &str) -> String {
    let pieces: Vec<&str> = text
        .split_inclusive(|c: char| !c.is_ascii_alphanumeric())
        .collect();
    let last = pieces
        .iter()
        .rposition(|piece| piece.contains(|c: char| c.is_ascii_alphanumeric()));
    let pieces = pieces.iter().enumerate().map(|(at, piece)| {
        let word = piece.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let lower = word.to_ascii_lowercase();
        let is_known = WORDS
            .iter()
            .any(|known| *known == lower || Some(at) == last && known.starts_with(&lower));
        if is_known {
            format!("{word}{}", masked(&piece[word.len()..]))
        } else {
            masked(piece)
        }
    });
    pieces.collect()
}

/// Returns a location with its numbers, which identify nothing. Anything but known words with
/// numbers becomes its form, and the path of a file becomes `a path`.
pub(crate) fn of_location(text: &str) -> String {
    if text.contains(['\\', '/']) {
        return "a path".to_owned();
    }
    let mut after_known = false;
    let words = words(text).map(|word| {
        let bare = word.trim_end_matches(' ');
        let name = bare.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = bare.len() - name.len();
        let is_known = LOCATION.contains(&name) && digits <= 3;
        let is_number = name.is_empty() && digits <= 10 && after_known;
        if !bare.is_empty() {
            after_known = is_known;
        }
        if is_known || is_number {
            word.to_owned()
        } else {
            of_word(word)
        }
    });
    words.collect()
}

/// Splits a text into words, each with the blanks after it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

/// Returns the form of a word.
fn of_word(word: &str) -> String {
    let mut rest = word;
    while let Some(found) = PREFIXES.iter().find_map(|prefix| rest.strip_prefix(prefix)) {
        rest = found;
    }
    format!("{}{}", &word[..word.len() - rest.len()], masked(rest))
}

/// Replaces each letter and digit of a text by the class of all of them.
fn masked(text: &str) -> String {
    let has = |class: fn(&char) -> bool| text.chars().any(|c| class(&c));
    let class = match (
        has(char::is_ascii_lowercase),
        has(char::is_ascii_uppercase),
        has(|c| c.is_ascii_alphabetic() && !c.is_ascii_hexdigit()),
    ) {
        (false, false, _) => '9',
        (true, true, _) => 'x',
        (true, false, false) => 'h',
        (false, true, false) => 'H',
        (true, false, true) => 'a',
        (false, true, true) => 'A',
    };
    let replaced = |c: char| match c {
        _ if c.is_ascii_alphanumeric() => class,
        ' ' => ' ',
        _ if c.is_ascii_punctuation() => c,
        _ => '?',
    };
    text.chars().map(replaced).collect()
}

#[cfg(test)]
mod tests {
    use super::{of_id, of_location, of_naa, of_name};

    #[test]
    fn the_form_of_an_identifier_keeps_what_drivers_look_for() {
        for (text, form) in [
            // AWS.
            (
                "vol0123456789abcdef0_00000001.",
                "volhhhhhhhhhhhhhhhhh_hhhhhhhh.",
            ),
            ("AWS6AAE6AB0AA7F_00000001.", "AWSHHHHHHHHHHHH_HHHHHHHH."),
            (
                "vol0123456789abcdef00001Amazon Elastic Block Store  1D0F",
                "volxxxxxxxxxxxxxxxxxxxxxxxxxxx xxxxxxx xxxxx xxxxx  HHHH",
            ),
            // Azure.
            (
                "60022480000000000000000000000016",
                "60022489999999999999999999999999",
            ),
            (
                "E6D8_6642_50D8_47BD_916E_AF1B_0000_0000.",
                "HHHH_HHHH_HHHH_HHHH_HHHH_HHHH_HHHH_HHHH.",
            ),
            (
                "4d534654202020205d069acaddc11b41bb89b51fd6e51461",
                "4d53465420202020hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh",
            ),
            // Google.
            ("                    ", "                    "),
            (
                "Google  pvc-5f0e6c7a-0b8d-4d2e-9f3c-1a2b3c4d5e6f",
                "Google  pvc-hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh",
            ),
            ("Google  payroll-disk-3", "Google  aaaaaaa-aaaa-a"),
            ("eui.10cc9636b6e3ce3b", "eui.hhhhhhhhhhhhhhhh"),
            // vSphere.
            (
                "6000c292a560cfee7485ca30dd209394",
                "6000c29hhhhhhhhhhhhhhhhhhhhhhhhh",
            ),
            // Windows makes such an identifier, with the name of the machine.
            (
                r"SCSI\DISK&VEN_VMWARE&PROD_VIRTUAL_DISK\4&1656F219&0&000100:WIN-QBI6V8BMPGM",
                r"SCSI\AAAA&AAA_AAAAAA&AAAA_AAAAAAA_AAAA\A&AAAAAAAA&A&AAAAAA:AAA-AAAAAAAAAAA",
            ),
            ("S4EWNX0M123456", "AAAAAAAAAAAAAA"),
            ("\u{1}größe\t1", "?xx??x?x".replace('x', "a").as_str()),
            ("", ""),
        ] {
            assert_eq!(of_id(text), form, "{text}");
        }
    }

    #[test]
    fn an_naa_identifier_keeps_the_company() {
        for (hex, form) in [
            ("6001405abcdef01234567890abcdef01", "6001405"),
            ("5000c500a1b2c3d4", "5000c50"),
            ("3000c500a1b2c3d4", ""),
            ("600", ""),
        ] {
            let form = format!("{form}{}", of_id(&hex[form.len()..]));
            assert_eq!(of_naa(hex), form);
        }
    }

    #[test]
    fn a_name_keeps_the_words_of_clouds() {
        for known in [
            "NVMe    ",
            "Amazon Elastic B",
            "Amazon EC2 NVMe",
            "AWS PVDISK",
            "Google PersistentDisk",
            "nvme_card-pd",
            "Msft Virtual Disk",
            "MSFT NVMe Accele",
            "Microsoft NVMe Direct Disk",
            "VMware, Inc.",
            "VMware Virtual N",
        ] {
            assert_eq!(of_name(known), known);
        }
        for (name, form) in [
            ("Finance Contoso SQL", "xxxxxxx xxxxxxx AAA"),
            ("USB DISK AA04012700007583", "AAA DISK HHHHHHHHHHHHHHHH"),
            ("Disk4711 Virtual", "xxxxxxxx Virtual"),
            ("Bad Elastic", "xxx Elastic"),
            ("1.0 ", "9.9 "),
        ] {
            assert_eq!(of_name(name), form);
        }
    }

    #[test]
    fn a_location_keeps_its_numbers_and_no_path() {
        for location in [
            "Integrated : Bus 0 : Device 63667 : Function 30747 : Adapter 1 : Port 0 : Target 0 : LUN 1",
            "Integrated : Bus 12606208 : Device 0 : Function 0 : Adapter 0",
            "PCI Slot 160 : Adapter 0 : Port 0 : Target 2 : LUN 0",
            "SCSI0",
            "",
        ] {
            assert_eq!(of_location(location), location);
        }
        for (location, form) in [
            (r"C:\Users\anna\disk.vhdx", "a path"),
            (r"\\server\share\disk.vhdx", "a path"),
            ("Rack 17 : Slot 4", "xxxx 99 : Slot 4"),
            ("SCSI4711", "SCSI9999"),
            ("LUN 12345678901", "LUN 99999999999"),
        ] {
            assert_eq!(of_location(location), form);
        }
    }
}
