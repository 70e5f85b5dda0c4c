package nodeplugins

import (
	"context"
	"fmt"
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

// controller is the driver's other half. A volume is a disk that it plugs in, grows and unplugs. Under Wine, where the
// test cannot reach csi-proxy-sim, the volumes are the disks of node.toml, which are always plugged in.
type controller struct {
	csi.UnimplementedControllerServer
	csi.UnimplementedIdentityServer
	// Both are nil under Wine.
	simulation *simulation
	disks      disk.DiskClient

	lock sync.Mutex
	// By ID.
	volumes map[string]*attachable
	created int
}

// attachable is the disk of a volume.
type attachable struct {
	// The name with which the volume was created.
	name string
	size int64
	// Whether the disk is plugged in, and its number.
	isPlugged bool
	number    uint32
	// Identifies the disk after it was unplugged; 0 if it has never been plugged in.
	handle uint64
}

// newController returns the controller for a node.
func newController(node started) *controller {
	return &controller{simulation: node.simulation, disks: node.disks, volumes: map[string]*attachable{}}
}

// serveController serves a controller for a node, and returns its socket.
func serveController(t *testing.T, node started) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "controller.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server, c := grpc.NewServer(), newController(node)
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

func (c *controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	types := []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME}
	if c.simulation != nil {
		types = append(types, csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME, csi.ControllerServiceCapability_RPC_EXPAND_VOLUME)
	}
	response := &csi.ControllerGetCapabilitiesResponse{}
	for _, capability := range types {
		rpc := &csi.ControllerServiceCapability_RPC{Type: capability}
		response.Capabilities = append(response.Capabilities,
			&csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{Rpc: rpc}})
	}
	return response, nil
}

func (c *controller) CreateVolume(_ context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for id, volume := range c.volumes {
		if volume.name == req.GetName() {
			return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: id, CapacityBytes: volume.size}}, nil
		}
	}
	// The ID of a volume is the serial number of its disk.
	id, volume := fmt.Sprintf("vol-%d", c.created), &attachable{name: req.GetName(), size: req.GetCapacityRange().GetRequiredBytes()}
	if c.simulation == nil {
		id, volume.size = fmt.Sprintf("disk-%d", 1+c.created%2), 12<<30
	}
	c.created++
	c.volumes[id] = volume
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: id, CapacityBytes: volume.size}}, nil
}

func (c *controller) DeleteVolume(_ context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if volume := c.volumes[req.GetVolumeId()]; volume != nil && volume.isPlugged {
		return nil, status.Errorf(codes.FailedPrecondition, "disk %d is still plugged in", volume.number)
	}
	delete(c.volumes, req.GetVolumeId())
	return &csi.DeleteVolumeResponse{}, nil
}

// ControllerPublishVolume plugs the disk in. Windows shows it only after a rescan.
func (c *controller) ControllerPublishVolume(ctx context.Context, req *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	volume, err := c.volume(req.GetVolumeId())
	if err != nil || volume.isPlugged {
		return &csi.ControllerPublishVolumeResponse{}, err
	}
	if volume.handle == 0 {
		var added struct{ DiskNumbers []uint32 }
		disk := fmt.Sprintf("[[disk]]\nsize = %d\nserial = %q\noffline = true\n", volume.size, req.GetVolumeId())
		if err := c.simulation.call(ctx, "Add", map[string]any{"nodeFile": disk, "undetected": true}, &added); err != nil {
			return nil, err
		}
		volume.number = added.DiskNumbers[0]
	} else {
		var plugged struct{ DiskNumber uint32 }
		request := map[string]any{"handle": volume.handle, "undetected": true}
		if err := c.simulation.call(ctx, "PlugDisk", request, &plugged); err != nil {
			return nil, err
		}
		volume.number = plugged.DiskNumber
	}
	volume.isPlugged = true
	return &csi.ControllerPublishVolumeResponse{}, nil
}

// ControllerUnpublishVolume unplugs the disk. It refuses to while Windows uses the disk.
func (c *controller) ControllerUnpublishVolume(ctx context.Context, req *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	volume, err := c.volume(req.GetVolumeId())
	if status.Code(err) == codes.NotFound || !volume.isPlugged {
		return &csi.ControllerUnpublishVolumeResponse{}, nil
	}
	state, err := c.disks.GetDiskState(ctx, &disk.GetDiskStateRequest{DiskNumber: volume.number})
	// Windows has not detected the disk if the plugin has not looked for it.
	if err != nil && status.Code(err) != codes.NotFound {
		return nil, err
	}
	if state.GetIsOnline() {
		return nil, status.Errorf(codes.FailedPrecondition, "disk %d is still online", volume.number)
	}
	var unplugged struct {
		Handle uint64 `json:",string"`
	}
	if err := c.simulation.call(ctx, "UnplugDisk", map[string]any{"diskNumber": volume.number}, &unplugged); err != nil {
		return nil, err
	}
	volume.isPlugged, volume.handle = false, unplugged.Handle
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

// ControllerExpandVolume grows the disk. The plugin has to grow the file system.
func (c *controller) ControllerExpandVolume(ctx context.Context, req *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	volume, err := c.volume(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	size := req.GetCapacityRange().GetRequiredBytes()
	if volume.isPlugged {
		err = c.simulation.call(ctx, "GrowDisk", map[string]any{"diskNumber": volume.number, "size": size}, &struct{}{})
	} else if volume.handle != 0 {
		err = status.Error(codes.FailedPrecondition, "the simulator grows only disks that are plugged in")
	}
	if err != nil {
		return nil, err
	}
	volume.size = size
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: size, NodeExpansionRequired: true}, nil
}

// volume returns a volume that was created. The caller has the lock.
func (c *controller) volume(id string) (*attachable, error) {
	if volume := c.volumes[id]; volume != nil {
		return volume, nil
	}
	return nil, status.Errorf(codes.NotFound, "no volume has the ID %s", id)
}
