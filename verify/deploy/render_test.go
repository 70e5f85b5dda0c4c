// Package deploy tests the folder deploy: that its manifests are valid, what the kustomizations and the chart render, what
// the admission policy admits, and that the daemon accepts the flags that all of them use.
package deploy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// The folders, relative to this one.
const (
	root       = "../.."
	deployment = root + "/deploy"
	chart      = deployment + "/helm/csi-proxy"
)

var scheme = newScheme()

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistration.AddToScheme, apps.AddToScheme, core.AddToScheme, rbac.AddToScheme, storage.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	scheme.AddKnownTypeWithName(monitoring.WithKind("PodMonitor"), &podMonitor{})
	scheme.AddKnownTypeWithName(monitoring.WithKind("PrometheusRule"), &prometheusRule{})
	return scheme
}

// decode returns the objects of a stream of YAML documents. It fails on fields that the types do not have and on
// duplicate ones.
func decode(t *testing.T, name, text string) []runtime.Object {
	t.Helper()
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	var objects []runtime.Object
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if isEmpty(document) {
			continue
		}
		object, _, err := strict.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, document)
		}
		objects = append(objects, object)
	}
}

// isEmpty returns whether a document consists of comments.
func isEmpty(document []byte) bool {
	for line := range bytes.Lines(document) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}

// only returns the one object of type T.
func only[T runtime.Object](t *testing.T, objects []runtime.Object) T {
	t.Helper()
	found := all[T](objects)
	if len(found) != 1 {
		t.Fatalf("%d objects of type %T, not 1", len(found), *new(T))
	}
	return found[0]
}

// all returns the objects of type T.
func all[T runtime.Object](objects []runtime.Object) []T {
	var found []T
	for _, object := range objects {
		if object, ok := object.(T); ok {
			found = append(found, object)
		}
	}
	return found
}

// kustomize renders a folder of deploy, such as "kustomize/base". The kustomization `more`, if any, is added to that folder
// first, and the resource `other` as other.yaml.
func kustomize(t *testing.T, folder, more string, other ...string) []runtime.Object {
	t.Helper()
	files := filesys.MakeFsInMemory()
	err := filepath.WalkDir(deployment, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(deployment, path)
		if err != nil {
			return err
		}
		return files.WriteFile("/deploy/"+filepath.ToSlash(relative), content)
	})
	if err != nil {
		t.Fatal(err)
	}
	if more != "" {
		if err := files.WriteFile("/deploy/"+folder+"/kustomization.yaml", []byte(more)); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.WriteFile("/deploy/"+folder+"/other.yaml", []byte(strings.Join(other, ""))); err != nil {
		t.Fatal(err)
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/deploy/"+folder)
	if err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	text, err := rendered.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, folder, string(text))
}

// components is the kustomization of the base with these components.
func components(names ...string) string {
	var text bytes.Buffer
	text.WriteString("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n")
	text.WriteString("resources:\n  - ../../base\n")
	if len(names) > 0 {
		text.WriteString("components:\n")
	}
	for _, name := range names {
		text.WriteString("  - ../../components/" + name + "\n")
	}
	return text.String()
}

// helm renders the chart with values beyond its own ones, in YAML. It returns an error if the schema refuses them.
func helm(t *testing.T, values string) ([]runtime.Object, error) {
	t.Helper()
	return helmFor(t, values, "v1.35.1")
}

// helmFor renders the chart for a cluster with this version of Kubernetes.
func helmFor(t *testing.T, values, kubernetes string) ([]runtime.Object, error) {
	t.Helper()
	cluster := chartutil.DefaultCapabilities.Copy()
	cluster.KubeVersion = chartutil.KubeVersion{Version: kubernetes}
	loaded, err := loader.Load(chart)
	if err != nil {
		t.Fatal(err)
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	release := chartutil.ReleaseOptions{Name: "test", Namespace: "kube-system", Revision: 1, IsInstall: true}
	coalesced, err := chartutil.ToRenderValues(loaded, given, release, cluster)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Engine{Strict: true}.Render(loaded, coalesced)
	if err != nil {
		return nil, err
	}
	var objects []runtime.Object
	for name, text := range rendered {
		if strings.HasSuffix(name, ".yaml") {
			objects = append(objects, decode(t, name, text)...)
		}
	}
	return objects, nil
}

// mustHelm renders the chart with values that its schema accepts.
func mustHelm(t *testing.T, values string) []runtime.Object {
	t.Helper()
	objects, err := helm(t, values)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// read returns the text of a file, relative to the root of the tree.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	// On Windows, git may have changed the ends of lines.
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}
