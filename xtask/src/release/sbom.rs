//! What is in each program: lists of the packages (SBOM) in the formats CycloneDX and SPDX, and the
//! texts of the licenses.
//!
//! The crates are those on the list that `cargo auditable` has put into the program, so they are
//! what was compiled into it. What the compilers add to them is not on that list:
//! [`Platform::libraries`].

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use auditable_info::Limits;
use cargo_metadata::{MetadataCommand, Package};
use serde_json::{Value, json};

use super::programs::Platform;
use super::{commit_time, folder, names_in, sha256};
use crate::summary::Summary;
use crate::{Error, setup, workspace};

/// Crates by `<name>@<version>`.
type Crates = BTreeMap<String, Package>;

/// Writes both lists for each program, and validates them. Writes the licenses for each platform.
pub(super) fn make(platforms: &[&Platform]) -> Result<Summary, Error> {
    let crates = MetadataCommand::new()
        .current_dir(workspace::root())
        .exec()?
        .packages
        .into_iter();
    let crates: Crates = crates
        .map(|package| (format!("{}@{}", package.name, package.version), package))
        .collect();
    let mut convert = Command::new(setup::python_programs("release")?.join("python"));
    convert.arg(workspace::root().join("verify/release/spdx.py"));
    for platform in platforms {
        let mut lists = String::new();
        for program in platform
            .packages
            .iter()
            .map(|package| platform.files(package)[1].clone())
        {
            let file = format!("{program}.cdx.json");
            let list = format!(
                "{:#}\n",
                cyclonedx(Path::new(&program), &crates, &platform.libraries()?)?
            );
            fs::write(&file, &list)?;
            convert.arg(file);
            lists += &list;
        }
        let is_in_program = |name: &str| lists.contains(&format!("\"pkg:cargo/{name}\""));
        let crates = crates
            .iter()
            .filter(|(name, _)| is_in_program(name))
            .map(|(_, package)| package);
        fs::write(folder().join(licenses(platform)), third_party(crates)?)?;
    }
    Ok(Summary::of_check("schemas of the SBOMs", &mut convert))
}

/// Returns the name of the file with the licenses of what is in the programs of a platform.
pub(super) fn licenses(platform: &Platform) -> String {
    format!("THIRD-PARTY-{}.txt", platform.name)
}

/// Returns the licenses of these crates and of the libraries. Texts of the Apache License are left
/// out, as LICENSE is one.
fn third_party<'a>(crates: impl Iterator<Item = &'a Package>) -> Result<String, Error> {
    const BEGINNINGS: [&str; 5] = ["copying", "copyright", "licen", "notice", "unlicen"];
    let mut all = fs::read_to_string(workspace::root().join("verify/release/libraries.txt"))?;
    for package in crates {
        let license = package.license.as_deref().unwrap_or("no license");
        writeln!(
            all,
            "\n{:=<100}\n{} {}: {license}",
            "", package.name, package.version
        )?;
        let folder = package.manifest_path.with_file_name("");
        for name in names_in(folder.as_std_path())? {
            let (file, name) = (folder.join(&name), name.to_lowercase());
            if file.is_file()
                && BEGINNINGS.iter().any(|it| name.starts_with(it))
                && !name.contains("apache")
            {
                write!(all, "\n{}", fs::read_to_string(file)?)?;
            }
        }
    }
    Ok(all)
}

/// Returns the list of what is in a program, as CycloneDX.
fn cyclonedx(program: &Path, crates: &Crates, libraries: &[[String; 3]]) -> Result<Value, Error> {
    let list: Value =
        serde_json::from_str(&auditable_info::json_from_file(program, Limits::default())?)?;
    let packages = list["packages"]
        .as_array()
        .ok_or("the program has no list of packages")?;
    // Build scripts and their packages are not in the program.
    let is_in_program = |package: &&Value| package["kind"] != "build";
    let text = |package: &Value, key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let name = |package: &Value| format!("{}@{}", text(package, "name"), text(package, "version"));
    let (mut application, mut components, mut dependencies) = (Value::Null, Vec::new(), Vec::new());
    for [name, version, license] in libraries {
        components.push(json!({
            "type": "library", "bom-ref": name, "name": name, "version": version, "licenses": [{"expression": license}],
        }));
    }
    for package in packages.iter().filter(is_in_program) {
        let (id, is_root) = (name(package), package["root"] == true);
        let mut component = json!({
            "type": if is_root { "application" } else { "library" }, "bom-ref": id, "name": text(package, "name"),
            "version": text(package, "version"),
        });
        // A package that is not from crates.io must not look like one that anybody may publish
        // there under its name.
        if package["source"] == "crates.io" {
            component["purl"] = format!("pkg:cargo/{id}").into();
        }
        if let Some(license) = crates.get(&id).and_then(|package| package.license.as_ref()) {
            component["licenses"] = json!([{"expression": license.replace('/', " OR ")}]);
        }
        let needed = package["dependencies"].as_array().into_iter().flatten();
        let needed =
            needed.filter_map(|position| packages.get(usize::try_from(position.as_u64()?).ok()?));
        let libraries = libraries
            .iter()
            .filter(|_| is_root)
            .map(|[name, ..]| name.clone());
        let needed: Vec<_> = needed
            .filter(is_in_program)
            .map(name)
            .chain(libraries)
            .collect();
        dependencies.push(json!({"ref": id, "dependsOn": needed}));
        if is_root {
            application = component;
        } else {
            components.push(component);
        }
    }
    let hash = sha256(program)?;
    application["hashes"] = json!([{"alg": "SHA-256", "content": hash}]);
    Ok(json!({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {"timestamp": commit_time()?, "component": application},
        "components": components, "dependencies": dependencies,
    }))
}
