package main

import "slices"

// onWindows returns the calls that work on any Windows node without a spare disk: the file system, the system, and
// reading volumes and disks.
func onWindows() driver {
	return driver{"Windows node", variables, []phase{
		{"filesystem v1", filesOnWindows("v1")},
		{"filesystem v1beta2", filesOnWindows("v1beta2")},
		{"filesystem v2alpha1", slices.Concat(filesOnWindows("v2alpha1"), []step{
			call("filesystem/v2alpha1", "Mkdir", `{"path":"$work\\stage\\a\\b"}`),
			call("filesystem/v2alpha1", "RmdirContents", `{"path":"$work\\stage"}`),
			call("filesystem/v2alpha1", "PathExists", `{"path":"$work\\stage\\a"}`).wants(`{"exists":false}`),
			call("filesystem/v2alpha1", "PathExists", `{"path":"$work\\stage"}`).wants(`{"exists":true}`),
			call("filesystem/v2alpha1", "Rmdir", `{"path":"$work\\stage"}`),
		})},
		{"filesystem v1alpha1", oldFilesOnWindows("v1alpha1")},
		{"filesystem v1beta1", oldFilesOnWindows("v1beta1")},
		{"links", []step{
			ofFiles("Mkdir", `{"path":"$work\\stage"}`),
			ofFiles("CreateSymlink", `{"sourcePath":"$work\\stage","targetPath":"$pods\\link"}`).needs("reparse-points"),
			ofFiles("CreateSymlink", `{"sourcePath":"$work\\stage","targetPath":"$pods\\link"}`).needs("reparse-points"),
			ofFiles("IsSymlink", `{"path":"$pods\\link"}`).wants(`{"isSymlink":true}`).needs("reparse-points"),
			ofFiles("Rmdir", `{"path":"$pods\\link","force":true}`).needs("reparse-points"),
			ofFiles("PathExists", `{"path":"$work\\stage"}`).wants(`{"exists":true}`),
			ofFiles("Rmdir", `{"path":"$work\\stage"}`),
		}},
		{"system", []step{
			call("system/v1alpha1", "GetBIOSSerialNumber", `{}`),
			call("system/v1alpha1", "GetService", `{"name":"no such service"}`).fails("NotFound"),
			call("system/v1alpha1", "GetService", `{"name":"EventLog"}`).wants(`{"displayName":"~.","status":"RUNNING"}`),
			call("system/v1alpha1", "StartService", `{"name":"EventLog"}`),
		}},
		{"volume", []step{
			call("volume/v2alpha1", "GetClosestVolumeIDFromTargetPath", `{"targetPath":"C:\\"}`).
				wants(`{"volumeId":"<volume>"}`).keeps("volume", "volumeId").needs("volume-names"),
			call("volume/v2alpha1", "GetClosestVolumeIDFromTargetPath", `{"targetPath":"$raw"}`).
				wants(`{"volumeId":"$volume"}`).needs("volume-names"),
			ofVolume("GetVolumeStats", `{"volumeId":"$volume"}`).
				wants(`{"totalBytes":"<positive>","usedBytes":"<positive>"}`).needs("volume-names"),
			ofVolume("GetVolumeStats", `{"volumeId":"-1"}`).fails("InvalidArgument"),
			ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$work"}`).fails("because it does not exist"),
			ofVolume("GetVolumeIDFromTargetPath", `{"targetPath":"$work\\none"}`).fails("because it does not exist"),
			ofVolume("MountVolume", `{"volumeId":"","targetPath":""}`).fails("InvalidArgument"),
			ofVolume("UnmountVolume", `{"volumeId":"-1","targetPath":""}`).fails("InvalidArgument"),
		}},
		{"disk", []step{
			ofDisk("ListDiskIDs", `{}`).needs("disk-device"),
			ofDisk("GetDiskStats", `{"diskNumber":4000}`).fails("NotFound").needs("disk-device"),
			ofDisk("GetDiskState", `{"diskNumber":0}`).wants(`{"isOnline":true}`).needs("disk-device"),
		}},
		{"end", []step{
			ofFiles("Rmdir", `{"path":"$work","force":true}`),
			ofFiles("Rmdir", `{"path":"$pods","force":true}`),
			ofFiles("PathExists", `{"path":"$work"}`).wants(`{"exists":false}`),
		}},
	}}
}

func filesOnWindows(version string) []step {
	rpc := in("filesystem/" + version)
	return []step{
		rpc("Mkdir", `{"path":"$work\\stage\\Größe 容量"}`),
		rpc("Mkdir", `{"path":"$work\\stage\\Größe 容量"}`),
		rpc("Mkdir", `{"path":"$pods"}`),
		rpc("PathExists", `{"path":"$work\\stage\\Größe 容量"}`).wants(`{"exists":true}`),
		rpc("PathExists", `{"path":"$work\\none\\none"}`).wants(`{"exists":false}`),
		rpc("IsSymlink", `{"path":"$work\\stage"}`).wants(`{"isSymlink":false}`),
		rpc("IsSymlink", `{"path":"$work\\none"}`).fails("NotFound"),
		rpc("Rmdir", `{"path":"$work\\stage"}`).fails("FailedPrecondition"),
		rpc("Rmdir", `{"path":"$work\\stage","force":true}`),
		rpc("Rmdir", `{"path":"$work\\stage","force":true}`),
		rpc("Rmdir", `{"path":"$work\\stage"}`).fails("NotFound"),
		rpc("PathExists", `{"path":"$work\\stage"}`).wants(`{"exists":false}`),
		rpc("Mkdir", `{"path":"C:\\foo\\bar"}`).fails("InvalidArgument|PermissionDenied"),
		rpc("Mkdir", `{"path":"C:\\var\\lib\\kubelet-evil\\x"}`).fails("InvalidArgument|PermissionDenied"),
	}
}

func oldFilesOnWindows(version string) []step {
	rpc := in("filesystem/" + version)
	return []step{
		rpc("Mkdir", `{"path":"$work\\stage","context":"PLUGIN"}`).wants(`{"error":""}`),
		rpc("PathExists", `{"path":"$work\\stage","context":"PLUGIN"}`).wants(`{"error":"","exists":true}`),
		rpc("IsMountPoint", `{"path":"$work\\stage"}`).wants(`{"error":"","isMountPoint":false}`),
		rpc("Rmdir", `{"path":"$work\\stage","context":"PLUGIN"}`).wants(`{"error":""}`),
		rpc("PathExists", `{"path":"$work\\stage","context":"PLUGIN"}`).wants(`{"error":"","exists":false}`),
	}
}
