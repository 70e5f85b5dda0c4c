package deploy

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// image is the value that the chart requires.
const image = "image: {repository: registry.example.com/csi-proxy}\n"

// everyValue gives each value of the chart one that is not its default.
const everyValue = `
image:
  repository: registry.example.com/csi-proxy
  tag: 1.2.3
  digest: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
  pullPolicy: Always
imagePullSecrets: [{name: registry}]
logLevel: 5
drainSeconds: 3
kubeletPath: D:\var\lib\kubelet
workingDirs: ['D:\csi', 'E:\csi']
requireSmbPrivacy: false
apiGroups: [disk, volume]
services: [MSiSCSI]
smbServers: [fs1.example.com, fs2.example.com]
iscsiPortals: [10.0.0.0/24]
format: {fileSystem: ReFS, allocationUnit: 65536, writerSids: [S-1-5-93-2-2]}
extraFlags: [-share-smb-mappings, -max-connections=512]
metrics: {address: node, port: 9100, allowFrom: [10.0.0.0/8, 192.0.2.7], podMonitor: true, prometheusRule: true,
  monitorLabels: {release: prometheus}, runbookUrl: https://docs.example.com/csi-proxy}
replaceService: true
updateStrategy: OnDelete
maxUnavailable: 5
minReadySeconds: 60
terminationGracePeriodSeconds: 30
priorityClassName: ""
nodeSelector: {kubernetes.io/os: windows, pool: a}
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
  {matchExpressions: [{key: csi-proxy, operator: NotIn, values: [service, "off", spare]}]}]}}}
tolerations: [{key: os, operator: Exists}]
resources: {limits: {memory: 1Gi}}
commonLabels: {app.kubernetes.io/name: other, app.kubernetes.io/managed-by: me, owner: sre, release: other}
podLabels: {app.kubernetes.io/name: other, team: storage}
podAnnotations: {note: x}
admissionPolicy: {enabled: true, validationActions: [Deny], serviceAccounts: [{namespace: kube-system, name: csi-azuredisk-node-sa}, {namespace: ebs, name: ebs-csi-node-sa, groups: [disk, volume]}]}
`

// renderings returns everything that runs the daemon: all combinations of components, and the chart with several values.
func renderings(t *testing.T) map[string][]runtime.Object {
	t.Helper()
	rendered := map[string][]runtime.Object{"overlays/example": kustomize(t, "kustomize/overlays/example", "")}
	names := []string{"metrics", "debug-log", "restricted", "replace-service", "firewall", "prometheus-operator"}
	for chosen := range 1 << len(names) {
		var some []string
		for i, name := range names {
			if chosen>>i&1 == 1 {
				some = append(some, name)
			}
		}
		name := fmt.Sprintf("base with %v", some)
		rendered[name] = kustomize(t, "kustomize/overlays/example", components(some...))
	}
	for name, values := range map[string]string{
		"the chart":                      image,
		"the chart with metrics":         image + "metrics: {address: node}\n",
		"the chart with working folders": image + `workingDirs: ['D:\csi']`,
		"the chart with every value":     everyValue,
	} {
		rendered[name] = mustHelm(t, values)
	}
	return rendered
}

// What the issue and docs/security.md ask of the DaemonSet, in every rendering.
func TestEveryRenderingIsALeastPrivilegedHostProcessDaemonSet(t *testing.T) {
	for name, objects := range renderings(t) {
		t.Run(name, func(t *testing.T) {
			set := only[*apps.DaemonSet](t, objects)
			pod := set.Spec.Template.Spec
			isWindowsPod(t, pod)
			options := pod.SecurityContext.WindowsOptions
			expect(t, "hostProcess", *options.HostProcess, true)
			expect(t, "runAsUserName", *options.RunAsUserName, `NT AUTHORITY\SYSTEM`)
			expect(t, "hostNetwork, which HostProcess requires", pod.HostNetwork, true)
			expect(t, "automountServiceAccountToken", *pod.AutomountServiceAccountToken, false)
			expect(t, "enableServiceLinks", *pod.EnableServiceLinks, false)
			expect(t, "volumes", len(pod.Volumes), 0)
			for _, container := range pod.InitContainers {
				expect(t, "image of "+container.Name, container.Image, pod.Containers[0].Image)
				expect(t, "limit on memory of "+container.Name, container.Resources.Limits.Memory().IsZero(), false)
			}
			expect(t, "containers", len(pod.Containers), 1)

			account := only[*core.ServiceAccount](t, objects)
			expect(t, "serviceAccountName", pod.ServiceAccountName, account.Name)
			expect(t, "namespace", set.Namespace, account.Namespace)
			expect(t, "automountServiceAccountToken of the account", *account.AutomountServiceAccountToken, false)
			for _, binding := range all[*rbac.ClusterRoleBinding](objects) {
				for _, subject := range binding.Subjects {
					if subject.Name == account.Name {
						t.Errorf("%s gives the account a role", binding.Name)
					}
				}
			}

			if update := set.Spec.UpdateStrategy; update.Type != apps.OnDeleteDaemonSetStrategyType {
				expect(t, "update strategy", update.Type, apps.RollingUpdateDaemonSetStrategyType)
				expect(t, "maxSurge", *update.RollingUpdate.MaxSurge, intstr.FromInt32(0))
			}
			expect(t, "name", set.Name, "csi-proxy-windows")
			expect(t, "selector", set.Spec.Selector.MatchLabels, map[string]string{"app.kubernetes.io/name": "csi-proxy"})

			container := pod.Containers[0]
			if container.Resources.Limits.Memory().IsZero() || !container.Resources.Limits.Cpu().IsZero() {
				t.Errorf("limits %v: memory must be limited, and CPU time must not be", container.Resources.Limits)
			}
			drain := flag(t, container, "-drain=")
			if grace := *pod.TerminationGracePeriodSeconds; grace <= 5 || drain > "4" || len(drain) != 1 {
				t.Errorf("a grace period of %d s and -drain=%s: containerd ends the container 5 s after the event", grace, drain)
			}
			probesAskTheMetricsAddress(t, container)
		})
	}
}

// isWindowsPod checks the fields that the API server refuses for Windows pods; k8s.io/api has their list at PodSpec.OS.
func isWindowsPod(t *testing.T, pod core.PodSpec) {
	t.Helper()
	expect(t, "os", pod.OS.Name, core.Windows)
	expect(t, "node selector", pod.NodeSelector["kubernetes.io/os"], "windows")
	security := *orElse(pod.SecurityContext, &core.PodSecurityContext{})
	security.WindowsOptions = nil
	expect(t, "security context without Windows' options", security, core.PodSecurityContext{})
	expect(t, "hostPID", pod.HostPID, false)
	expect(t, "hostIPC", pod.HostIPC, false)
	expect(t, "hostUsers", pod.HostUsers, nil)
	expect(t, "shareProcessNamespace", pod.ShareProcessNamespace, nil)
	for _, container := range pod.Containers {
		security := *orElse(container.SecurityContext, &core.SecurityContext{})
		security.WindowsOptions = nil
		expect(t, container.Name+": security context without Windows' options", security, core.SecurityContext{})
	}
}

// orElse returns the value, or another one in place of nil.
func orElse[T any](value, otherwise *T) *T {
	if value == nil {
		return otherwise
	}
	return value
}

// Kubelet must ask the address that the daemon listens at.
func probesAskTheMetricsAddress(t *testing.T, container core.Container) {
	t.Helper()
	host, port, _ := strings.Cut(flag(t, container, "-metrics-bind-address="), ":")
	expect(t, "host of the metrics address", host, "$(METRICS_ADDRESS)")
	address := variable(t, container, "METRICS_ADDRESS")
	if address.ValueFrom != nil {
		expect(t, "METRICS_ADDRESS", *address, core.EnvVar{Name: "METRICS_ADDRESS", ValueFrom: &core.EnvVarSource{
			FieldRef: &core.ObjectFieldSelector{FieldPath: "status.hostIP"}}})
		expect(t, "ports", len(container.Ports), 1)
		expect(t, "port", fmt.Sprint(container.Ports[0].ContainerPort), port)
	} else {
		expect(t, "METRICS_ADDRESS", address.Value, "127.0.0.1")
		expect(t, "ports of a daemon on the loopback address", len(container.Ports), 0)
	}
	// The daemon answers at the loopback address in both cases.
	// A daemon that drains is not ready, but healthy: a restart would end its calls.
	paths := map[string]string{"startup": "/healthz", "readiness": "/readyz", "liveness": "/healthz"}
	for name, probe := range map[string]*core.Probe{
		"startup": container.StartupProbe, "readiness": container.ReadinessProbe, "liveness": container.LivenessProbe,
	} {
		expect(t, name+" path", probe.HTTPGet.Path, paths[name])
		expect(t, name+" port", probe.HTTPGet.Port.String(), port)
		expect(t, name+" host", probe.HTTPGet.Host, "127.0.0.1")
	}
}

// The base and the chart must not drift apart.
func TestTheChartWithItsDefaultsIsTheBase(t *testing.T) {
	base := only[*apps.DaemonSet](t, kustomize(t, "kustomize/base", ""))
	fromChart := only[*apps.DaemonSet](t, mustHelm(t, image))
	container := &base.Spec.Template.Spec.Containers[0]
	expect(t, "image of the base", container.Image, "registry.invalid/csi-proxy:unset")
	container.Image = "registry.example.com/csi-proxy:0.1.0"
	container.ImagePullPolicy = core.PullIfNotPresent
	expect(t, "DaemonSet", fromChart.Spec, base.Spec)
}

// A copy of the example behaves as the chart with its defaults does. What else the example has is commented out, and exists.
func TestTheExampleOverlayAndTheChartHaveEqualFlags(t *testing.T) {
	example := only[*apps.DaemonSet](t, kustomize(t, "kustomize/overlays/example", "")).Spec.Template.Spec
	fromChart := only[*apps.DaemonSet](t, mustHelm(t, image)).Spec.Template.Spec
	expect(t, "arguments", example.Containers[0].Args, fromChart.Containers[0].Args)
	expect(t, "environment", example.Containers[0].Env, fromChart.Containers[0].Env)
	expect(t, "init containers", len(example.InitContainers), len(fromChart.InitContainers))

	text := read(t, "deploy/kustomize/overlays/example/kustomization.yaml")
	var all []string
	for _, line := range strings.Split(text, "\n") {
		if name, isComponent := strings.CutPrefix(line, "  # - ../../components/"); isComponent {
			all = append(all, name)
		}
	}
	folders, err := os.ReadDir(deployment + "/kustomize/components")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "components in comments", len(all), len(folders))
	uncommented := strings.ReplaceAll(text, "  # - ../../components/", "  - ../../components/")
	everything := kustomize(t, "kustomize/overlays/example", uncommented)
	set := only[*apps.DaemonSet](t, everything)
	containers := set.Spec.Template.Spec.InitContainers
	expect(t, "last init container", containers[len(containers)-1].Name, "replace-service")
}

// The components have the init containers of the chart.
func TestTheComponentsAndTheChartHaveEqualInitContainers(t *testing.T) {
	fromComponents := only[*apps.DaemonSet](t, kustomize(t, "kustomize/overlays/example", components("metrics", "replace-service", "firewall")))
	fromChart := only[*apps.DaemonSet](t, mustHelm(t, image+"replaceService: true\nmetrics: {address: node, allowFrom: [LocalSubnet]}"))
	expected := fromChart.Spec.Template.Spec.InitContainers
	for i := range expected {
		expected[i].Image, expected[i].ImagePullPolicy = "registry.invalid/csi-proxy:unset", ""
	}
	expect(t, "init containers", fromComponents.Spec.Template.Spec.InitContainers, expected)
}

func TestEveryValueOfTheChartHasItsEffect(t *testing.T) {
	set := only[*apps.DaemonSet](t, mustHelm(t, everyValue))
	pod := set.Spec.Template.Spec
	container := pod.Containers[0]
	expect(t, "image", container.Image,
		"registry.example.com/csi-proxy@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
	expect(t, "pull policy", container.ImagePullPolicy, core.PullAlways)
	expect(t, "pull secrets", pod.ImagePullSecrets, []core.LocalObjectReference{{Name: "registry"}})
	expect(t, "arguments", container.Args, []string{
		"-drain=3", "-max-connections=256", "-v=$(LOG_LEVEL)", "-metrics-bind-address=$(METRICS_ADDRESS):9100", `-kubelet-path=D:\var\lib\kubelet`,
		`-working-dir=D:\csi`, `-working-dir=E:\csi`, "-require-privacy=false",
		"-api-groups=disk,volume", "-services=MSiSCSI", "-smb-servers=fs1.example.com,fs2.example.com", "-iscsi-portals=10.0.0.0/24",
		"-format-file-system=ReFS", "-format-allocation-unit=65536", "-format-writer-sid=S-1-5-93-2-2",
		"-share-smb-mappings", "-max-connections=512",
	})
	expect(t, "log level", variable(t, container, "LOG_LEVEL").Value, "5")
	expect(t, "update strategy", set.Spec.UpdateStrategy, apps.DaemonSetUpdateStrategy{Type: apps.OnDeleteDaemonSetStrategyType})
	rolling := only[*apps.DaemonSet](t, mustHelm(t, image+"maxUnavailable: 5")).Spec.UpdateStrategy.RollingUpdate
	expect(t, "maxUnavailable", *rolling.MaxUnavailable, intstr.FromInt32(5))
	expect(t, "minReadySeconds", set.Spec.MinReadySeconds, 60)
	expect(t, "grace period", *pod.TerminationGracePeriodSeconds, 30)
	expect(t, "priority", pod.PriorityClassName, "")
	expect(t, "node selector", pod.NodeSelector, map[string]string{"kubernetes.io/os": "windows", "pool": "a"})
	terms := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	expect(t, "affinity", terms[0].MatchExpressions[0].Values, []string{"service", "off", "spare"})
	expect(t, "tolerations", pod.Tolerations, []core.Toleration{{Key: "os", Operator: core.TolerationOpExists}})
	expect(t, "memory", container.Resources.Limits.Memory().String(), "1Gi")
	expect(t, "labels", set.Spec.Template.Labels,
		map[string]string{"app.kubernetes.io/name": "csi-proxy", "app.kubernetes.io/managed-by": "me", "team": "storage", "owner": "sre", "release": "other"})
	expect(t, "label of the DaemonSet", set.Labels["owner"], "sre")
	expect(t, "name in the labels of the DaemonSet", set.Labels["app.kubernetes.io/name"], "csi-proxy")
	expect(t, "label that the chart itself sets", set.Labels["app.kubernetes.io/managed-by"], "Helm")
	expect(t, "init containers", len(pod.InitContainers), 2)
	expect(t, "removal of the service, the last", pod.InitContainers[1].Command, []string{"csi-proxy.exe", "service", "uninstall"})
	expect(t, "addresses in the firewall", variable(t, pod.InitContainers[0], "ALLOW_FROM").Value, "10.0.0.0/8,192.0.2.7")
	expect(t, "port in the firewall", variable(t, pod.InitContainers[0], "METRICS_PORT").Value, "9100")
	for _, binding := range all[*admissionregistration.ValidatingAdmissionPolicyBinding](mustHelm(t, everyValue)) {
		expect(t, "actions", binding.Spec.ValidationActions, []admissionregistration.ValidationAction{admissionregistration.Deny})
	}
	expect(t, "annotations", set.Spec.Template.Annotations, map[string]string{"note": "x"})
	bound := map[string]rbac.Subject{}
	for _, binding := range all[*rbac.ClusterRoleBinding](mustHelm(t, everyValue)) {
		bound[binding.Name+" "+binding.RoleRef.Name] = binding.Subjects[0]
	}
	ebs := rbac.Subject{Kind: "ServiceAccount", Name: "ebs-csi-node-sa", Namespace: "ebs"}
	expect(t, "subjects", bound, map[string]rbac.Subject{
		"csi-proxy-pipe-user-kube-system-csi-azuredisk-node-sa csi-proxy-pipe-user": {Kind: "ServiceAccount", Name: "csi-azuredisk-node-sa", Namespace: "kube-system"},
		"csi-proxy-pipe-user-disk-ebs-ebs-csi-node-sa csi-proxy-pipe-user-disk":     ebs,
		"csi-proxy-pipe-user-volume-ebs-ebs-csi-node-sa csi-proxy-pipe-user-volume": ebs,
	})
	tagged := only[*apps.DaemonSet](t, mustHelm(t, "image: {repository: a/b, tag: c}"))
	expect(t, "image", tagged.Spec.Template.Spec.Containers[0].Image, "a/b:c")
}

func TestTheSchemaRefusesValuesThatCannotWork(t *testing.T) {
	for _, values := range []string{
		"",
		"image: {tag: 1.0.0}",
		"image: {repository: ''}",
		image + "imag: {}",
		image + "drainSeconds: 5",
		image + "drainSeconds: '4'",
		image + "terminationGracePeriodSeconds: 5",
		image + "logLevel: debug",
		image + "kubeletPath: /var/lib/kubelet",
		image + `workingDirs: ['D:\a b']`,
		image + "apiGroups: [disks]",
		image + "services: ['a,b']",
		image + "extraFlags: [share-smb-mappings]",
		image + "extraFlags: ['-v 5']",
		image + "extraFlags: [-nosuchflag]",
		image + "extraFlags: [-drain=30]",
		image + "metrics: {podMonitor: true}",
		image + "metrics: {allowFrom: ['a b']}",
		image + "metrics: {runbookUrl: example.com}",
		image + "updateStrategy: Recreate",
		image + "admissionPolicy: {validationActions: [Refuse]}",
		image + "admissionPolicy: {validationActions: [Deny, Warn]}", // as the API server does
		image + "metrics: {address: 0.0.0.0}",
		image + "metrics: {port: 0}",
		image + "metrics: {portt: 1}",
		image + "maxUnavailable: 0",
		image + "maxUnavailable: 0%",
		image + "maxUnavailable: '5'",
		image + "admissionPolicy: {serviceAccounts: [kube-system/a]}",
		"image: {repository: a, digest: sha256:0}",
	} {
		if _, err := helm(t, values); err == nil {
			t.Errorf("accepted: %s", values)
		}
	}
}

// flag returns the value of the one argument with this prefix.
func flag(t *testing.T, container core.Container, prefix string) string {
	t.Helper()
	var found []string
	for _, argument := range container.Args {
		if value, ok := strings.CutPrefix(argument, prefix); ok {
			found = append(found, value)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d arguments %s in %v", len(found), prefix, container.Args)
	}
	return found[0]
}

// variable returns a variable of the container.
func variable(t *testing.T, container core.Container, name string) *core.EnvVar {
	t.Helper()
	for i := range container.Env {
		if container.Env[i].Name == name {
			return &container.Env[i]
		}
	}
	t.Fatalf("no variable %s", name)
	return nil
}

// expect compares two values.
func expect[T any](t *testing.T, what string, found, wanted T) {
	t.Helper()
	if !reflect.DeepEqual(found, wanted) {
		t.Errorf("%s: %v, not %v", what, found, wanted)
	}
}
