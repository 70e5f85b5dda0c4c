package main

import "slices"

// everyRPC calls each RPC of each group-version at least once, in an order that makes sense on one node.
func everyRPC() []step {
	return slices.Concat(
		[]step{call("filesystem/v1", "Mkdir", `{"path":"$work"}`), call("filesystem/v1", "Mkdir", `{"path":"$pods"}`)},
		filesystem("v1"), filesystem("v1beta2"), filesystem("v2alpha1"),
		oldFilesystem("v1alpha1"), oldFilesystem("v1beta1"),
		// The disk arrives as one of another node may: offline and read-only.
		[]step{
			ofDisk("GetDiskState", `{"diskNumber":$disk}`).wants(`{"isOnline":false}`),
			ofDisk("SetDiskState", `{"diskNumber":$disk,"isOnline":true}`),
		},
		disk("v1"), disk("v1beta3"), diskByText("v1beta2"), diskByText("v1beta1"), diskByText("v1alpha1"),
		volume("v1"), volume("v1beta3"), volume("v2alpha1"),
		oldVolume("v1beta2"), oldVolume("v1beta1"), oldVolume("v1alpha1"),
		smb("v1"), smb("v1beta2"), smb("v1beta1"), smb("v1alpha1"),
		iscsi("v1alpha1"), iscsi("v1alpha2"),
		system("v1alpha1"),
		[]step{
			call("filesystem/v1", "Rmdir", `{"path":"$work","force":true}`),
			call("filesystem/v1", "Rmdir", `{"path":"$pods","force":true}`),
		},
	)
}

func filesystem(version string) []step {
	rpc := in("filesystem/" + version)
	steps := []step{
		rpc("Mkdir", `{"path":"$work\\stage"}`),
		rpc("Mkdir", `{"path":"$work\\stage"}`),
		rpc("PathExists", `{"path":"$work\\stage"}`).wants(`{"exists":true}`),
		rpc("IsSymlink", `{"path":"$work\\stage"}`).wants(`{"isSymlink":false}`),
		rpc("CreateSymlink", `{"sourcePath":"$work\\stage","targetPath":"$pods\\link"}`),
		rpc("CreateSymlink", `{"sourcePath":"$work\\stage","targetPath":"$pods\\link"}`),
		rpc("IsSymlink", `{"path":"$pods\\link"}`).wants(`{"isSymlink":true}`),
		rpc("Rmdir", `{"path":"$pods\\link","force":true}`),
		rpc("PathExists", `{"path":"$pods\\link"}`).wants(`{"exists":false}`),
		rpc("PathExists", `{"path":"$work\\stage"}`).wants(`{"exists":true}`),
	}
	if version == "v2alpha1" {
		steps = append(steps,
			rpc("Mkdir", `{"path":"$work\\stage\\inside"}`),
			rpc("Rmdir", `{"path":"$work\\stage"}`).fails(""),
			rpc("RmdirContents", `{"path":"$work\\stage"}`),
			rpc("PathExists", `{"path":"$work\\stage\\inside"}`).wants(`{"exists":false}`),
		)
	}
	return append(steps,
		rpc("Rmdir", `{"path":"$work\\stage"}`),
		rpc("Rmdir", `{"path":"$work\\stage"}`).fails("NotFound"),
		rpc("Rmdir", `{"path":"$work\\stage","force":true}`),
		rpc("IsSymlink", `{"path":"$work\\stage"}`).fails("NotFound"),
		rpc("Mkdir", `{"path":"C:\\foo\\bar"}`).fails("InvalidArgument|PermissionDenied"),
		rpc("Mkdir", `{"path":"$work\\..\\..\\..\\system32"}`).fails("InvalidArgument"),
	)
}

func oldFilesystem(version string) []step {
	rpc := in("filesystem/" + version)
	return []step{
		rpc("Mkdir", `{"path":"$work\\stage","context":"PLUGIN"}`).wants(`{"error":""}`),
		rpc("PathExists", `{"path":"$work\\stage","context":"PLUGIN"}`).wants(`{"error":"","exists":true}`),
		rpc("LinkPath", `{"sourcePath":"$work\\stage","targetPath":"$pods\\link"}`).wants(`{"error":""}`),
		rpc("IsMountPoint", `{"path":"$pods\\link"}`).wants(`{"error":"","isMountPoint":true}`),
		rpc("Rmdir", `{"path":"$pods\\link","context":"POD","force":true}`).wants(`{"error":""}`),
		rpc("Rmdir", `{"path":"$work\\stage","context":"PLUGIN"}`).wants(`{"error":""}`),
		rpc("PathExists", `{"path":"$work\\stage","context":"PLUGIN"}`).wants(`{"error":"","exists":false}`),
		rpc("IsMountPoint", `{"path":"$work\\stage"}`).fails(""),
	}
}

func disk(version string) []step {
	rpc := in("disk/" + version)
	return []step{
		rpc("ListDiskLocations", `{}`).wants(`{"diskLocations":{"$disk":{"LUNID":"~^[0-9]+$"}}}`),
		rpc("ListDiskIDs", `{}`).wants(`{"diskIDs":{"$disk":{"page83":"~[^ ]"}}}`),
		rpc("GetDiskStats", `{"diskNumber":$disk}`).wants(`{"totalBytes":"<positive>"}`),
		rpc("GetDiskStats", `{"diskNumber":4000}`).fails("NotFound"),
		rpc("SetDiskState", `{"diskNumber":$disk,"isOnline":false}`),
		rpc("SetDiskState", `{"diskNumber":$disk,"isOnline":false}`),
		rpc("GetDiskState", `{"diskNumber":$disk}`).wants(`{"isOnline":false}`),
		rpc("GetDiskStats", `{"diskNumber":$disk}`).wants(`{"totalBytes":"<positive>"}`),
		rpc("SetDiskState", `{"diskNumber":$disk,"isOnline":true}`),
		rpc("GetDiskState", `{"diskNumber":$disk}`).wants(`{"isOnline":true}`),
		rpc("PartitionDisk", `{"diskNumber":$disk}`),
		rpc("PartitionDisk", `{"diskNumber":$disk}`),
		rpc("Rescan", `{}`),
	}
}

// diskByText returns the calls of the versions in which disk numbers are strings.
func diskByText(version string) []step {
	rpc := in("disk/" + version)
	steps := []step{
		rpc("ListDiskLocations", `{}`).wants(`{"diskLocations":{"$disk":{"LUNID":"~^[0-9]+$"}}}`),
		rpc("PartitionDisk", `{"diskID":"$disk"}`),
		rpc("PartitionDisk", `{"diskID":"one"}`).fails("InvalidArgument"),
		rpc("Rescan", `{}`),
	}
	if version == "v1alpha1" {
		return append(steps,
			rpc("GetDiskNumberByName", `{"diskName":"$diskName"}`).wants(`{"diskNumber":"$disk"}`),
			rpc("GetDiskNumberByName", `{"diskName":"no such disk"}`).fails("NotFound"),
		)
	}
	steps = append(steps,
		rpc("ListDiskIDs", `{}`).wants(`{"diskIDs":{"$disk":{"identifiers":{"page83":"~[^ ]","serialNumber":"~^"}}}}`),
		rpc("DiskStats", `{"diskID":"$disk"}`).wants(`{"diskSize":"<positive>"}`),
	)
	if version == "v1beta1" {
		return steps
	}
	return append(steps,
		rpc("SetAttachState", `{"diskID":"$disk","isOnline":false}`),
		rpc("GetAttachState", `{"diskID":"$disk"}`).wants(`{"isOnline":false}`),
		rpc("SetAttachState", `{"diskID":"$disk","isOnline":true}`),
		rpc("GetAttachState", `{"diskID":"$disk"}`).wants(`{"isOnline":true}`),
	)
}

func volume(version string) []step {
	rpc := in("volume/" + version)
	steps := []step{
		rpc("ListVolumesOnDisk", `{"diskNumber":$disk}`).wants(`{"volumeIds":["<volume>"]}`).keeps("volume", "volumeIds.0"),
		rpc("ListVolumesOnDisk", `{"diskNumber":4000}`).fails("NotFound"),
		rpc("FormatVolume", `{"volumeId":"$volume"}`),
		rpc("IsVolumeFormatted", `{"volumeId":"$volume"}`).wants(`{"formatted":true}`),
		rpc("IsVolumeFormatted", `{"volumeId":"-1"}`).fails("InvalidArgument"),
		call("filesystem/v1", "Mkdir", `{"path":"$work\\mount"}`),
		rpc("GetVolumeIDFromTargetPath", `{"targetPath":"$work\\mount"}`).fails("because it does not exist"),
		rpc("MountVolume", `{"volumeId":"$volume","targetPath":"$work\\mount"}`),
		rpc("MountVolume", `{"volumeId":"$volume","targetPath":"$work\\mount"}`),
		rpc("GetVolumeIDFromTargetPath", `{"targetPath":"$work\\mount"}`).wants(`{"volumeId":"$volume"}`),
		rpc("GetDiskNumberFromVolumeID", `{"volumeId":"$volume"}`).wants(`{"diskNumber":$disk}`),
		rpc("GetVolumeStats", `{"volumeId":"$volume"}`).wants(`{"totalBytes":"<positive>"}`).keeps("total", "totalBytes"),
		rpc("ResizeVolume", `{"volumeId":"$volume"}`),
		rpc("GetVolumeStats", `{"volumeId":"$volume"}`).wants(`{"totalBytes":"$total"}`),
		rpc("ResizeVolume", `{"volumeId":"$volume","sizeBytes":-1}`).fails("InvalidArgument"),
		rpc("WriteVolumeCache", `{"volumeId":"$volume"}`),
	}
	if version == "v2alpha1" {
		steps = append(steps,
			rpc("GetClosestVolumeIDFromTargetPath", `{"targetPath":"$work\\mount"}`).wants(`{"volumeId":"$volume"}`),
			rpc("GetClosestVolumeIDFromTargetPath", `{"targetPath":"$work"}`).wants(`{"volumeId":"<volume>"}`),
		)
	}
	return append(steps,
		rpc("UnmountVolume", `{"volumeId":"$volume","targetPath":"$work\\mount"}`),
		// The answer of the first call may have been lost.
		rpc("UnmountVolume", `{"volumeId":"$volume","targetPath":"$work\\mount"}`),
		rpc("UnmountVolume", `{"volumeId":"$volume","targetPath":"$work"}`).fails("FailedPrecondition"),
		rpc("UnmountVolume", `{}`).fails("InvalidArgument"),
		rpc("GetDiskNumberFromVolumeID", `{"volumeId":"$volume"}`).wants(`{"diskNumber":$disk}`),
		call("filesystem/v1", "Rmdir", `{"path":"$work\\mount"}`),
	)
}

func oldVolume(version string) []step {
	rpc := in("volume/" + version)
	steps := []step{
		rpc("ListVolumesOnDisk", `{"diskId":"$disk"}`).wants(`{"volumeIds":["<volume>"]}`).keeps("volume", "volumeIds.0"),
		rpc("FormatVolume", `{"volumeId":"$volume"}`),
		rpc("IsVolumeFormatted", `{"volumeId":"$volume"}`).wants(`{"formatted":true}`),
		rpc("ResizeVolume", `{"volumeId":"$volume"}`),
		call("filesystem/v1", "Mkdir", `{"path":"$work\\mount"}`),
		rpc("MountVolume", `{"volumeId":"$volume","path":"$work\\mount"}`),
	}
	if version != "v1alpha1" {
		steps = append(steps,
			rpc("GetVolumeIDFromMount", `{"mount":"$work\\mount"}`).wants(`{"volumeId":"$volume"}`),
			rpc("GetVolumeDiskNumber", `{"volumeId":"$volume"}`).wants(`{"diskNumber":"$disk"}`),
			rpc("VolumeStats", `{"volumeId":"$volume"}`).wants(`{"volumeSize":"<positive>","volumeUsedSize":"~^[0-9]+$"}`),
		)
	}
	if version == "v1beta2" {
		steps = append(steps, rpc("WriteVolumeCache", `{"volumeId":"$volume"}`))
	}
	return append(steps,
		rpc("DismountVolume", `{"volumeId":"$volume","path":"$work\\mount"}`),
		rpc("DismountVolume", `{"volumeId":"$volume","path":"$work\\mount"}`),
		rpc("DismountVolume", `{"volumeId":"$volume","path":"$work"}`).fails("FailedPrecondition"),
		call("filesystem/v1", "Rmdir", `{"path":"$work\\mount"}`),
	)
}

func smb(version string) []step {
	rpc := in("smb/" + version)
	// The old versions have an error in their response, which is empty on success.
	good := `{}`
	if version == "v1alpha1" || version == "v1beta1" {
		good = `{"error":""}`
	}
	return []step{
		rpc("NewSmbGlobalMapping", `{"remotePath":"$share","username":"$user","password":"$password"}`).wants(good),
		rpc("NewSmbGlobalMapping", `{"remotePath":"$share","username":"$otherUser","password":"$password"}`).fails("FailedPrecondition"),
		rpc("NewSmbGlobalMapping", `{"remotePath":"","username":"$user","password":"$password"}`).fails("InvalidArgument"),
		rpc("NewSmbGlobalMapping", `{"remotePath":"$share\\","localPath":"$work\\smb","username":"$user","password":"$password"}`).wants(good),
		call("filesystem/v1", "IsSymlink", `{"path":"$work\\smb"}`).wants(`{"isSymlink":true}`),
		call("filesystem/v1", "Rmdir", `{"path":"$work\\smb","force":true}`),
		rpc("NewSmbGlobalMapping", `{"remotePath":"$share","localPath":"$work\\smb","username":"$user","password":"$password"}`).wants(good),
		call("filesystem/v1", "IsSymlink", `{"path":"$work\\smb"}`).wants(`{"isSymlink":true}`),
		call("filesystem/v1", "Rmdir", `{"path":"$work\\smb","force":true}`),
		rpc("RemoveSmbGlobalMapping", `{"remotePath":"$share"}`).wants(good),
		rpc("RemoveSmbGlobalMapping", `{"remotePath":"$share"}`).fails("NotFound"),
	}
}

func iscsi(version string) []step {
	rpc := in("iscsi/" + version)
	const target = `{"targetPortal":{"targetAddress":"$portal"},"iqn":"$iqn"}`
	const portal = `{"targetPortal":{"targetAddress":"$portal"}}`
	steps := []step{
		rpc("AddTargetPortal", portal),
		rpc("AddTargetPortal", portal),
		rpc("ListTargetPortals", `{}`).wants(`{"targetPortals":[{"targetAddress":"$portal","targetPort":3260}]}`),
		rpc("DiscoverTargetPortal", portal).wants(`{"iqns":["$iqn"]}`),
		rpc("GetTargetDisks", target).wants(`{"diskIDs":[]}`),
		rpc("ConnectTarget", target),
		rpc("ConnectTarget", target),
		rpc("GetTargetDisks", target).wants(`{"diskIDs":["~^[0-9]+$"]}`),
		rpc("DisconnectTarget", target),
		rpc("DisconnectTarget", target),
		rpc("RemoveTargetPortal", portal),
		rpc("ListTargetPortals", `{}`).wants(`{"targetPortals":[]}`),
	}
	if version == "v1alpha2" {
		steps = append(steps, rpc("SetMutualChapSecret", `{"MutualChapSecret":"fourteen bytes"}`))
	}
	return steps
}

func system(version string) []step {
	rpc := in("system/" + version)
	return []step{
		rpc("GetBIOSSerialNumber", `{}`).wants(`{"serialNumber":"$serial"}`),
		rpc("GetService", `{"name":"$service"}`).wants(`{"displayName":"~."}`),
		rpc("GetService", `{"name":"no such service"}`).fails("NotFound"),
		rpc("StartService", `{"name":"$service"}`),
		rpc("GetService", `{"name":"$service"}`).wants(`{"status":"RUNNING"}`),
		rpc("StopService", `{"name":"$service","force":true}`),
		rpc("GetService", `{"name":"$service"}`).wants(`{"status":"STOPPED"}`),
		rpc("StartService", `{"name":"$service"}`),
	}
}
