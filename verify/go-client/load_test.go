package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestALoadWithoutADaemonFails(t *testing.T) {
	closed := func() (any, error) { return nil, errors.New("no daemon") }
	l := load{}
	err := l.run(map[string]func() (any, error){"iscsi/v1alpha2": closed, "smb/v1": closed}, 10*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "no call succeeded") {
		t.Error(err)
	}
}

func TestAFailureInTheLastQuarterIsReported(t *testing.T) {
	l := load{failures: map[string]int{}}
	l.count(nil, false)
	l.count(errors.New("while WMI restarts"), false)
	if l.good != 1 || len(l.late) != 0 {
		t.Error(l.good, l.late)
	}
	l.count(errors.New("afterwards"), true)
	if len(l.late) != 1 {
		t.Error(l.good, l.late)
	}
}
