package main

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/status"
)

// workers is how many clients call at the same time, each over connections of its own.
const workers = 8

// underLoad are calls that ask WMI and change nothing.
var underLoad = []step{
	ofIscsi("ListTargetPortals", `{}`),
	ofSmb("RemoveSmbGlobalMapping", `{"remotePath":"\\\\files.example.com\\not-mapped"}`).fails("NotFound"),
}

// A load counts the calls of all workers.
type load struct {
	mutex    sync.Mutex
	good     int
	failures map[string]int // by code
	late     []string       // failures in the last quarter of the time
}

// run calls for this time. While WMI restarts, calls may fail. In the last quarter of the time, none may: the daemon has
// to connect to WMI again by itself.
func (l *load) run(open map[string]func() (any, error), duration time.Duration) error {
	l.failures = map[string]int{}
	start := time.Now()
	var all sync.WaitGroup
	for range workers {
		all.Add(1)
		go func() {
			defer all.Done()
			s := newSession(open, variables)
			for i := 0; time.Since(start) < duration; i++ {
				began := time.Since(start)
				_, err := s.do(underLoad[i%len(underLoad)])
				l.count(err, began > duration*3/4)
			}
		}()
	}
	all.Wait()
	fmt.Println("calls that succeeded:", l.good)
	for _, code := range slices.Sorted(maps.Keys(l.failures)) {
		fmt.Printf("calls that failed with %s: %d\n", code, l.failures[code])
	}
	if l.good == 0 {
		return fmt.Errorf("no call succeeded")
	}
	if len(l.late) > 0 {
		return fmt.Errorf("%d calls failed in the last quarter of the time, such as: %s", len(l.late), l.late[0])
	}
	return nil
}

func (l *load) count(err error, late bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err == nil {
		l.good++
		return
	}
	l.failures[status.Code(err).String()]++
	if late {
		l.late = append(l.late, err.Error())
	}
}
