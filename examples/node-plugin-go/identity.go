package main

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	filesystem "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// identity is the identity service.
type identity struct {
	csi.UnimplementedIdentityServer
	proxy *csiProxy
}

func (*identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: driverName, VendorVersion: "0.1.0"}, nil
}

// GetPluginCapabilities describes the driver as a whole, whose controller is a program of its own.
func (*identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	controller := &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		{Type: &csi.PluginCapability_Service_{Service: controller}},
	}}, nil
}

// Probe tells whether csi-proxy answers. The plugin is not ready until csi-proxy runs, and need not be restarted then. Any
// answer will do: kubelet's folder may be another one, whose question csi-proxy refuses.
func (i *identity) Probe(ctx context.Context, _ *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	_, err := i.proxy.files.PathExists(ctx, &filesystem.PathExistsRequest{Path: `C:\var\lib\kubelet`})
	code := status.Code(err)
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(code != codes.Unavailable && code != codes.DeadlineExceeded)}, nil
}
