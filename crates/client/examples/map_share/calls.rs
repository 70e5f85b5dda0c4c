//! What a CSI node plugin for SMB shares calls. Each function may be repeated, as kubelet repeats
//! its calls.

use csi_proxy_client::{Client, Credentials, Error, ErrorKind};

/// Maps and unmaps a share of csi-proxy-sim's built-in node.
pub(crate) async fn run(client: &Client) -> Result<(), Error> {
    let share = r"\\fileserver\share";
    // Windows needs a domain; for a server without one, its name will do.
    let credentials = Credentials {
        username: r"FILESERVER\user",
        password: "password",
    };
    let staging = r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\smb.example.com\globalmount";
    stage(client, share, credentials, staging).await?;
    println!("Mapped {share} and linked it at {staging}.");
    unstage(client, share, staging).await?;
    println!("Removed the link and the mapping.");
    Ok(())
}

/// NodeStageVolume: maps `share`, and links it at `staging`.
pub(crate) async fn stage(
    client: &Client,
    share: &str,
    credentials: Credentials<'_>,
    staging: &str,
) -> Result<(), Error> {
    let files = client.filesystem();
    if let Some((parent, _)) = staging.rsplit_once('\\') {
        files.mkdir(parent).await?;
    }
    // A link of an earlier attempt, or a directory that kubelet has created. This fails if the
    // directory has contents.
    if files.path_exists(staging).await? {
        files.rmdir(staging).await?;
    }
    client
        .smb()
        .new_smb_global_mapping(share, Some(staging), Some(credentials))
        .await
}

/// NodeUnstageVolume: removes the link and the mapping. A plugin must keep the mapping while other
/// volumes use the share.
pub(crate) async fn unstage(client: &Client, share: &str, staging: &str) -> Result<(), Error> {
    if client.filesystem().path_exists(staging).await? {
        client.filesystem().rmdir(staging).await?;
    }
    match client.smb().remove_smb_global_mapping(share).await {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
