package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// monitoring is the API of the Prometheus operator. Its types are here with the fields that the manifests use: decoding fails on
// any other field.
var monitoring = schema.GroupVersion{Group: "monitoring.coreos.com", Version: "v1"}

type podMonitor struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		JobLabel            string             `json:"jobLabel"`
		Selector            meta.LabelSelector `json:"selector"`
		PodMetricsEndpoints []struct {
			Port        string `json:"port"`
			Relabelings []struct {
				SourceLabels []string `json:"sourceLabels"`
				TargetLabel  string   `json:"targetLabel"`
			} `json:"relabelings"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

type prometheusRule struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            alertRules `json:"spec"`
}

func (m *podMonitor) DeepCopyObject() runtime.Object     { copied := *m; return &copied }
func (r *prometheusRule) DeepCopyObject() runtime.Object { copied := *r; return &copied }

// alertRules is a file of rules of Prometheus.
type alertRules struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []struct {
			Record      string            `json:"record,omitempty"`
			Alert       string            `json:"alert,omitempty"`
			Expr        string            `json:"expr"`
			For         string            `json:"for,omitempty"`
			Labels      map[string]string `json:"labels,omitempty"`
			Annotations map[string]string `json:"annotations,omitempty"`
		} `json:"rules"`
	} `json:"groups"`
}

// alerts returns the rules of deploy/monitoring.
func alerts(t *testing.T) alertRules {
	t.Helper()
	var rules alertRules
	if err := yaml.UnmarshalStrict([]byte(read(t, "deploy/monitoring/alerts.yaml")), &rules); err != nil {
		t.Fatal(err)
	}
	if len(rules.Groups) != 1 || len(rules.Groups[0].Rules) < 10 {
		t.Fatalf("unexpected rules: %v", rules)
	}
	return rules
}

const site = "https://csi-proxy.invalid"

// The chart and the component for the operator have copies of the alert rules. With UPDATE=1 the test writes them.
func TestTheCopiesOfTheAlertsAreEqual(t *testing.T) {
	text := read(t, "deploy/monitoring/alerts.yaml")
	_, groups, _ := strings.Cut(text, "groups:\n")
	component := "# Made from deploy/monitoring/alerts.yaml by `UPDATE=1 go test -run Alerts .` in verify/deploy.\n" +
		"apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: csi-proxy\n  namespace: kube-system\n" +
		"  labels:\n    app.kubernetes.io/name: csi-proxy\nspec:\n  groups:\n" + regexp.MustCompile(`(?m)^`).ReplaceAllString(strings.TrimSuffix(groups, "\n"), "  ") + "\n"
	for path, wanted := range map[string]string{
		"deploy/helm/csi-proxy/alerts.yaml":                                    "groups:\n" + groups,
		"deploy/kustomize/components/prometheus-operator/prometheus-rule.yaml": component,
	} {
		if os.Getenv("UPDATE") != "" {
			if err := os.WriteFile(filepath.Join(root, path), []byte(wanted), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if read(t, path) != wanted {
			t.Errorf("%s differs from deploy/monitoring/alerts.yaml: run `UPDATE=1 go test -run Alerts .`", path)
		}
	}
}

// What the operator loads are the rules of deploy/monitoring, with links that lead to the documentation or with none.
func TestTheRenderedAlertsAreTheTestedOnes(t *testing.T) {
	with := func(url string) alertRules {
		rules := alerts(t)
		for i := range rules.Groups[0].Rules {
			annotations := rules.Groups[0].Rules[i].Annotations
			if url == "" {
				delete(annotations, "runbook_url")
			} else if annotations != nil {
				annotations["runbook_url"] = strings.Replace(annotations["runbook_url"], site, url, 1)
			}
		}
		return rules
	}
	component := kustomize(t, "kustomize/overlays/example", components("metrics", "prometheus-operator"))
	expect(t, "rules of the component", only[*prometheusRule](t, component).Spec, with(site))
	fromChart := only[*prometheusRule](t, mustHelm(t, image+"metrics: {prometheusRule: true}"))
	expect(t, "rules of the chart", fromChart.Spec, with(""))
	withLinks := only[*prometheusRule](t, mustHelm(t, everyValue))
	expect(t, "rules of the chart with the address of the documentation", withLinks.Spec, with("https://docs.example.com/csi-proxy"))
	expect(t, "label by which Prometheus selects the rules", withLinks.Labels["release"], "prometheus")
}

// Each alert has a row with its severity and duration in docs/monitoring.md, and leads to a section that says what to do and
// links the commands for it.
func TestEachAlertLinksItsSection(t *testing.T) {
	page := read(t, "docs/monitoring.md")
	for _, rule := range alerts(t).Groups[0].Rules {
		if rule.Alert == "" {
			continue
		}
		anchor := strings.ToLower(rule.Alert)
		expect(t, rule.Alert+": runbook_url", rule.Annotations["runbook_url"], site+"/monitoring.html#"+anchor)
		duration := rule.For
		if duration == "" {
			duration = "at once"
		}
		row := fmt.Sprintf("| [%s](#%s) | %s | %s |", rule.Alert, anchor, rule.Labels["severity"], duration)
		if !strings.Contains(page, row) {
			t.Errorf("docs/monitoring.md has no row %s", row)
		}
		_, section, found := strings.Cut(page, "\n### "+rule.Alert+"\n")
		section, _, _ = strings.Cut(section, "\n#")
		if !found || !strings.Contains(section, "](troubleshoot.md#commands)") {
			t.Errorf("docs/monitoring.md has no section %s that links the commands", rule.Alert)
		}
	}
}

// What tells an administrator to examine a node, to look at its calls or to read its log links the commands for a service and
// for a container.
func TestEachRemedyLinksTheCommands(t *testing.T) {
	for path, sections := range map[string][]string{
		"docs/troubleshoot.md": {"Where to look", "A call takes long", "The daemon does not start"},
		"docs/windows.md":      {"Checking a node"},
		"docs/operate.md":      {"The log"},
		"deploy/README.md":     {"Verify"},
	} {
		for _, title := range sections {
			_, section, _ := strings.Cut(read(t, path), "\n## "+title+"\n")
			section, _, _ = strings.Cut(section, "\n## ")
			if !regexp.MustCompile(`\]\(([a-z./]*troubleshoot\.md)?#commands\)`).MatchString(section) {
				t.Errorf("%s: the section %s does not link the commands", path, title)
			}
		}
	}
	if !strings.Contains(read(t, "docs/troubleshoot.md"), "\n## Commands\n") {
		t.Error("docs/troubleshoot.md has no commands")
	}
}

// relabelRule is a rule of relabel_configs.
type relabelRule struct {
	SourceLabels []string `json:"source_labels"`
	TargetLabel  string   `json:"target_label"`
	Regex        string   `json:"regex"`
	Replacement  *string  `json:"replacement"`
	Action       string   `json:"action"`
}

// relabel changes the labels of a target as Prometheus does, and returns whether the target is scraped.
// <https://prometheus.io/docs/prometheus/latest/configuration/configuration/#relabel_config>
func relabel(t *testing.T, rules []relabelRule, target map[string]string) bool {
	t.Helper()
	for _, rule := range rules {
		var values []string
		for _, label := range rule.SourceLabels {
			values = append(values, target[label])
		}
		pattern, replacement := "(.*)", "$1"
		if rule.Regex != "" {
			pattern = rule.Regex
		}
		if rule.Replacement != nil {
			replacement = *rule.Replacement
		}
		regex, value := regexp.MustCompile("^(?:"+pattern+")$"), strings.Join(values, ";")
		switch matches := regex.MatchString(value); rule.Action {
		case "keep", "drop":
			if matches != (rule.Action == "keep") {
				return false
			}
		case "", "replace":
			if matches {
				// A number that a colon follows is a group.
				target[rule.TargetLabel] = regex.ReplaceAllString(value, replacement)
			}
		default:
			t.Fatalf("unknown action %s", rule.Action)
		}
	}
	return true
}

// sanitized is the name of a label of Kubernetes in the service discovery of Prometheus.
func sanitized(name string) string {
	return regexp.MustCompile("[^A-Za-z0-9_]").ReplaceAllString(name, "_")
}

// scraped returns the labels of the target that the operator makes of a pod of the DaemonSet on node-7, which has the address
// 10.0.0.7. <https://prometheus-operator.dev/docs/api-reference/api/#monitoring.coreos.com/v1.PodMonitor>
func scraped(t *testing.T, objects []runtime.Object) map[string]string {
	t.Helper()
	monitor, set := only[*podMonitor](t, objects), only[*apps.DaemonSet](t, objects)
	template := set.Spec.Template
	selector, err := meta.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "the monitor selects the pods", selector.Matches(labels.Set(template.Labels)), true)
	expect(t, "namespace of the monitor, which is that of the pods it selects", monitor.Namespace, set.Namespace)
	expect(t, "endpoints", len(monitor.Spec.PodMetricsEndpoints), 1)
	endpoint, container := monitor.Spec.PodMetricsEndpoints[0], template.Spec.Containers[0]
	at := slices.IndexFunc(container.Ports, func(port core.ContainerPort) bool { return port.Name == endpoint.Port })
	if at < 0 {
		t.Fatalf("the container has no port %s", endpoint.Port)
	}
	target := map[string]string{"__meta_kubernetes_pod_node_name": "node-7", "job": monitor.Namespace + "/" + monitor.Name}
	target["instance"] = fmt.Sprint("10.0.0.7:", container.Ports[at].ContainerPort)
	for name, value := range template.Labels {
		target["__meta_kubernetes_pod_label_"+sanitized(name)] = value
	}
	if value := target["__meta_kubernetes_pod_label_"+sanitized(monitor.Spec.JobLabel)]; value != "" {
		target["job"] = value
	}
	expect(t, "the daemon listens at the address of the node", variable(t, container, "METRICS_ADDRESS").ValueFrom != nil, true)
	var rules []relabelRule
	for _, rule := range endpoint.Relabelings {
		rules = append(rules, relabelRule{SourceLabels: rule.SourceLabels, TargetLabel: rule.TargetLabel})
	}
	relabel(t, rules, target)
	return target
}

// The alerts and the dashboard select and show labels that each way to scrape gives to the targets.
func TestTheAlertsAndTheDashboardSelectTheLabelsOfTheTargets(t *testing.T) {
	var config struct {
		ScrapeConfigs []struct {
			JobName      string              `json:"job_name"`
			Kubernetes   []map[string]string `json:"kubernetes_sd_configs"`
			RelabelRules []relabelRule       `json:"relabel_configs"`
		} `json:"scrape_configs"`
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, "deploy/monitoring/scrape_config.yaml")), &config); err != nil {
		t.Fatal(err)
	}
	job := config.ScrapeConfigs[0]
	expect(t, "service discovery", job.Kubernetes, []map[string]string{{"role": "node"}})
	node := func(os, csiProxy string) map[string]string {
		return map[string]string{
			"job": job.JobName, "__address__": "10.0.0.7:10250", "__meta_kubernetes_node_name": "node-7",
			"__meta_kubernetes_node_address_InternalIP":     "10.0.0.7",
			"__meta_kubernetes_node_label_kubernetes_io_os": os,
			"__meta_kubernetes_node_label_csi_proxy":        csiProxy,
		}
	}
	for _, other := range []map[string]string{node("linux", ""), node("windows", "off")} {
		expect(t, fmt.Sprint("scraped: ", other), relabel(t, job.RelabelRules, other), false)
	}
	targets := map[string]map[string]string{
		"chart":     scraped(t, mustHelm(t, image+"metrics: {address: node, podMonitor: true}")),
		"values":    scraped(t, mustHelm(t, everyValue)),
		"component": scraped(t, kustomize(t, "kustomize/overlays/example", components("metrics", "prometheus-operator"))),
		"job":       node("windows", ""),
		"service":   node("windows", "service"),
	}
	for _, name := range []string{"job", "service"} {
		expect(t, name+" is scraped", relabel(t, job.RelabelRules, targets[name]), true)
		expect(t, "address", targets[name]["__address__"], "10.0.0.7:9818")
	}
	for name, target := range targets {
		expect(t, name+": instance", target["instance"], "node-7")
		expect(t, name+": job", target["job"], "csi-proxy")
	}
	var expressions []string
	for _, rule := range alerts(t).Groups[0].Rules {
		expressions = append(expressions, rule.Expr)
	}
	dashboard := strings.ReplaceAll(read(t, "deploy/monitoring/dashboard.json"), `\"`, `"`)
	for _, match := range regexp.MustCompile(`"(?:expr|query)": "(.*)"`).FindAllStringSubmatch(dashboard, -1) {
		expressions = append(expressions, match[1])
	}
	metric := regexp.MustCompile(`\b(?:up|(?:csi_proxy|grpc_server|process)_[a-z_]+)\b(\{job="csi-proxy"[,}])?`)
	count := 0
	for _, expression := range expressions {
		for _, match := range metric.FindAllStringSubmatch(expression, -1) {
			count++
			if match[1] == "" {
				t.Errorf("does not select the job: %s", expression)
			}
		}
	}
	if count < 40 {
		t.Errorf("only %d metrics in %d expressions", count, len(expressions))
	}
}

// The dashboard begins with the fleet, and draws no line for each node of a large one.
func TestTheDashboardShowsTheFleetAndOneNode(t *testing.T) {
	var dashboard struct {
		Templating struct {
			List []struct {
				Name       string
				IncludeAll bool
				Multi      bool
			}
		}
		Panels []struct {
			Type, Title string
			Targets     []struct {
				Expr    string
				Instant bool
			}
		}
	}
	if err := json.Unmarshal([]byte(read(t, "deploy/monitoring/dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, variable := range dashboard.Templating.List {
		if variable.IncludeAll || variable.Multi {
			t.Errorf("the variable %s selects several nodes", variable.Name)
		}
	}
	byNode := regexp.MustCompile(`^topk\(10, (sum|max) by \(instance(, pool)?\) `)
	ofFleet := regexp.MustCompile(`^(count|sum|sum by \([a-z_, ]*\)|count by \([a-z_, ]*\)|histogram_quantile)( ?\()`)
	rows := []string{}
	for _, panel := range dashboard.Panels {
		if panel.Type == "row" {
			rows = append(rows, panel.Title)
		}
		for _, target := range panel.Targets {
			switch {
			case len(rows) == 2:
				if strings.Contains(target.Expr, "=~\"$instance") || !strings.Contains(target.Expr, `instance="$instance"`) {
					t.Errorf("%s: does not select the node: %s", panel.Title, target.Expr)
				}
			case byNode.MatchString(target.Expr) && target.Instant:
			case !ofFleet.MatchString(target.Expr) || strings.Contains(target.Expr, "instance"):
				t.Errorf("%s: a line for each node: %s", panel.Title, target.Expr)
			}
		}
	}
	expect(t, "rows", rows, []string{"Fleet", "One node: $instance"})
}
