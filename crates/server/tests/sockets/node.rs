//! The simulated node of most tests, also of those of the client.

use os_sim::Sim;

pub(crate) const PORTAL: &str = "10.0.0.10";
pub(crate) const IQN: &str = "iqn.2026-01.io.k8s.csi:chap";

/// A node on which every call can succeed. Disk 1 is raw and disk 2 partitioned.
pub(crate) fn node() -> Sim {
    os_sim::node()
        .bios_serial("VMware-56 4d 4e 0e")
        .disk(10 << 30)
        .page83_ascii("Google  pvc-x")
        .serial("vol0abc_00000001.")
        .disk(10 << 30)
        .partitioned()
        .dir(r"C:\var\lib\kubelet\plugins\mine")
        .smb_server("fileserver")
        .share("share")
        .user("anna", "hunter2")
        .iscsi_portal(PORTAL, 3260)
        .target(IQN)
        .lun(5 << 30)
        .chap("initiator", "initiator-12")
        .service("MSiSCSI", "Microsoft iSCSI Initiator Service")
        .running()
        .service("vds", "Virtual Disk")
        .build()
}
