// Calls a running csi-proxy as deployed CSI drivers do, through the published Go client: first every RPC of every
// group-version, then the sequence of calls of each driver.
//
// On Windows it dials the named pipes. On other systems -dir is the folder of the daemon's sockets.
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

// allRPCs is the number of RPCs of all group-versions.
const allRPCs = 139

// counts are the numbers of steps by result. Steps are skipped only on a real node.
type counts struct{ passed, failed, skipped int }

func main() {
	folder := flag.String("dir", "", "folder of the daemon's Unix sockets (not on Windows)")
	wait := flag.Duration("wait", 10*time.Second, "how long to wait until the daemon answers")
	windowsNode := flag.Bool("windows-node", false, "only make the calls that need no disk, on a real node")
	share := flag.Bool("share", false, "only map $share and $secondShare of a real server, whose users -set names")
	noShare := flag.Bool("no-share", false, "only undo what -share did")
	target := flag.Bool("target", false, "only use a real iSCSI target at $chapPortal, whose disk loses its data")
	loadTime := flag.Duration("load", 0, "only make calls that ask WMI, for this time, while WMI may restart")
	calls := flag.Bool("calls", false, "make the calls that standard input lists, one a line as JSON, and print the results")
	flag.Func("set", "variable=value of variables.go", setVariable)
	sequences := flag.String("drivers", "../../sim/csi-proxy-sim/drivers", "folder of the drivers' sequences of calls")
	flag.Parse()
	if !hasPipes && *folder == "" {
		fmt.Fprintln(os.Stderr, "-dir is missing: this system has no named pipes")
		os.Exit(2)
	}
	if *calls {
		makeCallLines(newSession(clients(*folder), nil))
	}
	fmt.Println("grpc-go", grpc.Version)

	every := newSession(clients(*folder), variables)
	if err := every.await(*wait); err != nil {
		fmt.Println("FAILED the daemon does not answer:", err)
		(&counts{failed: 1}).end()
	}
	var total counts
	if *windowsNode {
		total.replay(every, onWindows())
		total.end()
	}
	for _, part := range []struct {
		wanted bool
		calls  driver
	}{{*share, onShare()}, {*noShare, offShare()}, {*target, onTarget()}} {
		if part.wanted {
			total.replay(every, part.calls)
			total.end()
		}
	}
	if *loadTime > 0 {
		total.load(*folder, *loadTime)
		total.end()
	}
	for _, s := range everyRPC() {
		total.run(every, "", s)
	}
	total.complete(every)
	drivers, err := readDrivers(*sequences)
	if err != nil {
		fmt.Println("FAILED", err)
		total.failed++
	}
	for _, d := range drivers {
		total.replay(newSession(clients(*folder), d.variables), d)
	}

	for _, d := range []driver{onShare(), offShare(), onTarget()} {
		total.replay(newSession(clients(*folder), d.variables), d)
	}
	total.load(*folder, time.Second)

	if answered := every.answered(); answered != allRPCs {
		total.failed++
		fmt.Printf("FAILED %d RPCs were answered, not %d\n", answered, allRPCs)
	}
	total.end()
}

// setVariable sets a variable from "name=value".
func setVariable(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if _, known := variables[name]; !ok || !known {
		return fmt.Errorf("%q is not <variable>=<value>", text)
	}
	variables[name] = value
	return nil
}

// load counts a time under load as one step.
func (c *counts) load(folder string, duration time.Duration) {
	l := load{}
	if err := l.run(clients(folder), duration); err != nil {
		c.failed++
		fmt.Println("FAILED load:", err)
		return
	}
	c.passed++
}

// end prints the counts and ends the program.
func (c *counts) end() {
	fmt.Printf("%d passed, %d failed, %d skipped\n", c.passed, c.failed, c.skipped)
	if c.failed > 0 {
		os.Exit(1)
	}
	os.Exit(0)
}

// run performs one step, prints its result and returns whether it was the expected one.
func (c *counts) run(s *session, prefix string, step step) bool {
	name := prefix + step.api + " " + step.rpc
	outcome, err := s.do(step)
	if err != nil {
		c.failed++
		fmt.Printf("FAILED %s %s: %v\n", name, s.fill(step.request), err)
		return false
	}
	c.passed++
	fmt.Printf("ok     %s %s: %s\n", name, s.fill(step.request), outcome)
	return true
}

// replay makes the calls of a driver. Like a driver, it gives up at the first call that fails.
func (c *counts) replay(s *session, d driver) {
	for _, phase := range d.phases {
		for _, step := range phase.calls {
			if slices.Contains(lacks, step.feature) {
				c.skipped++
				fmt.Printf("skipped: %s %s: %s %s: this system lacks %s\n", d.name, phase.name, step.api, step.rpc, step.feature)
				continue
			}
			if !c.run(s, d.name+" "+phase.name+": ", step) {
				return
			}
		}
	}
}

// complete counts each RPC of the published client that no step has called as a failure.
func (c *counts) complete(s *session) {
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
	c.failed += len(missing)
	if len(missing) > 0 {
		fmt.Println("FAILED " + strings.Join(missing, "\nFAILED "))
	}
}
