package main

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Result summarizes the calls of one window.
type Result struct {
	Calls   int     `json:"calls"`
	Seconds float64 `json:"seconds"`
	P50     float64 `json:"p50_us"`
	P99     float64 `json:"p99_us"`
}

// measure lets each caller make one call after the other, with its own function, until the window has ended or any call
// fails. Calls that began within the window are waited for and counted.
func measure(calls []func() error, window time.Duration) (Result, error) {
	// Each caller has its own slice of latencies: with a shared one the callers would wait for each other.
	latencies := make([][]time.Duration, len(calls))
	failures := make([]error, len(calls))
	var failed atomic.Bool
	var group sync.WaitGroup
	begin := time.Now()
	for caller, call := range calls {
		group.Go(func() {
			var own []time.Duration
			for before := time.Now(); before.Sub(begin) < window && !failed.Load(); {
				if failures[caller] = call(); failures[caller] != nil {
					failed.Store(true)
					break
				}
				after := time.Now()
				own = append(own, after.Sub(before))
				before = after
			}
			latencies[caller] = own
		})
	}
	group.Wait()
	elapsed := time.Since(begin)
	for _, err := range failures {
		if err != nil {
			return Result{}, err
		}
	}
	all := slices.Concat(latencies...)
	slices.Sort(all)
	return Result{
		Calls:   len(all),
		Seconds: elapsed.Seconds(),
		P50:     microseconds(percentile(all, 50)),
		P99:     microseconds(percentile(all, 99)),
	}, nil
}

// percentile returns the smallest latency that at least p percent of all do not exceed; 0 without latencies.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

func microseconds(d time.Duration) float64 {
	return float64(d) / float64(time.Microsecond)
}
