package deploy

import (
	"encoding/json"
	"regexp"
	"slices"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// goDaemonSets returns the DaemonSets of the csi-proxy written in Go as two projects publish them: csi-driver-smb
// (deploy/example/windows/csi-proxy.yaml, commit 977df6e3) and csi-proxy (deploy/csi-proxy-ds.yaml, commit 46da1712), in the fields
// that decide where they run. Both have this name and this namespace; the selectors differ.
func goDaemonSets() []*apps.DaemonSet {
	var sets []*apps.DaemonSet
	for _, label := range []string{"k8s-app", "name"} {
		set := &apps.DaemonSet{ObjectMeta: meta.ObjectMeta{Name: "csi-proxy", Namespace: "kube-system"}}
		set.Spec.Selector = &meta.LabelSelector{MatchLabels: map[string]string{label: "csi-proxy"}}
		set.Spec.Template.Labels = map[string]string{label: "csi-proxy"}
		set.Spec.Template.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "windows"}
		sets = append(sets, set)
	}
	return sets
}

// mergePatch applies a JSON merge patch (RFC 7386), as `kubectl patch --type merge` does.
func mergePatch(into, patch map[string]any) {
	for name, value := range patch {
		inner, isObject := value.(map[string]any)
		current, hasObject := into[name].(map[string]any)
		switch {
		case value == nil:
			delete(into, name)
		case isObject && hasObject:
			mergePatch(current, inner)
		default:
			into[name] = value
		}
	}
}

// patched returns the DaemonSet after the command of docs/upgrade.md.
func patched(t *testing.T, set *apps.DaemonSet) *apps.DaemonSet {
	t.Helper()
	match := regexp.MustCompile(`kubectl -n kube-system patch daemonset csi-proxy --type merge -p '(.*)'`).FindStringSubmatch(read(t, "docs/upgrade.md"))
	if match == nil {
		t.Fatal("docs/upgrade.md has no such command")
	}
	var patch map[string]any
	if err := json.Unmarshal([]byte(match[1]), &patch); err != nil {
		t.Fatal(err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		t.Fatal(err)
	}
	mergePatch(fields, patch)
	changed := &apps.DaemonSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, changed, true); err != nil {
		t.Fatal(err)
	}
	return changed
}

// runsOn returns whether the DaemonSet controller runs a pod on a node with these labels.
func runsOn(t *testing.T, set *apps.DaemonSet, node map[string]string) bool {
	t.Helper()
	pod := set.Spec.Template.Spec
	if !labels.SelectorFromSet(pod.NodeSelector).Matches(labels.Set(node)) {
		return false
	}
	if pod.Affinity == nil {
		return true
	}
	terms := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	expect(t, "terms", len(terms), 1)
	for _, expression := range terms[0].MatchExpressions {
		expect(t, "operator", expression.Operator, core.NodeSelectorOpNotIn)
		if slices.Contains(expression.Values, node[expression.Key]) {
			return false
		}
	}
	return true
}

// During the migration, each Windows node runs exactly one of both, which its label decides, and no pod of the Go program is
// restarted before that. On a node with the service, neither runs.
func TestANodeChangesFromTheGoDaemonSetToOursAndBackByItsLabel(t *testing.T) {
	for name, objects := range map[string][]runtime.Object{"base": kustomize(t, "kustomize/base", ""), "chart": mustHelm(t, image)} {
		ours := only[*apps.DaemonSet](t, objects)
		for _, theirs := range goDaemonSets() {
			if ours.Name == theirs.Name {
				t.Errorf("%s: the DaemonSets of %s have the same name", name, theirs.Namespace)
			}
			for _, pair := range [][2]*apps.DaemonSet{{ours, theirs}, {theirs, ours}} {
				selector := labels.SelectorFromSet(pair[0].Spec.Selector.MatchLabels)
				expect(t, "selects the pods of the other", selector.Matches(labels.Set(pair[1].Spec.Template.Labels)), false)
			}
			theirs = patched(t, theirs)
			expect(t, "updates", theirs.Spec.UpdateStrategy.Type, apps.OnDeleteDaemonSetStrategyType)
			for label, runs := range map[string][2]bool{"": {true, false}, "off": {false, true}, "service": {false, false}} {
				node := map[string]string{"kubernetes.io/os": "windows", "csi-proxy": label}
				if label == "" {
					delete(node, "csi-proxy")
				}
				expect(t, name+" on a node with the label "+label, [2]bool{runsOn(t, ours, node), runsOn(t, theirs, node)}, runs)
				node["kubernetes.io/os"] = "linux"
				expect(t, name+" on Linux", runsOn(t, ours, node) || runsOn(t, theirs, node), false)
			}
		}
	}
}
