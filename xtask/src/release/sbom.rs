//! Lists of the packages in each program (SBOM), in the formats CycloneDX and SPDX.
//!
//! They are made from the list that `cargo auditable` has put into the program, so they have what was compiled into it and
//! nothing else. The standard library is not on that list.

use std::collections::HashMap;
use std::fs;
use std::process::Command;

use auditable_info::Limits;
use cargo_metadata::MetadataCommand;
use serde_json::{Value, json};

use super::{commit_time, files, folder, sha256};
use crate::summary::Summary;
use crate::{Error, setup, workspace};

/// Writes both lists for each program, and validates them.
pub(super) fn make() -> Result<Summary, Error> {
    let packages = MetadataCommand::new().current_dir(workspace::root()).exec()?.packages;
    let licenses = packages.iter().filter_map(|package| {
        Some((
            format!("pkg:cargo/{}@{}", package.name, package.version),
            package.license.as_ref()?.replace('/', " OR "),
        ))
    });
    let licenses: HashMap<_, _> = licenses.collect();
    let mut validate = Command::new(setup::python_programs("release")?.join("python"));
    validate.arg(workspace::root().join("verify/release/validate.py"));
    for program in files()?.iter().filter(|name| name.ends_with("64") || name.ends_with("64.exe")) {
        for (format, list) in ["cdx", "spdx"].into_iter().zip(lists(program, &licenses)?) {
            let file = folder().join(format!("{program}.{format}.json"));
            fs::write(&file, format!("{list:#}\n"))?;
            validate.arg(file);
        }
    }
    Ok(Summary::of_check("schemas of the SBOMs", &mut validate))
}

/// Returns the lists of the packages in a program, as CycloneDX and as SPDX.
fn lists(program: &str, licenses: &HashMap<String, String>) -> Result<[Value; 2], Error> {
    let file = folder().join(program);
    let (hash, created) = (sha256(&file)?, commit_time()?);
    let list: Value = serde_json::from_str(&auditable_info::json_from_file(&file, Limits::default())?)?;
    let packages = list["packages"].as_array().ok_or("the program has no list of packages")?;
    let text = |position: usize, key: &str| packages[position][key].as_str().unwrap_or_default();
    let purl = |position| format!("pkg:cargo/{}@{}", text(position, "name"), text(position, "version"));
    // Build scripts and their packages are not in the program.
    let is_in_program = |position: &usize| packages[*position]["kind"] != "build";
    let (mut cdx, mut needs, mut spdx, mut relations) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut application = Value::Null;
    for position in (0..packages.len()).filter(is_in_program) {
        let (name, version, purl_of_this) = (text(position, "name"), text(position, "version"), purl(position));
        let license = licenses.get(&purl_of_this).map_or("NOASSERTION", String::as_str);
        let needed = packages[position]["dependencies"].as_array().into_iter().flatten().filter_map(Value::as_u64);
        let needed: Vec<usize> = needed.filter_map(|needed| needed.try_into().ok()).filter(is_in_program).collect();
        needs.push(json!({"ref": purl_of_this, "dependsOn": needed.iter().copied().map(purl).collect::<Vec<_>>()}));
        relations.extend(needed.iter().map(|needed| (format!("SPDXRef-{position}"), "DEPENDS_ON", *needed)));
        spdx.push(json!({
            "SPDXID": format!("SPDXRef-{position}"), "name": name, "versionInfo": version, "filesAnalyzed": false,
            "downloadLocation": "NOASSERTION", "licenseConcluded": "NOASSERTION", "licenseDeclared": license, "copyrightText":
            "NOASSERTION", "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": purl_of_this}],
        }));
        let is_root = packages[position]["root"] == true;
        let component = json!({
            "type": if is_root { "application" } else { "library" }, "bom-ref": purl_of_this, "purl": purl_of_this,
            "name": name, "version": version, "licenses": [{"expression": license}],
        });
        if is_root {
            application = component;
            relations.push(("SPDXRef-DOCUMENT".to_owned(), "DESCRIBES", position));
        } else {
            cdx.push(component);
        }
    }
    application["hashes"] = json!([{"alg": "SHA-256", "content": hash}]);
    let relation = |(from, kind, to): (String, &str, usize)| json!({"spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": format!("SPDXRef-{to}")});
    let cdx = json!({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": cdx, "dependencies": needs,
        "metadata": {"timestamp": created, "component": application},
    });
    let spdx = json!({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": program,
        "documentNamespace": format!("https://spdx.org/spdxdocs/{program}-{hash}"), "packages": spdx,
        "creationInfo": {"created": created, "creators": ["Tool: csi-proxy-xtask"]},
        "relationships": relations.into_iter().map(relation).collect::<Vec<_>>(),
    });
    Ok([cdx, spdx])
}
