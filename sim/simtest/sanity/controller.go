package sanity

import (
	"context"
	"fmt"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/OWNER/csi-proxy/sim/simtest/simcontrol"
)

// Controller is the driver's other half. A volume is a disk that it plugs in, grows and unplugs.
type Controller struct {
	csi.UnimplementedControllerServer
	csi.UnimplementedIdentityServer
	plugin Plugin

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

// NewController returns the controller for a plugin.
func NewController(plugin Plugin) *Controller {
	return &Controller{plugin: plugin, volumes: map[string]*attachable{}}
}

// DiskNumber returns the number of the disk of a volume that is attached.
func (c *Controller) DiskNumber(volumeID string) uint32 {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.volumes[volumeID].number
}

func (*Controller) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: "driver.example.com", VendorVersion: "0.1.0"}, nil
}

func (*Controller) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

func (*Controller) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (c *Controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	types := []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME}
	if c.plugin.Node != nil {
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

func (c *Controller) CreateVolume(_ context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for id, volume := range c.volumes {
		if volume.name == req.GetName() {
			return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: id, CapacityBytes: volume.size}}, nil
		}
	}
	id, volume := fmt.Sprintf("vol-%d", c.created), &attachable{name: req.GetName(), size: req.GetCapacityRange().GetRequiredBytes()}
	if c.plugin.Node == nil {
		id, volume.size = fmt.Sprintf("disk-%d", 1+c.created%2), 12<<30
	}
	c.created++
	c.volumes[id] = volume
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: id, CapacityBytes: volume.size}}, nil
}

func (c *Controller) DeleteVolume(_ context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if volume := c.volumes[req.GetVolumeId()]; volume != nil && volume.isPlugged {
		return nil, status.Errorf(codes.FailedPrecondition, "disk %d is still plugged in", volume.number)
	}
	delete(c.volumes, req.GetVolumeId())
	return &csi.DeleteVolumeResponse{}, nil
}

// ControllerPublishVolume plugs the disk in. Windows shows it only after a rescan.
func (c *Controller) ControllerPublishVolume(ctx context.Context, req *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	volume, err := c.volume(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	response := &csi.ControllerPublishVolumeResponse{}
	if c.plugin.PublishContext != nil {
		response.PublishContext = c.plugin.PublishContext(req.GetVolumeId())
	}
	if volume.isPlugged {
		return response, nil
	}
	if volume.handle == 0 {
		keys := fmt.Sprintf("serial = %q", req.GetVolumeId())
		if c.plugin.Disk != nil {
			keys = c.plugin.Disk(req.GetVolumeId())
		}
		disk := fmt.Sprintf("[[disk]]\nsize = %d\noffline = true\n%s\n", volume.size, keys)
		added, err := c.plugin.Node.Simulation.Add(ctx, &simcontrol.AddRequest{NodeFile: disk, Undetected: true})
		if err != nil {
			return nil, err
		}
		volume.number = added.GetDiskNumbers()[0]
	} else {
		plugged, err := c.plugin.Node.Simulation.PlugDisk(ctx, &simcontrol.PlugDiskRequest{Handle: volume.handle, Undetected: true})
		if err != nil {
			return nil, err
		}
		volume.number = plugged.GetDiskNumber()
	}
	volume.isPlugged = true
	return response, nil
}

// ControllerUnpublishVolume unplugs the disk. It refuses to while Windows uses the disk.
func (c *Controller) ControllerUnpublishVolume(ctx context.Context, req *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	volume, err := c.volume(req.GetVolumeId())
	if status.Code(err) == codes.NotFound || !volume.isPlugged {
		return &csi.ControllerUnpublishVolumeResponse{}, nil
	}
	listed, err := c.plugin.Node.Simulation.ListDisks(ctx, &simcontrol.ListDisksRequest{})
	if err != nil {
		return nil, err
	}
	for _, disk := range listed.GetDisks() {
		if disk.GetNumber() == volume.number && disk.GetDetected() && !disk.GetOffline() {
			return nil, status.Errorf(codes.FailedPrecondition, "disk %d is still online", volume.number)
		}
	}
	unplugged, err := c.plugin.Node.Simulation.UnplugDisk(ctx, &simcontrol.UnplugDiskRequest{DiskNumber: volume.number})
	if err != nil {
		return nil, err
	}
	volume.isPlugged, volume.handle = false, unplugged.GetHandle()
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

// ControllerExpandVolume grows the disk. The plugin has to grow the file system.
func (c *Controller) ControllerExpandVolume(ctx context.Context, req *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	volume, err := c.volume(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	size := req.GetCapacityRange().GetRequiredBytes()
	if volume.isPlugged {
		_, err = c.plugin.Node.Simulation.GrowDisk(ctx, &simcontrol.GrowDiskRequest{DiskNumber: volume.number, Size: uint64(size)})
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
func (c *Controller) volume(id string) (*attachable, error) {
	if volume := c.volumes[id]; volume != nil {
		return volume, nil
	}
	return nil, status.Errorf(codes.NotFound, "no volume has the ID %s", id)
}
