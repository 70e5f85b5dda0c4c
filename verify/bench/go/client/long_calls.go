package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
)

// The calls that take 30 s on the node of ../../node.toml.
var longCalls = map[string]func(ctx context.Context, folder string) error{
	"smb": func(ctx context.Context, folder string) error {
		channel, err := newChannel(folder, "csi-proxy-smb-v1")
		if err != nil {
			return err
		}
		_, err = smbv1.NewSmbClient(channel).NewSmbGlobalMapping(ctx, &smbv1.NewSmbGlobalMappingRequest{
			RemotePath: `\\slow\share`,
			LocalPath:  `C:\var\lib\kubelet\pods\smb`,
			Username:   `SLOW\anna`,
			Password:   "hunter2",
		})
		return err
	},
	"format": func(ctx context.Context, folder string) error {
		channel, err := newChannel(folder, "csi-proxy-volume-v1")
		if err != nil {
			return err
		}
		volumes, err := listVolumes(ctx, channel, "3")
		if err != nil {
			return err
		}
		if len(volumes.VolumeIds) != 1 {
			return fmt.Errorf("disk 3 has the volumes %v", volumes.VolumeIds)
		}
		request := volumev1.FormatVolumeRequest{VolumeId: volumes.VolumeIds[0]}
		_, err = volumev1.NewVolumeClient(channel).FormatVolume(ctx, &request)
		return err
	},
}

func longCallNames() []string {
	return slices.Sorted(maps.Keys(longCalls))
}

// A longCall receives the result of a call that must not end yet.
type longCall chan error

// startLongCall starts the call that the options name, if they do.
func startLongCall(o options) (longCall, error) {
	if o.during == "" {
		return nil, nil
	}
	call, ok := longCalls[o.during]
	if !ok {
		return nil, fmt.Errorf("unknown long call %q", o.during)
	}
	ended := make(longCall, 1)
	go func() { ended <- call(context.Background(), o.folder) }()
	return ended, nil
}

// stillRuns fails if the call has ended.
func (c longCall) stillRuns() error {
	select {
	case err := <-c:
		return fmt.Errorf("the long call ended during the measurement (%v)", err)
	default: // also if there is no call
		return nil
	}
}
