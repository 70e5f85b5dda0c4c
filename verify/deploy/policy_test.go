package deploy

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/util/jsonpath"
)

// expression is a CEL expression of a policy, as the API server's compiler takes it.
type expression struct {
	name, text string
	types      []*cel.Type
}

func (e expression) GetName() string          { return e.name }
func (e expression) GetExpression() string    { return e.text }
func (e expression) ReturnTypes() []*cel.Type { return e.types }

// policy is a compiled ValidatingAdmissionPolicy.
type policy struct {
	*admissionregistration.ValidatingAdmissionPolicy
	validations, messages plugincel.ConditionEvaluator
}

// compile compiles a policy as the API server of Kubernetes 1.30 does for a policy that is created.
func compile(t *testing.T, source *admissionregistration.ValidatingAdmissionPolicy) policy {
	t.Helper()
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(version.MajorMinor(1, 30)))
	if err != nil {
		t.Fatal(err)
	}
	withAuthorizer := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	for _, variable := range source.Spec.Variables {
		result := compiler.CompileAndStoreVariable(
			expression{variable.Name, variable.Expression, []*cel.Type{cel.AnyType, cel.DynType}},
			withAuthorizer, environment.NewExpressions)
		if result.Error != nil {
			t.Fatalf("%s: variable %s: %v", source.Name, variable.Name, result.Error)
		}
	}
	var validations, messages []plugincel.ExpressionAccessor
	for _, validation := range source.Spec.Validations {
		validations = append(validations, expression{"", validation.Expression, []*cel.Type{cel.BoolType}})
		messages = append(messages, expression{"", validation.MessageExpression, []*cel.Type{cel.StringType}})
	}
	compiled := policy{
		source,
		compiler.CompileCondition(validations, withAuthorizer, environment.NewExpressions),
		compiler.CompileCondition(messages, plugincel.OptionalVariableDeclarations{}, environment.NewExpressions),
	}
	for _, conditions := range []plugincel.ConditionEvaluator{compiled.validations, compiled.messages} {
		if errors := conditions.CompilationErrors(); len(errors) > 0 {
			t.Fatalf("%s: %v", source.Name, errors)
		}
	}
	return compiled
}

// refusal returns the message with which the policy refuses the creation of an object, or "".
func (p policy) refusal(t *testing.T, object runtime.Object, resource string, roles roles) string {
	t.Helper()
	kind := object.GetObjectKind().GroupVersionKind()
	gvr := schema.GroupVersionResource{Version: "v1", Resource: resource}
	accessor := object.(meta.Object)
	attributes := admission.NewAttributesRecord(object, nil, kind, accessor.GetNamespace(), accessor.GetName(), gvr, "",
		admission.Create, &meta.CreateOptions{}, false, &user.DefaultInfo{Name: "system:serviceaccount:kube-system:daemon-set-controller"})
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedObject: object, VersionedKind: kind}
	request := plugincel.CreateAdmissionRequest(attributes, meta.GroupVersionResource(gvr), meta.GroupVersionKind(kind))
	evaluate := func(conditions plugincel.ConditionEvaluator, bindings plugincel.OptionalVariableBindings) []plugincel.EvaluationResult {
		results, _, err := conditions.ForInput(context.Background(), versioned, request, bindings, nil, celconfig.RuntimeCELCostBudget)
		if err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
		return results
	}
	validations := evaluate(p.validations, plugincel.OptionalVariableBindings{Authorizer: roles})
	for i, result := range validations {
		if result.Error != nil {
			// With failurePolicy Fail this would be a refusal, but not for the reason that a test expects.
			t.Fatalf("%s: %s: %v", p.Name, accessor.GetName(), result.Error)
		}
		if result.EvalResult.Value() != true {
			message := evaluate(p.messages, plugincel.OptionalVariableBindings{})[i]
			if message.Error != nil {
				t.Fatalf("%s: message: %v", p.Name, message.Error)
			}
			return message.EvalResult.Value().(string)
		}
	}
	return ""
}

// roles decides as the API server's RBAC does, from ClusterRoles and ClusterRoleBindings.
type roles []runtime.Object

func (r roles) Authorize(_ context.Context, ask authorizer.Attributes) (authorizer.Decision, string, error) {
	for _, binding := range all[*rbac.ClusterRoleBinding](r) {
		isSubject := slices.ContainsFunc(binding.Subjects, func(subject rbac.Subject) bool {
			return subject.Kind == "ServiceAccount" && ask.GetUser().GetName() == "system:serviceaccount:"+subject.Namespace+":"+subject.Name
		})
		for _, role := range all[*rbac.ClusterRole](r) {
			if isSubject && role.Name == binding.RoleRef.Name && slices.ContainsFunc(role.Rules, func(rule rbac.PolicyRule) bool {
				return slices.Contains(rule.APIGroups, ask.GetAPIGroup()) && slices.Contains(rule.Resources, ask.GetResource()) &&
					slices.Contains(rule.Verbs, ask.GetVerb()) &&
					(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, ask.GetName()))
			}) {
				return authorizer.DecisionAllow, "", nil
			}
		}
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// policies returns the compiled policies for pods and for persistent volumes.
func policies(t *testing.T) (pods, volumes policy) {
	t.Helper()
	for _, found := range all[*admissionregistration.ValidatingAdmissionPolicy](kustomize(t, "admission", "")) {
		switch found.Spec.MatchConstraints.ResourceRules[0].Resources[0] {
		case "pods":
			pods = compile(t, found)
		case "persistentvolumes":
			volumes = compile(t, found)
		}
	}
	return pods, volumes
}

// pod is one with these host paths, and with volumes of other kinds.
func pod(account string, paths ...string) *core.Pod {
	pod := &core.Pod{
		TypeMeta:   meta.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: meta.ObjectMeta{Name: strings.Join(paths, " "), Namespace: "kube-system"},
		Spec:       core.PodSpec{ServiceAccountName: account},
	}
	for i, path := range paths {
		pod.Spec.Volumes = append(pod.Spec.Volumes, core.Volume{Name: fmt.Sprint("v", i), VolumeSource: core.VolumeSource{
			HostPath: &core.HostPathVolumeSource{Path: path}}})
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, core.Volume{Name: "empty", VolumeSource: core.VolumeSource{
		EmptyDir: &core.EmptyDirVolumeSource{}}})
	return pod
}

// Paths that lead to the pipes of csi-proxy, or may lead there.
var pipes = []string{
	`\\.\pipe\csi-proxy-disk-v1`,
	`\\.\pipe\csi-proxy-filesystem-v2alpha1`,
	`\\.\pipe\csi-proxy-v1alpha1`,
	`\\.\pipe\CSI-Proxy-Disk-v1`,
	`\\.\PIPE\csi-proxy-smb-v1`,
	`//./pipe/csi-proxy-disk-v1`,
	`\/./pipe\csi-proxy-disk-v1`,
	`\\.\pipe/csi-proxy-disk-v1`,
	`\\.\pipe\\csi-proxy-disk-v1`,
	`\\\\.\\pipe\\csi-proxy-disk-v1`,
	`\\.\pipe\csi-proxy-disk-v1\`,
	`\\?\pipe\csi-proxy-disk-v1`,
	`\??\pipe\csi-proxy-disk-v1`,
	` \\.\pipe\csi-proxy-disk-v1`,
	`\\.\pipe.\csi-proxy-disk-v1`,
	`\\.\pipe \csi-proxy-disk-v1`,
	`\\.\.\pipe\csi-proxy-disk-v1`,
	`\\.\pipe\.\csi-proxy-disk-v1`,
	`\\.\x\..\pipe\csi-proxy-disk-v1`,
	`\\.\c:\..\pipe\csi-proxy-disk-v1`,
	`\\?\c:\a\.. \..\..\pipe\csi-proxy-disk-v1`,
	`\\.\pipe\x\..\csi-proxy-disk-v1`,
	`\\.\global\pipe\csi-proxy-disk-v1`,
	`\\.\GLOBALROOT\Device\NamedPipe\csi-proxy-disk-v1`,
	`\\?\GLOBALROOT\??\pipe\csi-proxy-disk-v1`,
	`\\localhost\pipe\csi-proxy-disk-v1`,
	`\\127.0.0.1\PIPE\csi-proxy-disk-v1`,
	`\\node.example.com\pipe \csi-proxy-disk-v1`,
	`\\localhost\ipc$`,
	`\\?\UNC\localhost\pipe\csi-proxy-disk-v1`,
	"\\\\.\\pipe\\c\u017fi-proxy-disk-v1", // a letter that some rules for case turn into "s"
	// Folders above the pipes, of which a container can mount a part by a subPath.
	`\\.\pipe\`,
	`\\.\pipe`,
	`//./pipe/`,
	`//./pipe`,
	`\\.\pipe\.`,
	`\\.\pipe\\`,
	`\\.\`,
	`\\.`,
	`\\?\`,
	`\\`,
	`\??\`,
	`\\.\GLOBALROOT`,
	`\\.\GLOBALROOT\Device\NamedPipe\`,
	`\\localhost`,
	`\\localhost\pipe`,
}

// Paths that lead elsewhere, which other programs of a cluster mount.
var others = []string{
	`C:\var\lib\kubelet`,
	`C:\var\lib\kubelet\plugins\driver.example.com`,
	`C:\var\lib\pipe`,
	`c:/csi-proxy`,
	`C:\etc\kubernetes\logs\csi-proxy`,
	`/var/lib/kubelet`,
	`/pipe`,
	`/run/csi-proxy-disk-v1.sock`,
	`//var/run/docker.sock`,
	`/`,
	`\\.\pipe\docker_engine`,
	`\\.\pipe\containerd-containerd`,
	`\\.\pipe\containerd..containerd`,
	`\\fileserver.example.com\share`,
	`\\10.0.0.1\share$\folder\csi-proxy`,
	`\\?\C:\var\lib\kubelet`,
	`\\?\Volume{0f6b1f29-7a4c-4c4a-9d3f-000000000001}\`,
	`\\.\PhysicalDrive1`,
}

const plugin = "example-csi-node"

var groupOfPipe = regexp.MustCompile(`^\\\\\.\\pipe\\csi-proxy-([a-z]+)-v[0-9a-z]+$`)

// The role of a group gives no pipe of another group, no folder above the pipes, and no path of which the group is not certain.
func TestARoleOfAGroupIsForThePipesOfThatGroupOnly(t *testing.T) {
	pods, _ := policies(t)
	groups := []string{"disk", "filesystem", "iscsi", "smb", "system", "volume"}
	objects := kustomize(t, "admission", "")
	bind := func(roleNames ...string) roles {
		bound := slices.Clone(objects)
		for _, name := range roleNames {
			bound = append(bound, &rbac.ClusterRoleBinding{
				RoleRef:  rbac.RoleRef{Kind: "ClusterRole", Name: name},
				Subjects: []rbac.Subject{{Kind: "ServiceAccount", Name: plugin, Namespace: "kube-system"}},
			})
		}
		return bound
	}
	var roleNames, paths []string
	for _, group := range groups {
		roleNames = append(roleNames, "csi-proxy-pipe-user-"+group)
		paths = append(paths, `\\.\pipe\csi-proxy-`+group+`-v1`)
	}
	for i, group := range groups {
		for j, path := range paths {
			isRefused := pods.refusal(t, pod(plugin, path), "pods", bind(roleNames[i])) != ""
			expect(t, group+", "+path, isRefused, i != j)
		}
		for _, path := range pipes {
			match := groupOfPipe.FindStringSubmatch(normal(path))
			isRefused := pods.refusal(t, pod(plugin, path), "pods", bind(roleNames[i])) != ""
			expect(t, group+", "+path, isRefused, match == nil || match[1] != group)
		}
	}
	expect(t, "two of two groups", pods.refusal(t, pod(plugin, paths[:2]...), "pods", bind(roleNames[:2]...)), "")
	two := pods.refusal(t, pod(plugin, paths[0], paths[2]), "pods", bind(roleNames[:2]...))
	expect(t, "one of two groups", two, "service account kube-system/"+plugin+
		" may not mount the pipes of the group iscsi: bind the ClusterRole csi-proxy-pipe-user-iscsi to it")
	// The cost of an expression is limited.
	expect(t, "all groups", pods.refusal(t, pod(plugin, paths...), "pods", bind(roleNames...)), "")
	above := pods.refusal(t, pod(plugin, `\\.\pipe\`), "pods", bind(roleNames...))
	if !strings.HasSuffix(above, "bind the ClusterRole csi-proxy-pipe-user to it") {
		t.Errorf("a folder above the pipes: %q", above)
	}
}

func TestOnlyNamedServiceAccountsMountThePipes(t *testing.T) {
	pods, _ := policies(t)
	allowed := roles(append(kustomize(t, "example-node-plugin", ""), kustomize(t, "admission", "")...))
	for _, path := range pipes {
		refusal := pods.refusal(t, pod("some-account", `C:\a`, path), "pods", allowed)
		expected := "service account kube-system/some-account may not mount " + normal(path) +
			", which gives access to the pipes of csi-proxy: bind the ClusterRole csi-proxy-pipe-user to it"
		if match := groupOfPipe.FindStringSubmatch(normal(path)); match != nil {
			expected = "service account kube-system/some-account may not mount the pipes of the group " + match[1] +
				": bind the ClusterRole csi-proxy-pipe-user-" + match[1] + " to it"
		}
		expect(t, path, refusal, expected)
		expect(t, path, pods.refusal(t, pod(plugin, path), "pods", allowed), "")
	}
	for _, path := range others {
		expect(t, path, pods.refusal(t, pod("some-account", path), "pods", allowed), "")
	}
}

// normal returns the path as the policy shows it.
func normal(path string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimSpace(path), "/", `\`))
}

func TestAnAccountOfTheSameNameElsewhereAndTheDefaultAccountAreRefused(t *testing.T) {
	pods, _ := policies(t)
	allowed := roles(append(kustomize(t, "example-node-plugin", ""), kustomize(t, "admission", "")...))
	elsewhere := pod(plugin, pipes[0])
	elsewhere.Namespace = "default"
	without := pod("", pipes[0])
	for object, account := range map[*core.Pod]string{elsewhere: "default/" + plugin, without: "kube-system/default"} {
		refusal := pods.refusal(t, object, "pods", allowed)
		if !strings.HasPrefix(refusal, "service account "+account+" may not mount") {
			t.Errorf("%s: %q", account, refusal)
		}
	}
	if refusal := pods.refusal(t, pod(plugin, pipes[0]), "pods", nil); refusal == "" {
		t.Error("the account is admitted without its role")
	}
}

func TestAPodWithoutVolumesOrWithManyIsDecided(t *testing.T) {
	pods, _ := policies(t)
	empty := pod("some-account")
	empty.Spec.Volumes = nil
	expect(t, "a pod without volumes", pods.refusal(t, empty, "pods", nil), "")
	// The cost of an expression is limited. A pod has a few volumes; these have the longest usual paths of Windows.
	long := `\\.\PIPE\` + strings.Repeat("a", 240)
	expect(t, "50 volumes", pods.refusal(t, pod("some-account", slices.Repeat([]string{long}, 50)...), "pods", nil), "")
	if refusal := pods.refusal(t, pod("some-account", append(slices.Repeat([]string{long}, 50), pipes[0])...), "pods", nil); refusal == "" {
		t.Error("50 volumes and a pipe: admitted")
	}
}

func TestNoPersistentVolumeIsAPipe(t *testing.T) {
	_, volumes := policies(t)
	volume := func(source core.PersistentVolumeSource) *core.PersistentVolume {
		return &core.PersistentVolume{
			TypeMeta:   meta.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
			ObjectMeta: meta.ObjectMeta{Name: "volume"},
			Spec:       core.PersistentVolumeSpec{PersistentVolumeSource: source},
		}
	}
	sources := func(path string) []core.PersistentVolumeSource {
		return []core.PersistentVolumeSource{
			{HostPath: &core.HostPathVolumeSource{Path: path}},
			{Local: &core.LocalVolumeSource{Path: path}},
		}
	}
	for _, path := range pipes {
		for _, source := range sources(path) {
			expect(t, path, volumes.refusal(t, volume(source), "persistentvolumes", nil),
				"a persistent volume may not be "+normal(path)+", which gives access to the pipes of csi-proxy")
		}
	}
	for _, path := range others {
		for _, source := range sources(path) {
			expect(t, path, volumes.refusal(t, volume(source), "persistentvolumes", nil), "")
		}
	}
	csi := core.PersistentVolumeSource{CSI: &core.CSIPersistentVolumeSource{Driver: "driver.example.com", VolumeHandle: "a"}}
	expect(t, "a volume of a CSI driver", volumes.refusal(t, volume(csi), "persistentvolumes", nil), "")
}

// Everything beside the expressions that a policy needs to have an effect.
func TestThePoliciesWarnFirstAndAreEnforcedWithTheComponent(t *testing.T) {
	warn := []admissionregistration.ValidationAction{admissionregistration.Warn, admissionregistration.Audit}
	deny := []admissionregistration.ValidationAction{admissionregistration.Deny, admissionregistration.Audit}
	arePoliciesWith(t, kustomize(t, "admission", ""), warn)
	enforced := strings.Replace(components("enforce-admission"), "../../base", "../../../admission", 1)
	enforced = strings.Replace(enforced, "components:", "  - other.yaml\ncomponents:", 1)
	other := "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n" +
		"metadata: {name: other}\nspec: {policyName: other, validationActions: [Warn]}\n"
	objects := kustomize(t, "kustomize/overlays/example", enforced, other)
	arePoliciesWith(t, objects, deny)
	for _, binding := range all[*admissionregistration.ValidatingAdmissionPolicyBinding](objects) {
		if binding.Name == "other" {
			expect(t, "actions of another program's binding", binding.Spec.ValidationActions, warn[:1])
		}
	}
	arePoliciesWith(t, mustHelm(t, image+"admissionPolicy: {enabled: true, validationActions: [Deny, Audit]}"), deny)
}

// arePoliciesWith checks that these objects have both policies, for the whole cluster and with these actions.
func arePoliciesWith(t *testing.T, objects []runtime.Object, actions []admissionregistration.ValidationAction) {
	t.Helper()
	found := all[*admissionregistration.ValidatingAdmissionPolicy](objects)
	expect(t, "policies", len(found), 2)
	for _, policy := range found {
		expect(t, "failurePolicy", *policy.Spec.FailurePolicy, admissionregistration.Fail)
		expect(t, "conditions that leave out requests", len(policy.Spec.MatchConditions), 0)
		constraints := policy.Spec.MatchConstraints
		if constraints.NamespaceSelector != nil || constraints.ObjectSelector != nil || len(constraints.ExcludeResourceRules) > 0 {
			t.Errorf("%s leaves out requests", policy.Name)
		}
		expect(t, "parameters, whose absence would refuse or admit every pod", policy.Spec.ParamKind, nil)
		for _, rule := range constraints.ResourceRules {
			expect(t, "group", rule.APIGroups, []string{""})
			expect(t, "version", rule.APIVersions, []string{"v1"})
			expect(t, "creation", slices.Contains(rule.Operations, admissionregistration.Create), true)
		}
		bound := 0
		for _, binding := range all[*admissionregistration.ValidatingAdmissionPolicyBinding](objects) {
			if binding.Spec.PolicyName == policy.Name {
				bound++
				expect(t, "actions", binding.Spec.ValidationActions, actions)
				expect(t, "a binding for a part of the cluster", binding.Spec.MatchResources, nil)
			}
		}
		expect(t, "bindings of "+policy.Name, bound, 1)
	}
}

// Both policies recognize a pipe in the same way, and the chart has the policies of deploy/admission.
func TestThePoliciesDoNotDriftApart(t *testing.T) {
	objects := kustomize(t, "admission", "")
	fromChart := mustHelm(t, image+"admissionPolicy: {enabled: true}")
	recognition := func(policy *admissionregistration.ValidatingAdmissionPolicy) []admissionregistration.Variable {
		return slices.DeleteFunc(slices.Clone(policy.Spec.Variables), func(variable admissionregistration.Variable) bool {
			return slices.Contains([]string{"givenPaths", "groups", "account"}, variable.Name)
		})
	}
	found := all[*admissionregistration.ValidatingAdmissionPolicy](objects)
	expect(t, "variables", recognition(found[0]), recognition(found[1]))
	expect(t, "variables", len(recognition(found[0])), 3)
	byName := func(objects []runtime.Object) map[string]runtime.Object {
		named := map[string]runtime.Object{}
		for _, object := range objects {
			name := object.(meta.Object).GetName()
			named[object.GetObjectKind().GroupVersionKind().Kind+"/"+name] = object
		}
		return named
	}
	expect(t, "objects", len(objects), 11)
	rendered := byName(fromChart)
	for name, object := range byName(objects) {
		expect(t, name, rendered[name], object)
	}
	if len(mustHelm(t, image)) != len(fromChart)-len(objects) {
		t.Error("the chart has the policies although they are not enabled, or something else depends on that")
	}
}

// ValidatingAdmissionPolicy is stable since Kubernetes 1.30. Without the check, an older cluster would fail at the upgrade.
func TestTheChartRefusesThePolicyBelowKubernetes130(t *testing.T) {
	for version, isAccepted := range map[string]bool{"v1.29.9": false, "v1.30.0-gke.1": true, "v1.33.1": true} {
		if _, err := helmFor(t, image+"admissionPolicy: {enabled: true}", version); (err == nil) != isAccepted {
			t.Errorf("%s: %v", version, err)
		}
		if _, err := helmFor(t, image, version); err != nil {
			t.Errorf("%s without the policy: %v", version, err)
		}
	}
}

// listed returns the line that a command of kubectl prints for a pod, and whether the filter of the command keeps the line.
func listed(t *testing.T, template string, filter *regexp.Regexp, path string) (string, bool) {
	t.Helper()
	found := pod("some-account", path)
	found.Name = "pod"
	list, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&core.PodList{Items: []core.Pod{*found}})
	if err != nil {
		t.Fatal(err)
	}
	pods := jsonpath.New("pods").AllowMissingKeys(true) // as kubectl does
	if err := pods.Parse(template); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := pods.Execute(&text, list); err != nil {
		t.Fatal(err)
	}
	return text.String(), filter.MatchString(text.String())
}

// The command that deploy/README.md gives to find out which pods the policy would refuse lists all of them.
func TestTheCommandListsThePodsThatThePolicyWouldRefuse(t *testing.T) {
	match := regexp.MustCompile(`kubectl get pods -A -o jsonpath='(.*)' \| grep -E '(.*)'`).FindStringSubmatch(read(t, "deploy/README.md"))
	if match == nil {
		t.Fatal("deploy/README.md has no such command")
	}
	isListed := func(path string) bool {
		line, isListed := listed(t, match[1], regexp.MustCompile(match[2]), path)
		expect(t, "line", line, "kube-system some-account pod "+path+"\n")
		return isListed
	}
	for _, path := range pipes {
		expect(t, path, isListed(path), true)
	}
	for _, path := range []string{`C:\var\lib\kubelet`, "/var/lib/kubelet", `C:\`} {
		expect(t, path, isListed(path), false)
	}
}

// The command with which an administrator decides whether a cluster needs csi-proxy lists the drivers that open its pipes.
func TestTheCommandListsThePodsThatOpenAPipe(t *testing.T) {
	for _, page := range []string{"README.md", "docs/administrators.md"} {
		match := regexp.MustCompile(`kubectl get pods -A -o jsonpath='(.*)' \| grep -i '(.*)'`).FindStringSubmatch(read(t, page))
		if match == nil {
			t.Fatalf("%s has no such command", page)
		}
		filter := regexp.MustCompile("(?i)" + match[2])
		for path, isExpected := range map[string]bool{
			`\\.\pipe\csi-proxy-disk-v1`: true, "//./pipe/csi-proxy-filesystem-v1beta2": true, `\\.\PIPE\CSI-Proxy-v1`: true,
			`C:\var\lib\kubelet`: false, `\\.\pipe\containerd-containerd`: false, `C:\csi-proxy`: false,
		} {
			line, isListed := listed(t, match[1], filter, path)
			expect(t, page+", line", line, "kube-system pod "+path+"\n")
			expect(t, page+", "+path, isListed, isExpected)
		}
	}
}
