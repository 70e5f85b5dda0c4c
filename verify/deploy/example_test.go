package deploy

import (
	"regexp"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
)

// The example mounts pipes that csi-proxy serves, at the path that drivers open.
func TestTheExampleMountsPipesThatExist(t *testing.T) {
	set := only[*apps.DaemonSet](t, kustomize(t, "example-node-plugin", ""))
	pod := set.Spec.Template.Spec
	isWindowsPod(t, pod)
	expect(t, "maxSurge", set.Spec.UpdateStrategy.RollingUpdate.MaxSurge.IntValue(), 0)
	paths := map[string]string{}
	for _, container := range pod.Containers {
		for _, mount := range container.VolumeMounts {
			paths[mount.Name] = mount.MountPath
		}
	}
	mounted := 0
	for _, volume := range pod.Volumes {
		pipe, isPipe := strings.CutPrefix(volume.HostPath.Path, `\\.\pipe\csi-proxy-`)
		if !isPipe {
			continue
		}
		mounted++
		expect(t, "mount path", paths[volume.Name], volume.HostPath.Path)
		expect(t, "type", *volume.HostPath.Type, core.HostPathUnset)
		group, version, _ := strings.Cut(pipe, "-")
		if text := read(t, "crates/api/proto/"+group+"/"+version+"/api.proto"); !strings.Contains(text, "service ") {
			t.Errorf("%s has no service", volume.HostPath.Path)
		}
	}
	expect(t, "pipes", mounted, 3)
	kubelet := `C:\var\lib\kubelet`
	expect(t, "kubelet's directory in the container", paths["kubelet-dir"], kubelet)
}

// The pod of the example is admitted with the role that the example binds, and refused without it.
func TestTheExampleIsAdmitted(t *testing.T) {
	pods, _ := policies(t)
	objects := kustomize(t, "example-node-plugin", "")
	set := only[*apps.DaemonSet](t, objects)
	created := pod(set.Spec.Template.Spec.ServiceAccountName)
	created.Namespace = set.Namespace
	created.Spec = set.Spec.Template.Spec
	expect(t, "refusal", pods.refusal(t, created, "pods", append(objects, kustomize(t, "admission", "")...)), "")
	if pods.refusal(t, created, "pods", kustomize(t, "admission", "")) == "" {
		t.Error("admitted without the role")
	}
}

// The image has the programs that `cargo xtask windows build` builds, and a base image of a fixed version.
func TestTheContainerfileCopiesThePrograms(t *testing.T) {
	instruction := regexp.MustCompile(`(?m)^[A-Z]+ .*$`)
	found := instruction.FindAllString(read(t, "deploy/Containerfile"), -1)
	expect(t, "instructions", found, []string{
		"FROM mcr.microsoft.com/oss/kubernetes/windows-host-process-containers-base-image:v1.0.0",
		"COPY dist/csi-proxy.exe csi-proxy.exe",
		"COPY dist/csi-proxyctl.exe csi-proxyctl.exe",
		`ENTRYPOINT ["csi-proxy.exe"]`,
	})
}
