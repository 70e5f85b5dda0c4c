//! azurefile as it was before v1: it leaves the backslash at the end of the share.

use api::filesystem::v1beta1::PathContext;

use super::beta::{Filesystem, Smb};
use super::driver::{Driver, Outcome};

const REMOTE: &str = r"\\fileserver\share\";
const USER: &str = r"AZURE\account";
const PASSWORD: &str = "key:with/signs==";
const STAGING: &str = r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\pv\share-beta\globalmount";
const POD: &str = r"C:\var\lib\kubelet\pods\azurefile-beta\volumes\kubernetes.io~csi\pvc";
const TARGET: &str = r"C:\var\lib\kubelet\pods\azurefile-beta\volumes\kubernetes.io~csi\pvc\mount";

pub(super) async fn play(driver: &Driver<'_>) -> Outcome {
    let files = Filesystem(driver);
    driver.phase("NodeStageVolume");
    driver.kubelet().mkdir_all(STAGING)?;
    replace_directory(driver, STAGING, PathContext::Plugin).await?;
    Smb(driver).new_smb_global_mapping(REMOTE, STAGING, USER, PASSWORD).await?.checked()?;
    let mappings = driver.sim().smb_mappings();
    driver.must("one mapping, of the share", mappings.len() == 1 && mappings[0].remote == r"\\fileserver\share");
    driver.must_link(STAGING, REMOTE);

    driver.phase("NodePublishVolume");
    driver.kubelet().mkdir_all(POD)?;
    replace_directory(driver, TARGET, PathContext::Pod).await?;
    files.link_path(STAGING, TARGET).await?.checked()?;
    driver.must_link(TARGET, STAGING);
    driver.pod().write_file(&format!(r"{TARGET}\beta.txt"), "kept")?;

    driver.phase("NodeUnpublishVolume");
    files.rmdir(TARGET, PathContext::Pod).await?.checked()?;

    driver.phase("NodeUnstageVolume");
    let kept = driver.container().read_file(&format!(r"{STAGING}\beta.txt"))?;
    driver.must("the share is untouched", kept == "kept");
    files.rmdir(STAGING, PathContext::Plugin).await?.checked()?;
    let door = driver.sim().external();
    driver.must("the links are gone", !door.exists(STAGING) && !door.exists(TARGET));
    Ok(())
}

/// Makes sure that there is nothing at `path`, as today's driver does.
async fn replace_directory(driver: &Driver<'_>, path: &str, context: PathContext) -> Outcome {
    let files = Filesystem(driver);
    if files.path_exists(path, context).await?.checked()? && files.is_mount_point(path).await?.checked()? {
        driver.container().read_dir(path)?;
    }
    driver.container().mkdir_all(path)?;
    if files.path_exists(path, context).await?.checked()? {
        files.rmdir(path, context).await?.checked()?;
    }
    Ok(())
}
