//! The functions that a Windows program imports, from its import table.
//!
//! <https://learn.microsoft.com/windows/win32/debug/pe-format>

/// The beginnings of the names of functions that start a program.
const STARTS_A_PROGRAM: [&str; 11] = [
    "CreateProcess",
    "NtCreateProcess",
    "NtCreateUserProcess",
    "RtlCreateUserProcess",
    "ShellExecute",
    "WinExec",
    "_exec",
    "_popen",
    "_spawn",
    "_wspawn",
    "system",
];

/// Returns the imported functions that start a program, as `library!function`. Returns `None` if the bytes are not a 64-bit
/// program.
pub(crate) fn that_start_programs(program: &[u8]) -> Option<Vec<String>> {
    let imports = imports(program)?;
    let starts = |name: &str| STARTS_A_PROGRAM.iter().any(|start| name.starts_with(start));
    Some(
        imports
            .into_iter()
            .filter(|(_, name)| starts(name))
            .map(|(library, name)| format!("{library}!{name}"))
            .collect(),
    )
}

/// Returns the library and the name of each function that is imported by its name.
fn imports(program: &[u8]) -> Option<Vec<(String, String)>> {
    let image = Image::parse(program)?;
    let mut imports = Vec::new();
    // Of each library there is a descriptor of 20 bytes; the last is followed by an empty one.
    for descriptor in (0..).map(|index| image.import_table + 20 * index) {
        let (names, library, addresses) =
            (image.number(descriptor)?, image.number(descriptor + 12)?, image.number(descriptor + 16)?);
        if library == 0 {
            break;
        }
        let library = image.text(library)?;
        let names = if names == 0 { addresses } else { names };
        for entry in (0..).map(|index| names + 8 * index) {
            match (image.number(entry)?, image.number(entry + 4)?) {
                (0, 0) => break,
                // The two bytes before the name are a hint.
                (name, 0) => imports.push((library.clone(), image.text(name + 2)?)),
                // Imported by its number.
                _ => {}
            }
        }
    }
    Some(imports)
}

/// A program that can be read by the addresses that it has in memory.
struct Image<'p> {
    program: &'p [u8],
    /// Of each section: its address in memory, its size, and its offset in the file.
    sections: Vec<[u32; 3]>,
    import_table: u32,
}

impl<'p> Image<'p> {
    fn parse(program: &'p [u8]) -> Option<Self> {
        let word = |offset: usize| program.get(offset..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes));
        let number = |offset: usize| number(program, offset);
        let header = usize::try_from(number(0x3c)?).ok()?;
        let optional_header = header + 24;
        if program.get(header..header + 4)? != b"PE\0\0" || word(optional_header)? != 0x20b {
            return None;
        }
        let table = optional_header + usize::from(word(header + 20)?);
        let sections = (0..usize::from(word(header + 6)?)).map(|index| table + 40 * index);
        let sections = sections.map(|at| Some([number(at + 12)?, number(at + 16)?, number(at + 20)?]));
        Some(Self { program, sections: sections.collect::<Option<_>>()?, import_table: number(optional_header + 120)? })
    }

    /// Returns what is in memory from an address on.
    fn at(&self, address: u32) -> Option<&'p [u8]> {
        let offset = self.sections.iter().find_map(|[start, size, offset]| {
            address.checked_sub(*start).filter(|inside| inside < size).map(|inside| inside + offset)
        })?;
        self.program.get(usize::try_from(offset).ok()?..)
    }

    fn number(&self, address: u32) -> Option<u32> {
        number(self.at(address)?, 0)
    }

    fn text(&self, address: u32) -> Option<String> {
        let bytes = self.at(address)?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

fn number(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::{imports, that_start_programs};

    /// Returns a program with one section, which is at 0x1000 in memory, that imports two functions by name and one by
    /// number.
    fn program(function: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 0x400];
        let mut put = |offset: usize, value: &[u8]| bytes[offset..offset + value.len()].copy_from_slice(value);
        put(0x3c, &0x40_u32.to_le_bytes());
        put(0x40, b"PE\0\0");
        put(0x46, &1_u16.to_le_bytes()); // sections
        put(0x54, &0xf0_u16.to_le_bytes()); // the size of the optional header
        put(0x58, &0x20b_u16.to_le_bytes());
        put(0x58 + 120, &0x1000_u32.to_le_bytes());
        let section = 0x58 + 0xf0;
        put(section + 12, &0x1000_u32.to_le_bytes());
        put(section + 16, &0x200_u32.to_le_bytes());
        put(section + 20, &0x200_u32.to_le_bytes());
        put(0x200, &0x1080_u32.to_le_bytes()); // the names, in a descriptor that is followed by an empty one
        put(0x200 + 12, &0x1040_u32.to_le_bytes());
        put(0x240, b"KERNEL32.dll\0");
        put(0x280, &0x10c0_u64.to_le_bytes());
        put(0x288, &0x8000_0000_0000_0007_u64.to_le_bytes());
        put(0x290, &0x10e0_u64.to_le_bytes());
        put(0x2c2, b"ReadFile\0");
        put(0x2e2, function);
        bytes
    }

    #[test]
    fn functions_are_read_from_the_import_table() {
        let program = program(b"CloseHandle\0");
        let names: Vec<_> =
            imports(&program).unwrap().into_iter().map(|(library, name)| library + "!" + &name).collect();
        assert_eq!(names, ["KERNEL32.dll!ReadFile", "KERNEL32.dll!CloseHandle"]);
        assert_eq!(that_start_programs(&program), Some(Vec::new()));
    }

    #[test]
    fn a_function_that_starts_a_program_is_found() {
        for name in ["CreateProcessW", "CreateProcessAsUserW", "ShellExecuteExW", "WinExec", "_wspawnvp"] {
            let found = that_start_programs(&program(format!("{name}\0").as_bytes())).unwrap();
            assert_eq!(found, [format!("KERNEL32.dll!{name}")]);
        }
    }

    #[test]
    fn a_file_that_is_no_program_is_refused() {
        let program = program(b"CloseHandle\0");
        for length in [0, 0x3c, 0x42, 0x58, 0x100, 0x150, 0x210, 0x288] {
            assert_eq!(that_start_programs(&program[..length]), None, "{length:x}");
        }
    }
}
