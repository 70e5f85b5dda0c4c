package nodeplugins

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	disk "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// controller is the driver's other half. Its volumes are the disks of node.toml.
type controller struct {
	csi.UnimplementedControllerServer
	csi.UnimplementedIdentityServer
	disks disk.DiskClient // nil under Wine

	lock sync.Mutex
	// The numbers of the disks by the names of their volumes; the disks that are free.
	volumes map[string]uint32
	free    []uint32
}

// serials are the serial numbers of the disks by their numbers.
var serials = map[uint32]string{1: "disk-1", 2: "disk-2"}

// serveController serves a controller for a node, and returns its socket.
func serveController(t *testing.T, disks disk.DiskClient) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "controller.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server, c := grpc.NewServer(), &controller{disks: disks, volumes: map[string]uint32{}}
	for number := range serials {
		c.free = append(c.free, number)
	}
	csi.RegisterControllerServer(server, c)
	csi.RegisterIdentityServer(server, c)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return socket
}

func (*controller) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: "driver.example.com", VendorVersion: "0.1.0"}, nil
}

func (*controller) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

func (*controller) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (*controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	rpc := &csi.ControllerServiceCapability_RPC{Type: csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME}
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: []*csi.ControllerServiceCapability{
		{Type: &csi.ControllerServiceCapability_Rpc{Rpc: rpc}},
	}}, nil
}

func (c *controller) CreateVolume(_ context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	number, exists := c.volumes[req.GetName()]
	if !exists {
		if len(c.free) == 0 {
			return nil, status.Error(codes.ResourceExhausted, "no disk is free")
		}
		number, c.free = c.free[0], c.free[1:]
		c.volumes[req.GetName()] = number
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId:      req.GetName(),
		CapacityBytes: 12 << 30,
		VolumeContext: map[string]string{"serialNumber": serials[number]},
	}}, nil
}

// DeleteVolume refuses to take a disk away from the node while Windows uses it.
func (c *controller) DeleteVolume(ctx context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	number, exists := c.volumes[req.GetVolumeId()]
	if !exists {
		return &csi.DeleteVolumeResponse{}, nil
	}
	if c.disks != nil {
		state, err := c.disks.GetDiskState(ctx, &disk.GetDiskStateRequest{DiskNumber: number})
		if err != nil {
			return nil, err
		}
		if state.GetIsOnline() {
			return nil, status.Errorf(codes.FailedPrecondition, "disk %d is still online", number)
		}
	}
	delete(c.volumes, req.GetVolumeId())
	c.free = append(c.free, number)
	return &csi.DeleteVolumeResponse{}, nil
}
