//! smb and azurefile, whose mounters have one origin: a share is mapped, and staged by a link to it.

use super::driver::{Driver, Outcome};
use super::v1::{Filesystem, Smb};

/// A volume of one of the two drivers.
struct Share {
    remote: &'static str,
    user: &'static str,
    password: &'static str,
    staging: &'static str,
    parent: &'static str,
    pod: &'static str,
    target: &'static str,
}

const OF_SMB: Share = Share {
    remote: r"\\fileserver\share",
    user: r"example\user",
    password: "password",
    staging: r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\smb.csi.k8s.io\2b\globalmount",
    parent: r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\smb.csi.k8s.io\2b",
    pod: r"C:\var\lib\kubelet\pods\smb\volumes\kubernetes.io~csi\pvc",
    target: r"C:\var\lib\kubelet\pods\smb\volumes\kubernetes.io~csi\pvc\mount",
};

const OF_AZUREFILE: Share = Share {
    remote: r"\\fileserver\share",
    user: r"AZURE\account",
    password: "key:with/signs==",
    staging: r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\file.csi.azure.com\3c\globalmount",
    parent: r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\file.csi.azure.com\3c",
    pod: r"C:\var\lib\kubelet\pods\azurefile\volumes\kubernetes.io~csi\pvc",
    target: r"C:\var\lib\kubelet\pods\azurefile\volumes\kubernetes.io~csi\pvc\mount",
};

/// The smb driver, which removes the mapping once nothing uses it.
pub(super) async fn play_smb(driver: &Driver<'_>) -> Outcome {
    OF_SMB.stage_to_unpublish(driver).await?;
    driver.phase("NodeUnstageVolume, with remove-smb-mapping-during-unmount");
    let link = driver.container().read_link(OF_SMB.staging)?;
    let mut parts = link.trim_end_matches('\\').split('\\').filter(|part| !part.is_empty());
    let named = (parts.next(), parts.next());
    driver.must("host and share can be read from the link", named == (Some("fileserver"), Some("share")));
    Filesystem(driver).rmdir(OF_SMB.staging, true).await?;
    Smb(driver).remove_smb_global_mapping(&link).await?;
    OF_SMB.must_be_unstaged(driver);
    driver.must("the mapping is gone", mappings(driver).is_empty());
    Ok(())
}

/// The azurefile driver, which leaves the mapping for the next volume on the share.
pub(super) async fn play_azurefile(driver: &Driver<'_>) -> Outcome {
    OF_AZUREFILE.stage_to_unpublish(driver).await?;
    driver.phase("NodeUnstageVolume");
    Filesystem(driver).rmdir(OF_AZUREFILE.staging, true).await?;
    OF_AZUREFILE.must_be_unstaged(driver);
    driver.must("the mapping stays", mappings(driver) == [OF_AZUREFILE.remote]);
    Ok(())
}

impl Share {
    async fn stage_to_unpublish(&self, driver: &Driver<'_>) -> Outcome {
        let files = Filesystem(driver);
        driver.phase("NodeStageVolume");
        driver.kubelet().mkdir_all(self.staging)?;
        replace_directory(driver, self.staging).await?;
        if !files.path_exists(self.parent).await? {
            files.mkdir(self.parent).await?;
        }
        Smb(driver).new_smb_global_mapping(self.remote, self.staging, self.user, self.password).await?;
        driver.must("one mapping, of the share", mappings(driver) == [self.remote]);
        driver.must_link(self.staging, &format!(r"{}\", self.remote));
        driver.must("the mapping encrypts", driver.sim().smb_mappings().iter().all(|mapping| mapping.privacy));

        driver.phase("NodePublishVolume");
        driver.kubelet().mkdir_all(self.pod)?;
        replace_directory(driver, self.target).await?;
        files.create_symlink(self.staging, self.target).await?;
        driver.must_link(self.target, self.staging);
        let file = format!(r"{}\{}.txt", self.target, self.user.replace('\\', "-"));
        driver.pod().write_file(&file, "kept")?;
        let name = file.rsplit('\\').next().unwrap_or_default();
        let on_share = driver.container().read_dir(self.staging)?;
        driver.must("the pod's file is on the share", on_share.iter().any(|entry| entry == name));

        driver.phase("NodeGetVolumeStats");
        let total = driver.container().stat_fs(self.target)?;
        driver.must("the container sees the share's size", total > 0);

        driver.phase("NodeUnpublishVolume");
        files.rmdir(self.target, true).await?;
        driver.must(
            "the share is untouched",
            driver.container().read_file(&file.replace(self.target, self.staging))? == "kept",
        );
        Ok(())
    }

    fn must_be_unstaged(&self, driver: &Driver<'_>) {
        let door = driver.sim().external();
        driver.must("the links are gone", !door.exists(self.staging) && !door.exists(self.target));
    }
}

/// Makes sure that there is nothing at `path`: the drivers make a directory there in their container, then find that
/// a link is to be where it is.
async fn replace_directory(driver: &Driver<'_>, path: &str) -> Outcome {
    let files = Filesystem(driver);
    if files.path_exists(path).await? && files.is_symlink(path).await? {
        driver.container().read_dir(path)?;
    }
    driver.container().mkdir_all(path)?;
    if files.path_exists(path).await? {
        files.rmdir(path, true).await?;
    }
    Ok(())
}

fn mappings(driver: &Driver<'_>) -> Vec<String> {
    driver.sim().smb_mappings().iter().map(|mapping| mapping.remote.clone()).collect()
}
