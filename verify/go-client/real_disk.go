package main

import "slices"

// makeStaging creates the staging directory, as kubelet does without csi-proxy.
var makeStaging = ofFiles("Mkdir", `{"path":"$work\\globalmount"}`)

// publish links the staged volume into the pod.
var publish = []step{
	ofFiles("PathExists", `{"path":"$pods\\mount"}`),
	ofFiles("Rmdir", `{"path":"$pods\\mount","force":true}`),
	ofFiles("Mkdir", `{"path":"$pods"}`),
	ofFiles("PathExists", `{"path":"$pods\\mount"}`).wants(`{"exists":false}`),
	ofFiles("CreateSymlink", `{"sourcePath":"$work\\globalmount","targetPath":"$pods\\mount"}`),
	ofFiles("IsSymlink", `{"path":"$pods\\mount"}`).wants(`{"isSymlink":true}`),
}

var unpublish = []step{ofFiles("Rmdir", `{"path":"$pods\\mount","force":true}`)}

func onDisk(grown bool) driver {
	if grown {
		return grownDisk()
	}
	return rawDisk()
}

// rawDisk returns the calls of upstream's integration tests, on a raw disk of 1 GiB whose data may be lost.
func rawDisk() driver {
	return driver{"raw disk", variables, []phase{
		{"disk", []step{
			ofDisk("ListDiskLocations", `{}`),
			ofDisk("ListDiskIDs", `{}`),
			ofDisk("Rescan", `{}`),
			ofDisk("GetDiskStats", `{"diskNumber":$disk}`).wants(`{"totalBytes":"~^10[567][0-9]{7}$"}`),
			ofDisk("SetDiskState", `{"diskNumber":$disk,"isOnline":true}`),
			ofDisk("GetDiskState", `{"diskNumber":$disk}`).wants(`{"isOnline":true}`),
			ofDisk("PartitionDisk", `{"diskNumber":$disk}`),
			ofDisk("SetDiskState", `{"diskNumber":$disk,"isOnline":false}`),
			ofDisk("GetDiskState", `{"diskNumber":$disk}`).wants(`{"isOnline":false}`),
			ofDisk("PartitionDisk", `{"diskNumber":$disk}`),
			ofDisk("SetDiskState", `{"diskNumber":$disk,"isOnline":true}`),
		}},
		{"volume", slices.Concat([]step{
			ofVolume("ListVolumesOnDisk", `{"diskNumber":$disk}`).wants(`{"volumeIds":["<volume>"]}`).keeps("volume", "volumeIds.0"),
			ofVolume("IsVolumeFormatted", `{"volumeId":"$volume"}`).wants(`{"formatted":false}`),
			ofVolume("FormatVolume", `{"volumeId":"$volume"}`),
			ofVolume("IsVolumeFormatted", `{"volumeId":"$volume"}`).wants(`{"formatted":true}`),
			ofVolume("FormatVolume", `{"volumeId":"$volume"}`),
			ofVolume("GetVolumeStats", `{"volumeId":"$volume"}`).wants(`{"totalBytes":"~^10[567][0-9]{7}$"}`),
			ofVolume("ResizeVolume", `{"volumeId":"$volume"}`),
			ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$work\\globalmount"}`).fails("because it does not exist"),
			makeStaging,
			ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$work\\globalmount"}`).fails("because it does not exist"),
			ofVolume("MountVolume", `{"volumeId":"$volume","targetPath":"$work\\globalmount"}`),
			ofVolume("MountVolume", `{"volumeId":"$volume","targetPath":"$work\\globalmount"}`),
			ofFiles("IsSymlink", `{"path":"$raw\\globalmount"}`).wants(`{"isSymlink":true}`),
		}, publish, []step{
			ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$pods\\mount"}`).wants(`{"volumeId":"$volume"}`),
			call("volume/v2alpha1", "GetClosestVolumeIDFromTargetPath", `{"targetPath":"$pods\\mount"}`).wants(`{"volumeId":"$volume"}`),
			ofVolume("WriteVolumeCache", `{"volumeId":"$volume"}`),
		}, unpublish, []step{
			ofVolume("UnmountVolume", `{"volumeId":"$volume","targetPath":"$work\\globalmount"}`),
			ofVolume("UnmountVolume", `{"volumeId":"$volume","targetPath":"$work\\globalmount"}`).fails(""),
			ofVolume("GetDiskNumberFromVolumeID", `{"volumeId":"$volume"}`).wants(`{"diskNumber":$disk}`),
			ofFiles("Rmdir", `{"path":"$work\\globalmount","force":true}`),
		})},
	}}
}

// grownDisk returns the calls for the same disk after it has grown to 2 GiB: the volume is resized to a given size,
// then to the end of the disk.
func grownDisk() driver {
	return driver{"grown disk", variables, []phase{
		{"expand", []step{
			ofDisk("SetDiskState", `{"diskNumber":$disk,"isOnline":true}`),
			ofVolume("ListVolumesOnDisk", `{"diskNumber":$disk}`).wants(`{"volumeIds":["<volume>"]}`).keeps("volume", "volumeIds.0"),
			ofVolume("IsVolumeFormatted", `{"volumeId":"$volume"}`).wants(`{"formatted":true}`),
			ofVolume("ResizeVolume", `{"volumeId":"$volume","sizeBytes":"1610612736"}`),
			ofVolume("GetVolumeStats", `{"volumeId":"$volume"}`).wants(`{"totalBytes":"~^1(59|60|61)[0-9]{7}$"}`),
			ofVolume("ResizeVolume", `{"volumeId":"$volume"}`),
			ofVolume("GetVolumeStats", `{"volumeId":"$volume"}`).wants(`{"totalBytes":"~^21[0-9]{8}$"}`),
			ofVolume("ResizeVolume", `{"volumeId":"$volume"}`),
			// Unstaging by removing the mounted folder leaves the data alone.
			makeStaging,
			ofVolume("MountVolume", `{"volumeId":"$volume","targetPath":"$work\\globalmount"}`),
			ofFiles("Rmdir", `{"path":"$work\\globalmount","force":true}`),
			ofVolume("IsVolumeFormatted", `{"volumeId":"$volume"}`).wants(`{"formatted":true}`),
			ofDisk("SetDiskState", `{"diskNumber":$disk,"isOnline":false}`),
			ofDisk("GetDiskStats", `{"diskNumber":$disk}`).wants(`{"totalBytes":"~^21[0-9]{8}$"}`),
		}},
	}}
}
