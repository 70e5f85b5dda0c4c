package main

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

func TestPercentileIsTheNearestRank(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for at := range hundred {
		hundred[at] = time.Duration(at + 1)
	}
	for _, c := range []struct {
		sorted []time.Duration
		p      int
		want   time.Duration
	}{
		{hundred, 50, 50},
		{hundred, 99, 99},
		{hundred, 100, 100},
		{hundred[:3], 50, 2},
		{hundred[:3], 99, 3},
		{hundred[:1], 50, 1},
		{nil, 99, 0},
	} {
		if got := percentile(c.sorted, c.p); got != c.want {
			t.Errorf("p%d of %d latencies is %d, not %d", c.p, len(c.sorted), got, c.want)
		}
	}
}

func TestEveryCallIsCounted(t *testing.T) {
	var calls atomic.Int64
	call := func() error {
		calls.Add(1)
		time.Sleep(time.Millisecond)
		return nil
	}
	result, err := measure(slices.Repeat([]func() error{call}, 4), 5*time.Millisecond)
	if err != nil || int64(result.Calls) != calls.Load() {
		t.Errorf("%d of %d calls counted, error %v", result.Calls, calls.Load(), err)
	}
	if result.P50 < 1000 || result.P99 < result.P50 {
		t.Errorf("p50 %f and p99 %f us of calls of 1000 us", result.P50, result.P99)
	}
}

func TestAWrongAnswerEndsTheMeasurement(t *testing.T) {
	wrong := errors.New("wrong answer")
	var calls atomic.Int64
	call := func() error {
		if calls.Add(1) == 10 {
			return wrong
		}
		return nil
	}
	_, err := measure([]func() error{call, call}, time.Hour)
	if !errors.Is(err, wrong) {
		t.Errorf("measured to the end, with %v", err)
	}
}
