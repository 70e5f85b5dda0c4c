package main

import "slices"

func onDisk(grown bool) driver {
	if grown {
		return grownDisk()
	}
	return rawDisk()
}

// rawDisk is what upstream's own integration tests assert, on one raw disk of 1 GiB that may be destroyed.
func rawDisk() driver {
	return driver{"raw disk", []phase{
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
			ofVolume("ListVolumesOnDisk", `{"diskNumber":$disk}`).wants(`{"volumeIds":["`+volumeID+`"]}`).keeps("volume", "volumeIds.0"),
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

// grownDisk is for the same disk after it grew to 2 GiB: the volume grows to what is asked for, then to the end.
func grownDisk() driver {
	return driver{"grown disk", []phase{
		{"expand", []step{
			ofDisk("SetDiskState", `{"diskNumber":$disk,"isOnline":true}`),
			ofVolume("ListVolumesOnDisk", `{"diskNumber":$disk}`).wants(`{"volumeIds":["`+volumeID+`"]}`).keeps("volume", "volumeIds.0"),
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
