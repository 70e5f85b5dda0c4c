//! The images and the chart as OCI image layouts, which oras writes, and skopeo reads back.
//!
//! A layer is not compressed, so that its bytes depend on no compressor, and its digest is that of
//! its contents.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::programs::Platform;
use super::{commit_time, folder, hive, number, sbom, sha256, staging, tar};
use crate::summary::Summary;
use crate::{Error, process, setup, windows, workspace};

const CHART: &str = "csi-proxy-chart";

/// The hives that Windows looks for when it unpacks an image.
const HIVES: [&str; 5] = ["DEFAULT", "SAM", "SECURITY", "SOFTWARE", "SYSTEM"];

/// Makes an image for each of these platforms.
///
/// containerd may refuse an index whose Windows images name no version of Windows, so each of these
/// has a tag of its own and no index: <https://github.com/containerd/containerd/issues/7431>.
pub(super) fn make(platforms: &[&Platform]) -> Result<Summary, Error> {
    let oras = setup::go_tool("oras")?;
    let mut sum = Summary::default();
    for (name, system) in [("csi-proxy", "windows"), ("csi-proxy-sim", "linux")] {
        let mut tags = Vec::new();
        for platform in platforms
            .iter()
            .filter(|platform| platform.system() == system)
        {
            let tag = format!("{}-{}", number()?, platform.name);
            push_image(&oras, &format!("{name}:{tag}"), platform)?;
            tags.push(tag);
        }
        if system == "linux" && !tags.is_empty() {
            let mut index = Command::new(&oras);
            index
                .current_dir(staging())
                .args(["manifest", "index", "create", "--oci-layout"]);
            process::must_succeed(index.arg(format!("{name}:{}", number()?)).args(&tags))?;
        }
        if !tags.is_empty() {
            sum += archive(name)?;
        }
    }
    Ok(sum)
}

/// Adds an image `<layout>:<tag>` with the programs of a platform.
fn push_image(oras: &Path, image: &str, platform: &Platform) -> Result<(), Error> {
    let contents = staging().join(image.replace(':', "-"));
    let (system, architecture) = platform.name.split_once('-').unwrap_or_default();
    let on_windows = system == "windows";
    // A layer for Windows has the file system in a folder.
    let root = if on_windows {
        contents.join("Files")
    } else {
        contents.clone()
    };
    // The simulator makes its sockets in a folder that it cannot make as this user.
    let (user, folder) = if on_windows {
        ("0", "Windows/System32/config")
    } else {
        ("65532", "sockets")
    };
    fs::create_dir_all(root.join(folder))?;
    for name in HIVES.iter().filter(|_| on_windows) {
        fs::write(root.join(folder).join(name), hive::empty())?;
    }
    for package in platform
        .packages
        .iter()
        .filter(|package| **package != windows::SELFTEST)
    {
        let [on_node, released] = platform.files(package);
        fs::copy(released, root.join(on_node))?;
    }
    fs::copy(workspace::root().join("LICENSE"), root.join("LICENSE"))?;
    fs::copy(
        super::folder().join(sbom::licenses(platform)),
        root.join("THIRD-PARTY.txt"),
    )?;
    let layer = format!("{}.tar", image.replace(':', "-"));
    tar(&contents, &staging().join(&layer), user)?;
    let label = |name: &str| format!("org.opencontainers.image.{name}");
    // The simulator serves what the recipe for an image of one's own says.
    let recipe = fs::read_to_string(workspace::root().join("sim/simtest/Dockerfile"))?;
    let simulator = recipe
        .lines()
        .find_map(|line| line.strip_prefix("ENTRYPOINT "))
        .ok_or("no ENTRYPOINT")?;
    let entrypoint = if on_windows {
        json!([format!("{}.exe", windows::DAEMON)])
    } else {
        serde_json::from_str(simulator)?
    };
    let config = json!({
        "architecture": architecture, "os": system, "created": commit_time()?,
        "config": {
            "Entrypoint": entrypoint,
            "User": if on_windows { "" } else { user },
            "Env": [if on_windows { r"PATH=C:\Windows\System32;C:\Windows" } else { "PATH=/" }],
            "Labels": {
                label("title"): platform.packages[0], label("version"): workspace::version()?,
                label("source"): workspace::repository()?, label("revision"): workspace::git(&["rev-parse", "HEAD"]), label("licenses"): "Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", sha256(&staging().join(&layer))?)]},
        "history": [{"created_by": "cargo xtask release"}],
    });
    let media = [
        "application/vnd.oci.image.config.v1+json",
        "application/vnd.oci.image.layer.v1.tar",
    ];
    push(oras, image, &config, &layer, media)
}

/// Adds a manifest with a config and one layer, which have these media types.
fn push(
    oras: &Path,
    name: &str,
    config: &Value,
    layer: &str,
    [of_config, of_layer]: [&str; 2],
) -> Result<(), Error> {
    fs::write(staging().join("config.json"), config.to_string())?;
    let mut push = Command::new(oras);
    push.current_dir(staging())
        .args(["push", "--oci-layout", name]);
    push.arg(format!(
        "--annotation=org.opencontainers.image.created={}",
        commit_time()?
    ));
    process::must_succeed(
        push.arg(format!("--config=config.json:{of_config}"))
            .arg(format!("{layer}:{of_layer}")),
    )
}

/// Packages the chart with helm, and again as an OCI artifact.
pub(super) fn make_chart() -> Result<Summary, Error> {
    let (helm, oras) = (setup::go_tool("helm")?, setup::go_tool("oras")?);
    // helm keeps the times of the files. Those in an archive of the commit have its time.
    let mut unpack = Command::new("sh");
    unpack
        .current_dir(workspace::root())
        .args(["-c", "git archive HEAD deploy/helm | tar -x -C \"$0\""])
        .arg(staging());
    process::must_succeed(&mut unpack)?;
    process::must_succeed(
        Command::new(helm)
            .current_dir(staging())
            .args(["package", "deploy/helm/csi-proxy"]),
    )?;
    let packaged = format!("csi-proxy-{}.tgz", number()?);
    fs::copy(
        staging().join(&packaged),
        folder().join(format!("{CHART}-{}.tgz", number()?)),
    )?;
    let chart = fs::read_to_string(staging().join("deploy/helm/csi-proxy/Chart.yaml"))?;
    let lines = chart.lines().filter(|line| !line.starts_with('#'));
    let fields = lines.map(|line| {
        let (key, value) = line
            .split_once(": ")
            .filter(|(key, _)| key.chars().all(char::is_alphabetic))?;
        Some((key.to_owned(), Value::from(value.trim_matches('"'))))
    });
    let media = [
        "application/vnd.cncf.helm.config.v1+json",
        "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
    ];
    let config = fields
        .collect::<Option<serde_json::Map<_, _>>>()
        .ok_or("Chart.yaml has a list or a map")?
        .into();
    push(
        &oras,
        &format!("{CHART}:{}", number()?),
        &config,
        &packaged,
        media,
    )?;
    archive(CHART)
}

/// Writes a layout as one file of the release, and reads all that is in it with skopeo.
fn archive(name: &str) -> Result<Summary, Error> {
    let file = folder().join(format!("{name}.oci.tar"));
    let index_file = staging().join(name).join("index.json");
    let mut index: Value = serde_json::from_str(&fs::read_to_string(&index_file)?)?;
    // oras writes the manifests in another order each time.
    index["manifests"]
        .as_array_mut()
        .ok_or("index.json has no manifests")?
        .sort_by_key(Value::to_string);
    fs::write(index_file, index.to_string())?;
    tar(&staging().join(name), &file, "0")?;
    let mut sum = Summary::default();
    for manifest in index["manifests"].as_array().into_iter().flatten() {
        let tag = manifest["annotations"]["org.opencontainers.image.ref.name"]
            .as_str()
            .unwrap_or_default();
        let mut copy = Command::new("skopeo");
        copy.args([
            "copy",
            "--quiet",
            "--all",
            "--preserve-digests",
            "--insecure-policy",
        ]);
        copy.arg(format!("oci-archive:{}:{tag}", file.display()));
        copy.arg(format!(
            "dir:{}",
            staging().join(format!("read-{name}-{tag}")).display()
        ));
        sum += Summary::of_check(&format!("skopeo reads {name}:{tag}"), &mut copy);
    }
    Ok(sum)
}
