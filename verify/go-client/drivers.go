package main

import (
	"slices"
	"strings"
)

// A driver is what one CSI driver calls, in its own order.
type driver struct {
	name   string
	phases []phase
}

// A phase is one call that kubelet makes to the driver.
type phase struct {
	name  string
	calls []step
}

var (
	ofDisk   = in("disk/v1")
	ofFiles  = in("filesystem/v1")
	ofVolume = in("volume/v1")
	ofSmb    = in("smb/v1")
	ofIscsi  = in("iscsi/v1alpha2")
)

func drivers() []driver {
	return []driver{azureDisk(), azureFile(), gcePD(), awsEBS(), vSphere(), longhorn()}
}

// format is what all drivers do with a disk's volume, but for where they mount it.
var format = []step{
	ofVolume("ListVolumesOnDisk", `{"diskNumber":$found}`).keeps("volume", "volumeIds.0"),
	ofVolume("IsVolumeFormatted", `{"volumeId":"$volume"}`).keeps("formatted", "formatted"),
	ofVolume("FormatVolume", `{"volumeId":"$volume"}`).onlyIf("formatted", "false"),
}

// publish links the staged volume into the pod, replacing what is there.
var publish = []step{
	ofFiles("PathExists", `{"path":"$pods\\mount"}`),
	ofFiles("Rmdir", `{"path":"$pods\\mount","force":true}`),
	ofFiles("Mkdir", `{"path":"$pods"}`),
	ofFiles("PathExists", `{"path":"$pods\\mount"}`).wants(`{"exists":false}`),
	ofFiles("CreateSymlink", `{"sourcePath":"$work\\globalmount","targetPath":"$pods\\mount"}`),
	ofFiles("IsSymlink", `{"path":"$pods\\mount"}`).wants(`{"isSymlink":true}`),
}

var unpublish = []step{ofFiles("Rmdir", `{"path":"$pods\\mount","force":true}`)}

// makeStaging stands for kubelet or the driver's container, which make the staging directory without us.
var makeStaging = ofFiles("Mkdir", `{"path":"$work\\globalmount"}`)

// unmount is how gce-pd, aws-ebs and vsphere unstage: the disk's number is asked for when nothing is mounted any more.
var unmount = []step{
	ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$work\\globalmount"}`).wants(`{"volumeId":"$volume"}`),
	ofVolume("UnmountVolume", `{"volumeId":"$volume","targetPath":"$work\\globalmount"}`),
	ofFiles("Rmdir", `{"path":"$work\\globalmount","force":true}`),
	ofVolume("GetDiskNumberFromVolumeID", `{"volumeId":"$volume"}`).wants(`{"diskNumber":$found}`),
	ofDisk("SetDiskState", `{"diskNumber":$found,"isOnline":false}`),
}

func azureDisk() driver {
	return driver{"azuredisk", []phase{
		{"stage", slices.Concat([]step{
			makeStaging,
			ofDisk("Rescan", `{}`),
			ofDisk("ListDiskLocations", `{}`).finds("found", "diskLocations", "LUNID", equals(node["lun"])),
			// It counts on whoever attached the disk for this; on the node of these tests that is nobody.
			ofDisk("SetDiskState", `{"diskNumber":$found,"isOnline":true}`),
			ofFiles("PathExists", `{"path":"$work\\globalmount"}`).wants(`{"exists":true}`),
			ofFiles("IsSymlink", `{"path":"$work\\globalmount"}`).wants(`{"isSymlink":false}`),
			ofDisk("PartitionDisk", `{"diskNumber":$found}`),
		}, format, []step{
			ofVolume("MountVolume", `{"volumeId":"$volume","targetPath":"$work\\globalmount"}`),
			ofVolume("ResizeVolume", `{"volumeId":"$found"}`),
		})},
		{"publish", publish},
		{"stats", []step{
			ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$raw\\globalmount"}`).wants(`{"volumeId":"$volume"}`),
			ofVolume("GetVolumeStats", `{"volumeId":"$volume"}`).wants(`{"totalBytes":"` + positive + `"}`),
		}},
		{"expand", []step{
			ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$pods\\mount"}`).wants(`{"volumeId":"$volume"}`),
			ofVolume("GetVolumeStats", `{"volumeId":"$volume"}`).keeps("total", "totalBytes"),
			ofVolume("ResizeVolume", `{"volumeId":"$volume"}`),
			ofVolume("GetVolumeStats", `{"volumeId":"$volume"}`).wants(`{"totalBytes":"$total"}`),
		}},
		{"unpublish", unpublish},
		{"unstage", []step{
			ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$raw\\globalmount"}`).wants(`{"volumeId":"$volume"}`),
			ofVolume("WriteVolumeCache", `{"volumeId":"$volume"}`),
			ofFiles("Rmdir", `{"path":"$work\\globalmount","force":true}`),
			ofFiles("PathExists", `{"path":"$work\\globalmount"}`).wants(`{"exists":false}`),
			// The data is still there: only the way to it was removed.
			ofVolume("IsVolumeFormatted", `{"volumeId":"$volume"}`).wants(`{"formatted":true}`),
		}},
	}}
}

func azureFile() driver {
	return driver{"azurefile and smb", []phase{
		{"stage", []step{
			makeStaging,
			ofFiles("PathExists", `{"path":"$work\\globalmount"}`).wants(`{"exists":true}`),
			ofFiles("IsSymlink", `{"path":"$work\\globalmount"}`).wants(`{"isSymlink":false}`),
			ofFiles("Rmdir", `{"path":"$work\\globalmount","force":true}`),
			ofFiles("PathExists", `{"path":"$work"}`).wants(`{"exists":true}`),
			ofSmb("NewSmbGlobalMapping",
				`{"remotePath":"$share\\","localPath":"$work\\globalmount","username":"$user","password":"$password"}`),
			ofFiles("IsSymlink", `{"path":"$work\\globalmount"}`).wants(`{"isSymlink":true}`),
		}},
		{"publish", publish},
		{"unpublish", unpublish},
		{"unstage", []step{
			ofFiles("Rmdir", `{"path":"$work\\globalmount","force":true}`),
			ofSmb("RemoveSmbGlobalMapping", `{"remotePath":"$share"}`),
		}},
	}}
}

func gcePD() driver {
	lastWord := func(page83 string) bool {
		words := strings.Fields(page83)
		return len(words) > 0 && words[len(words)-1] == node["gceName"]
	}
	return driver{"gce-pd", []phase{
		{"stage", slices.Concat([]step{
			makeStaging,
			ofDisk("ListDiskIDs", `{}`).finds("found", "diskIDs", "page83", lastWord),
			ofFiles("IsSymlink", `{"path":"$raw\\globalmount"}`).wants(`{"isSymlink":false}`),
			ofDisk("GetDiskStats", `{"diskNumber":$found}`).wants(`{"totalBytes":"` + positive + `"}`),
			ofDisk("PartitionDisk", `{"diskNumber":$found}`),
			ofDisk("SetDiskState", `{"diskNumber":$found,"isOnline":true}`),
		}, format, []step{
			ofVolume("MountVolume", `{"volumeId":"$volume","targetPath":"$raw\\globalmount"}`),
			ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$raw\\globalmount"}`).wants(`{"volumeId":"$volume"}`),
			ofVolume("ResizeVolume", `{"volumeId":"$volume"}`),
		})},
		{"publish", slices.Concat([]step{
			ofFiles("IsSymlink", `{"path":"$raw\\pod"}`).fails(""),
		}, publish)},
		{"stats", []step{
			ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$raw\\globalmount"}`).wants(`{"volumeId":"$volume"}`),
			ofVolume("GetVolumeStats", `{"volumeId":"$volume"}`).wants(`{"totalBytes":"` + positive + `"}`),
		}},
		{"expand", []step{
			ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$raw\\globalmount"}`).wants(`{"volumeId":"$volume"}`),
			ofVolume("ResizeVolume", `{"volumeId":"$volume"}`),
			ofDisk("GetDiskStats", `{"diskNumber":$found}`).wants(`{"totalBytes":"` + positive + `"}`),
		}},
		{"unpublish", unpublish},
		{"unstage", slices.Concat([]step{
			ofFiles("PathExists", `{"path":"$work\\globalmount"}`).wants(`{"exists":true}`),
		}, unmount)},
		// A disk that was unstaged is offline and partitioned; it is partitioned again before it is brought online.
		{"stage again", slices.Concat([]step{
			makeStaging,
			ofDisk("GetDiskState", `{"diskNumber":$found}`).wants(`{"isOnline":false}`),
			ofDisk("PartitionDisk", `{"diskNumber":$found}`),
			ofDisk("SetDiskState", `{"diskNumber":$found,"isOnline":true}`),
			ofVolume("ListVolumesOnDisk", `{"diskNumber":$found}`).wants(`{"volumeIds":["$volume"]}`),
			ofVolume("IsVolumeFormatted", `{"volumeId":"$volume"}`).wants(`{"formatted":true}`),
			ofVolume("MountVolume", `{"volumeId":"$volume","targetPath":"$raw\\globalmount"}`),
		}, unmount)},
	}}
}

func awsEBS() driver {
	const nothingMounted = `(Get-Item -Path \S+).Target, output: , error: <nil>|because it does not exist`
	return driver{"aws-ebs", []phase{
		{"stage", slices.Concat([]step{
			ofDisk("ListDiskIDs", `{}`).finds("found", "diskIDs", "serialNumber", func(serial string) bool {
				return strings.Contains(serial, node["awsId"])
			}),
			ofFiles("PathExists", `{"path":"$work\\globalmount"}`),
			ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$work\\globalmount"}`).fails(nothingMounted),
			ofFiles("Mkdir", `{"path":"$work\\globalmount"}`),
			ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$work\\globalmount"}`).fails(nothingMounted),
			ofDisk("PartitionDisk", `{"diskNumber":$found}`),
			ofDisk("SetDiskState", `{"diskNumber":$found,"isOnline":true}`),
		}, format, []step{
			ofVolume("MountVolume", `{"volumeId":"$volume","targetPath":"$work\\globalmount"}`),
			ofDisk("Rescan", `{}`),
			ofDisk("GetDiskStats", `{"diskNumber":$found}`).wants(`{"totalBytes":"` + positive + `"}`),
			ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$work\\globalmount"}`).wants(`{"volumeId":"$volume"}`),
			ofVolume("GetVolumeStats", `{"volumeId":"$volume"}`).wants(`{"totalBytes":"` + positive + `"}`),
		})},
		{"stage a second time", []step{
			ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$work\\globalmount"}`).wants(`{"volumeId":"$volume"}`),
			ofVolume("GetDiskNumberFromVolumeID", `{"volumeId":"$volume"}`).wants(`{"diskNumber":$found}`),
		}},
		{"publish", publish},
		{"expand", []step{
			ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$pods\\mount"}`).wants(`{"volumeId":"$volume"}`),
			ofVolume("GetDiskNumberFromVolumeID", `{"volumeId":"$volume"}`).wants(`{"diskNumber":$found}`),
			ofDisk("ListDiskIDs", `{}`),
			ofDisk("Rescan", `{}`),
			ofVolume("ResizeVolume", `{"volumeId":"$volume"}`),
			ofDisk("GetDiskStats", `{"diskNumber":$found}`).wants(`{"totalBytes":"` + positive + `"}`),
		}},
		{"unpublish", unpublish},
		{"unstage", slices.Concat([]step{
			ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$work\\globalmount"}`).wants(`{"volumeId":"$volume"}`),
			ofVolume("GetDiskNumberFromVolumeID", `{"volumeId":"$volume"}`).wants(`{"diskNumber":$found}`),
		}, unmount)},
		{"unstage a second time", []step{
			ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$work\\globalmount"}`).fails(nothingMounted),
		}},
	}}
}

func vSphere() driver {
	return driver{"vsphere", []phase{
		{"stage", slices.Concat([]step{
			makeStaging,
			ofFiles("PathExists", `{"path":"$work\\globalmount"}`).wants(`{"exists":true}`),
			ofDisk("ListDiskIDs", `{}`).finds("found", "diskIDs", "page83", equals(node["diskUuid"])),
			ofDisk("PartitionDisk", `{"diskNumber":$found}`),
			ofDisk("SetDiskState", `{"diskNumber":$found,"isOnline":true}`),
		}, format, []step{
			ofVolume("MountVolume", `{"volumeId":"$volume","targetPath":"$work\\globalmount"}`),
		})},
		{"publish", publish},
		{"stats", []step{
			ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$raw\\globalmount"}`).wants(`{"volumeId":"$volume"}`),
			ofVolume("GetVolumeStats", `{"volumeId":"$volume"}`).wants(`{"totalBytes":"` + positive + `"}`),
		}},
		{"expand", []step{
			ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$work\\globalmount"}`).wants(`{"volumeId":"$volume"}`),
			ofDisk("Rescan", `{}`),
			ofVolume("GetDiskNumberFromVolumeID", `{"volumeId":"$volume"}`).wants(`{"diskNumber":$found}`),
			ofDisk("GetDiskStats", `{"diskNumber":$found}`).wants(`{"totalBytes":"` + positive + `"}`),
			ofDisk("SetDiskState", `{"diskNumber":$found,"isOnline":true}`),
			ofVolume("ResizeVolume", `{"volumeId":"$volume"}`),
			ofVolume("GetVolumeStats", `{"volumeId":"$volume"}`).wants(`{"totalBytes":"` + positive + `"}`),
		}},
		{"unpublish", unpublish},
		{"unstage", unmount},
		{"node", []step{
			call("system/v1alpha1", "GetBIOSSerialNumber", `{}`).wants(`{"serialNumber":"~^VMware-"}`),
		}},
	}}
}

func longhorn() driver {
	const target = `{"targetPortal":{"targetAddress":"$portal"},"iqn":"$iqn"}`
	const portal = `{"targetPortal":{"targetAddress":"$portal"}}`
	return driver{"longhorn", []phase{
		{"stage", slices.Concat([]step{
			makeStaging,
			ofIscsi("AddTargetPortal", portal),
			ofIscsi("DiscoverTargetPortal", portal).wants(`{"iqns":["$iqn"]}`),
			ofIscsi("ConnectTarget", target),
			ofIscsi("GetTargetDisks", target).wants(`{"diskIDs":["~^[0-9]+$"]}`).keeps("found", "diskIDs.0"),
			ofDisk("SetDiskState", `{"diskNumber":$found,"isOnline":true}`),
			ofDisk("PartitionDisk", `{"diskNumber":$found}`),
		}, format, []step{
			ofVolume("ListVolumesOnDisk", `{"diskNumber":$found}`).wants(`{"volumeIds":["$volume"]}`),
			ofVolume("MountVolume", `{"volumeId":"$volume","targetPath":"$work\\globalmount"}`),
		})},
		{"publish", []step{
			ofFiles("Mkdir", `{"path":"$pods\\mount"}`),
			ofFiles("PathExists", `{"path":"$pods\\mount"}`).wants(`{"exists":true}`),
			ofFiles("IsSymlink", `{"path":"$pods\\mount"}`).wants(`{"isSymlink":false}`),
			ofFiles("Rmdir", `{"path":"$pods\\mount"}`),
			ofFiles("CreateSymlink", `{"sourcePath":"$work\\globalmount","targetPath":"$pods\\mount"}`),
			ofFiles("IsSymlink", `{"path":"$pods\\mount"}`).wants(`{"isSymlink":true}`),
		}},
		{"unpublish", unpublish},
		{"unstage", []step{
			ofVolume("UnmountVolume", `{"volumeId":"$volume","targetPath":"$work\\globalmount"}`),
			ofDisk("SetDiskState", `{"diskNumber":$found,"isOnline":false}`),
			ofIscsi("DisconnectTarget", target),
			ofFiles("Rmdir", `{"path":"$work\\globalmount","force":true}`),
		}},
	}}
}

func equals(want string) func(string) bool {
	return func(have string) bool { return strings.EqualFold(have, want) }
}
