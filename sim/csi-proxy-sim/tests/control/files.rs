//! The container's side of the file system.

use csi_proxy_client::Symlink;

use super::program::Program;

#[tokio::test]
async fn what_a_container_makes_the_node_sees_and_the_other_way_round() {
    const POD: &str = r"C:\var\lib\kubelet\pods\1";
    let at = |path: &str| format!(r"{POD}\{path}");
    let program = Program::start_on("", &[]);
    let driver = program.driver().filesystem();
    assert_eq!(program.ctl(&["mkdir", &at("volumes")]).ok(), "");
    assert!(driver.path_exists(&at("volumes")).await.expect("an answer"));

    driver.mkdir(&at("staging")).await.expect("a directory");
    let file = at("vol_data.json");
    assert_eq!(program.ctl_with_input(&["write", &file], "{}\n").ok(), "");
    assert_eq!(program.ctl(&["cat", &file]).ok(), "{}\n");
    driver
        .create_symlink(Symlink {
            path: &at("link"),
            leads_to: &at("staging"),
        })
        .await
        .expect("a link");
    assert_eq!(
        program.ctl(&["readlink", &at("link")]).ok(),
        format!("{}\n", at("staging"))
    );
    assert_eq!(
        program
            .ctl(&["symlink", &at("staging"), &at("volumes/mount")])
            .ok(),
        ""
    );
    assert!(
        driver
            .is_symlink(&at(r"volumes\mount"))
            .await
            .expect("an answer")
    );

    texts::golden!("ls.txt", program.ctl(&["ls", POD]).ok());
    let stat = program
        .ctl(&[
            "stat",
            "/var/lib/kubelet/pods/1/VOL_DATA.json",
            "-o",
            "json",
        ])
        .json();
    assert_eq!(
        (&stat["name"], &stat["kind"], &stat["size_bytes"]),
        (&"vol_data.json".into(), &"file".into(), &3.into())
    );
    assert_eq!(
        program.ctl(&["stat", &at("link"), "-o", "json"]).json()["kind"],
        "symlink"
    );
    program
        .ctl(&["cat", &at("no")])
        .fails(4, &[&format!("cannot read the file {}: ", at("no"))]);
    program
        .ctl(&["stat", &at("no")])
        .fails(4, &[&format!("{} does not exist", at("no"))]);
    program
        .ctl(&["write", r"C:\file", "/nosuch"])
        .fails(2, &["cannot read the content from /nosuch"]);
}

#[test]
fn removing_follows_no_link_and_keeps_what_is_in_a_directory_unless_it_is_recursive() {
    let program = Program::start_on("", &[]);
    let done = |arguments: &[&str]| assert_eq!(program.ctl(arguments).ok(), "");
    done(&["mkdir", r"C:\csi\staging"]);
    done(&["mkdir", r"C:\csi\volumes"]);
    done(&["write", r"C:\csi\staging\file"]);
    done(&["symlink", r"C:\csi\staging", r"C:\csi\volumes\mount"]);
    program
        .ctl(&["rm", r"C:\csi\volumes"])
        .fails(1, &[r"cannot remove C:\csi\volumes: ", "(145)"]);
    done(&["rm", r"C:\csi\volumes\mount"]);
    done(&["symlink", r"C:\csi\staging", r"C:\csi\volumes\mount"]);
    done(&["rm", "-r", r"C:\csi\volumes"]);
    done(&["cat", r"C:\csi\staging\file"]);
    program
        .ctl(&["stat", r"C:\csi\volumes"])
        .fails(4, &[r"C:\csi\volumes does not exist"]);
}
