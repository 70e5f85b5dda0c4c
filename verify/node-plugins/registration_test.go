package nodeplugins

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Does with each plugin what kubelet does when the plugin's registration socket appears.
func TestRegistration(t *testing.T) {
	for name, program := range plugins(t) {
		t.Run(name, func(t *testing.T) {
			node := start(t, program)
			kubelet := registerapi.NewRegistrationClient(connect(t, "unix:"+node.registration))
			info, err := kubelet.GetInfo(within(t), &registerapi.InfoRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if info.GetType() != registerapi.CSIPlugin || info.GetEndpoint() != node.csi || len(info.GetSupportedVersions()) == 0 {
				t.Errorf("the plugin registers as %v", info)
			}
			plugin := connect(t, "unix:"+info.GetEndpoint())
			about, err := csi.NewIdentityClient(plugin).GetPluginInfo(within(t), &csi.GetPluginInfoRequest{})
			if err != nil || about.GetName() != info.GetName() {
				t.Errorf("the plugin is registered as %s, and answers %v %v", info.GetName(), about, err)
			}
			node1, err := csi.NewNodeClient(plugin).NodeGetInfo(within(t), &csi.NodeGetInfoRequest{})
			if err != nil || node1.GetNodeId() != "node-1" {
				t.Errorf("the plugin is on node %v %v", node1, err)
			}
			registered := &registerapi.RegistrationStatus{PluginRegistered: true}
			if _, err := kubelet.NotifyRegistrationStatus(within(t), registered); err != nil {
				t.Error(err)
			}
		})
	}
}
