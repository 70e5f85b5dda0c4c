// Package alerts tests the alert rules in deploy/monitoring with Prometheus' own parser and query engine, as
// `promtool check rules` and `promtool test rules` do.
package alerts

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
)

const (
	alertsFile   = "../../deploy/monitoring/alerts.yaml"
	runbooksFile = "../../docs/monitoring.md"
	// The interval of scrapes and of evaluations.
	step = time.Minute
	// How long Prometheus goes on using the last sample of a series.
	lookback = 5 * time.Minute
)

var promParser = parser.NewParser(parser.Options{})

// rules returns the alert rules, which Prometheus must accept.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(alertsFile, false, model.UTF8Validation, promParser, slog.Default())
	for _, err := range errs {
		t.Error(err)
	}
	if t.Failed() {
		t.FailNow()
	}
	var all []rulefmt.Rule
	for _, group := range groups.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// A rule without a severity is routed nowhere, and one without a runbook helps nobody.
func TestTheRulesAreValidAndEachHasASeverityAndARunbook(t *testing.T) {
	runbooks, err := os.ReadFile(runbooksFile)
	if err != nil {
		t.Fatal(err)
	}
	all := rules(t)
	if len(all) < 5 {
		t.Fatalf("%d rules", len(all))
	}
	for _, rule := range all {
		if !slices.Contains([]string{"critical", "warning", "info"}, rule.Labels["severity"]) {
			t.Errorf("%s: severity %q", rule.Alert, rule.Labels["severity"])
		}
		if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("%s has no summary or no description", rule.Alert)
		}
		if !strings.Contains(string(runbooks), "| `"+rule.Alert+"` |") {
			t.Errorf("%s is not in docs/monitoring.md", rule.Alert)
		}
		if !slices.ContainsFunc(situations, func(of situation) bool { return len(of.fires[rule.Alert]) > 0 }) {
			t.Errorf("no situation has %s fire", rule.Alert)
		}
	}
}

// situation is what Prometheus has scraped, and the alerts that it then has.
type situation struct {
	name string
	// In the notation of promtool: a series, and its value at each minute from the first on.
	series []string
	// For each alert, the minutes at which it begins and ends to fire. All others are silent throughout.
	fires map[string][]span
}

// span is the minutes in which an alert fires, with the first and the last.
type span struct{ first, last int }

// samples is the storage of one test: series in memory.
type samples []promql.Series

// load parses series in the notation of promtool.
func load(t *testing.T, texts []string) (samples, time.Duration) {
	t.Helper()
	var all samples
	var end time.Duration
	for _, text := range texts {
		metric, values, err := promParser.ParseSeriesDesc(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		series := promql.Series{Metric: metric}
		for minute, value := range values {
			if !value.Omitted {
				at := time.Duration(minute) * step
				series.Floats = append(series.Floats, promql.FPoint{T: at.Milliseconds(), F: value.Value})
			}
		}
		all = append(all, series)
		end = max(end, time.Duration(len(values)-1)*step)
	}
	return all, end
}

// Querier returns a querier of all samples.
func (s samples) Querier(_, _ int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		var found []storage.Series
		for _, series := range s {
			matches := func(matcher *labels.Matcher) bool { return matcher.Matches(series.Metric.Get(matcher.Name)) }
			if !slices.ContainsFunc(matchers, func(matcher *labels.Matcher) bool { return !matches(matcher) }) {
				found = append(found, promql.NewStorageSeries(series))
			}
		}
		return &seriesSet{SeriesSet: storage.EmptySeriesSet(), rest: found}
	}}, nil
}

// seriesSet is the result of a query. It has no errors and no warnings, as the empty one that it contains.
type seriesSet struct {
	storage.SeriesSet
	current storage.Series
	rest    []storage.Series
}

// Next moves to the next series.
func (s *seriesSet) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.current, s.rest = s.rest[0], s.rest[1:]
	return true
}

// At returns the current series.
func (s *seriesSet) At() storage.Series { return s.current }

// firing returns the minutes at which the alert fires, evaluated each minute until `end`. As in Prometheus, an alert fires
// when its expression has returned the same labels for the time of its `for`.
func firing(t *testing.T, engine *promql.Engine, rule rulefmt.Rule, data samples, end time.Duration) []int {
	t.Helper()
	since := map[uint64]time.Duration{}
	var minutes []int
	for at := time.Duration(0); at <= end; at += step {
		query, err := engine.NewInstantQuery(context.Background(), data, nil, rule.Expr, time.UnixMilli(at.Milliseconds()))
		if err != nil {
			t.Fatalf("%s: %v", rule.Alert, err)
		}
		result := query.Exec(context.Background())
		vector, err := result.Vector()
		if err != nil {
			t.Fatalf("%s: %v", rule.Alert, err)
		}
		active := map[uint64]time.Duration{}
		fires := false
		for _, sample := range vector {
			labels := sample.Metric.Hash()
			begin, pending := since[labels]
			if !pending {
				begin = at
			}
			active[labels] = begin
			fires = fires || at-begin >= time.Duration(rule.For)
		}
		since = active
		query.Close()
		if fires {
			minutes = append(minutes, int(at/step))
		}
	}
	return minutes
}

func TestEachAlertFiresInTheSituationOfItsRunbookAndInNoOther(t *testing.T) {
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: slog.Default(), MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: lookback,
		EnableNegativeOffset: true, EnableAtModifier: true, Parser: promParser,
	})
	all := rules(t)
	for _, of := range situations {
		t.Run(of.name, func(t *testing.T) {
			data, end := load(t, of.series)
			for alert := range of.fires {
				if !slices.ContainsFunc(all, func(rule rulefmt.Rule) bool { return rule.Alert == alert }) {
					t.Errorf("no rule %s", alert)
				}
			}
			for _, rule := range all {
				var expected []int
				for _, span := range of.fires[rule.Alert] {
					for minute := span.first; minute <= span.last; minute++ {
						expected = append(expected, minute)
					}
				}
				if found := firing(t, engine, rule, data, end); !slices.Equal(found, expected) {
					t.Errorf("%s fires at the minutes %s, not %s", rule.Alert, fmt.Sprint(found), fmt.Sprint(expected))
				}
			}
		})
	}
}
