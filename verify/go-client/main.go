// Calls a running csi-proxy as deployed CSI drivers do, through the published Go client: first every RPC of every
// group-version, then each driver's own sequence of calls.
//
// On Windows it dials the named pipes. Elsewhere -dir names the folder of the daemon's sockets.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"google.golang.org/grpc"
)

// A tally counts steps. Only on a real node are there any to skip.
type tally struct{ passed, failed, skipped int }

func main() {
	folder := flag.String("dir", "", "folder of the daemon's Unix sockets (not on Windows)")
	wait := flag.Duration("wait", 10*time.Second, "how long to wait for the daemon to come up")
	disk := flag.Int("disk", -1, "only test this disk, a real and raw one, which loses its data")
	windowsNode := flag.Bool("windows-node", false, "only test what needs no disk, on the node itself and not a simulated one")
	grown := flag.Bool("grown", false, "with -disk: the disk was tested and has grown since")
	flag.Parse()
	if !hasPipes && *folder == "" {
		fmt.Fprintln(os.Stderr, "-dir is missing: there are no named pipes here")
		os.Exit(2)
	}
	fmt.Println("grpc-go", grpc.Version)

	if *disk >= 0 {
		node["disk"] = fmt.Sprint(*disk)
	}
	every := newSession(clients(*folder))
	if err := every.await(*wait); err != nil {
		fmt.Println("FAILED the daemon does not answer:", err)
		(&tally{failed: 1}).end()
	}
	var sum tally
	if *disk >= 0 {
		sum.replay(every, onDisk(*grown))
		sum.end()
	}
	if *windowsNode {
		sum.replay(every, onWindows())
		sum.end()
	}
	for _, s := range everyRPC() {
		sum.run(every, "", s)
	}
	sum.complete(every)
	for _, d := range drivers() {
		sum.replay(newSession(clients(*folder)), d)
	}

	fmt.Printf("%d RPCs called\n", every.answered())
	sum.end()
}

// end prints the counts and ends the program.
func (t *tally) end() {
	fmt.Printf("%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
	if t.failed > 0 {
		os.Exit(1)
	}
	os.Exit(0)
}

// run does one step, prints its outcome and says whether it was as it must be.
func (t *tally) run(s *session, prefix string, step step) bool {
	name := prefix + step.api + " " + step.rpc
	outcome, err := s.do(step)
	if err != nil {
		t.failed++
		fmt.Printf("FAILED %s %s: %v\n", name, s.fill(step.request), err)
		return false
	}
	t.passed++
	fmt.Printf("ok     %s %s: %s\n", name, s.fill(step.request), outcome)
	return true
}

// replay runs a driver's calls. A driver gives up at the first call that goes wrong, and so does this.
func (t *tally) replay(s *session, d driver) {
	for _, phase := range d.phases {
		for _, step := range phase.calls {
			if slices.Contains(lacks, step.ability) {
				t.skipped++
				fmt.Printf("skipped: %s %s: %s %s: this system lacks %s\n", d.name, phase.name, step.api, step.rpc, step.ability)
				continue
			}
			if s.applies(step) && !t.run(s, d.name+" "+phase.name+": ", step) {
				return
			}
		}
	}
}

// complete counts each RPC that the published client has and no step has called.
func (t *tally) complete(s *session) {
	var missing []string
	for api := range s.open {
		client, err := s.client(api)
		if err != nil {
			missing = append(missing, err.Error())
			continue
		}
		for i := 0; i < client.NumMethod(); i++ {
			rpc := client.Type().Method(i).Name
			if _, called := s.called[api+" "+rpc]; rpc != "Close" && !called {
				missing = append(missing, api+" "+rpc+" is in no table")
			}
		}
	}
	sort.Strings(missing)
	t.failed += len(missing)
	if len(missing) > 0 {
		fmt.Println("FAILED " + strings.Join(missing, "\nFAILED "))
	}
}
