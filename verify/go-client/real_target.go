package main

import "slices"

var ofIscsi = in("iscsi/v1alpha2")

// onTarget returns the calls for an iSCSI target that requires CHAP and has one raw disk, whose data may be lost.
func onTarget() driver {
	const portal = `"targetPortal":{"targetAddress":"$chapPortal"}`
	const target = portal + `,"iqn":"$chapIqn"`
	return driver{"iSCSI target", variables, []phase{
		{"discovery", []step{
			ofIscsi("AddTargetPortal", `{`+portal+`}`),
			ofIscsi("AddTargetPortal", `{`+portal+`}`),
			ofIscsi("DiscoverTargetPortal", `{`+portal+`}`).wants(`{"iqns":["$chapIqn"]}`),
			ofIscsi("GetTargetDisks", `{`+target+`}`).wants(`{"diskIDs":[]}`),
		}},
		{"wrong secret", []step{
			ofIscsi("ConnectTarget", `{`+target+`,"authType":"ONE_WAY_CHAP","chapUsername":"$chapUser","chapSecret":"wrong secret"}`).
				fails("PermissionDenied|FailedPrecondition"),
			ofIscsi("GetTargetDisks", `{`+target+`}`).wants(`{"diskIDs":[]}`),
		}},
		{"disk", slices.Concat([]step{
			ofIscsi("ConnectTarget", `{`+target+`,"authType":"ONE_WAY_CHAP","chapUsername":"$chapUser","chapSecret":"$chapSecret"}`),
			ofIscsi("ConnectTarget", `{`+target+`,"authType":"ONE_WAY_CHAP","chapUsername":"$chapUser","chapSecret":"$chapSecret"}`),
			ofIscsi("GetTargetDisks", `{`+target+`}`).wants(`{"diskIDs":["~^[0-9]+$"]}`).keeps("targetDisk", "diskIDs.0"),
			ofDisk("PartitionDisk", `{"diskNumber":$targetDisk}`),
			ofDisk("SetDiskState", `{"diskNumber":$targetDisk,"isOnline":true}`),
			ofVolume("ListVolumesOnDisk", `{"diskNumber":$targetDisk}`).wants(`{"volumeIds":["<volume>"]}`).keeps("volume", "volumeIds.0"),
			ofVolume("IsVolumeFormatted", `{"volumeId":"$volume"}`).wants(`{"formatted":false}`),
			ofVolume("FormatVolume", `{"volumeId":"$volume"}`),
			makeStaging,
			ofVolume("MountVolume", `{"volumeId":"$volume","targetPath":"$work\\globalmount"}`),
		}, publish, unpublish, []step{
			ofVolume("UnmountVolume", `{"volumeId":"$volume","targetPath":"$work\\globalmount"}`),
			ofFiles("Rmdir", `{"path":"$work\\globalmount","force":true}`),
		})},
		{"logout", []step{
			ofIscsi("DisconnectTarget", `{`+target+`}`),
			ofIscsi("DisconnectTarget", `{`+target+`}`),
			ofIscsi("GetTargetDisks", `{`+target+`}`).wants(`{"diskIDs":[]}`),
			ofIscsi("RemoveTargetPortal", `{`+portal+`}`),
		}},
	}}
}

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
