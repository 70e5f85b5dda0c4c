package main

import (
	"context"
	"log"

	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// registration answers kubelet, which finds its socket in the folder plugins_registry. This is all that the sidecar
// node-driver-registrar does.
type registration struct {
	registerapi.UnimplementedRegistrationServer
	endpoint string
}

func (r *registration) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{
		Type:              registerapi.CSIPlugin,
		Name:              driverName,
		Endpoint:          r.endpoint,
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (r *registration) NotifyRegistrationStatus(_ context.Context, status *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	if !status.GetPluginRegistered() {
		// The container is restarted and tries again.
		log.Fatalf("kubelet has not registered the plugin: %s", status.GetError())
	}
	log.Print("registered with kubelet")
	return &registerapi.RegistrationStatusResponse{}, nil
}
