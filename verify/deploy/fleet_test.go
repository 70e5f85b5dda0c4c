package deploy

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// What a daemon answers to a scrape.
type scrape struct {
	series, bytes int
	took          time.Duration
}

// scrape reads the metrics.
func (d daemon) scrape(t *testing.T) scrape {
	t.Helper()
	begin := time.Now()
	text := d.get(t, "/metrics")
	found := scrape{bytes: len(text), took: time.Since(begin)}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
			found.series++
		}
	}
	return found
}

// answer calls an RPC with an encoded request, and returns the status and its text. gRPC is HTTP/2, which Go's library speaks
// without TLS too.
func (d daemon) answer(ctx context.Context, pipe, rpc string, message []byte) (status, text string, err error) {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(d.sockets, pipe+".sock"))
	}}
	defer transport.CloseIdleConnections()
	head := make([]byte, 5)
	binary.BigEndian.PutUint32(head[1:], uint32(len(message)))
	body := bytes.NewReader(append(head, message...))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/"+rpc, body)
	if err != nil {
		return "", "", err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return "", "", err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return "", "", err
	}
	// A failure without a message is in the headers.
	from := response.Trailer
	if from.Get("Grpc-Status") == "" {
		from = response.Header
	}
	return from.Get("Grpc-Status"), from.Get("Grpc-Message"), nil
}

// call calls an RPC with an empty request, which must succeed.
func (d daemon) call(t *testing.T, pipe, rpc string) {
	t.Helper()
	if status, text, err := d.answer(t.Context(), pipe, rpc, nil); err != nil || status != "0" {
		t.Fatalf("%s: status %q %s %v", rpc, status, text, err)
	}
}

// each runs `work` for all daemons, a few at a time, and waits for all.
func each(daemons []daemon, work func(i int)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i := range daemons {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			work(i)
		})
	}
	group.Wait()
}

// limit returns a number that deploy/README.md promises: the first before this text, such as "at most 100 series at rest".
func limit(t *testing.T, unit string) int {
	t.Helper()
	match := regexp.MustCompile(`at most ([0-9,]+) ` + regexp.QuoteMeta(unit)).FindStringSubmatch(read(t, "deploy/README.md"))
	if match == nil {
		t.Fatalf("the README has no limit on %s", unit)
	}
	number, err := strconv.Atoi(strings.ReplaceAll(match[1], ",", ""))
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// The figures that deploy/README.md calculates with: how many series a daemon has, and what it logs for a call.
func TestADaemonHasNoMoreSeriesAndLogsNoMoreThanTheReadmeSays(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the test calls over Unix sockets")
	}
	const calls = 50
	lines := map[int]int{}
	for _, level := range []int{0, 2} {
		log := filepath.Join(t.TempDir(), "log")
		daemon := start(t, "-metrics-bind-address=127.0.0.1:0", "-logtostderr=false", "-log_file="+log, fmt.Sprint("-v=", level))
		idle := daemon.scrape(t)
		// The first call names the disks without a LUN in the log, once.
		daemon.call(t, "csi-proxy-disk-v1", "v1.Disk/ListDiskLocations")
		before := read(t, relative(t, log))
		for range calls {
			daemon.call(t, "csi-proxy-disk-v1", "v1.Disk/ListDiskLocations")
		}
		busy := daemon.scrape(t)
		text := strings.TrimPrefix(read(t, relative(t, log)), before)
		lines[level] = strings.Count(text, "\n")
		t.Logf("-v=%d: %d series idle, %d after calls of one RPC, %d bytes a scrape; %d calls: %d lines with %d bytes",
			level, idle.series, busy.series, idle.bytes, calls, lines[level], len(text))
		for _, most := range []struct {
			unit  string
			found int
		}{
			{"series at rest", idle.series},
			{"bytes", idle.bytes},
			{"series from its first call on", busy.series - idle.series},
			{"bytes. A driver", busy.bytes - idle.bytes},
		} {
			if most.found > limit(t, most.unit) {
				t.Errorf("%d, more than at most %d %s", most.found, limit(t, most.unit), most.unit)
			}
		}
		if most := limit(t, "bytes a call") * calls; len(text) > most {
			t.Errorf("%d bytes of log for %d calls, more than %d", len(text), calls, most)
		}
	}
	expect(t, "lines for calls that succeed, at -v=0", lines[0], 0)
	if lines[2] < calls {
		t.Errorf("%d lines for %d calls at -v=2", lines[2], calls)
	}
}

// relative returns a path as `read` takes it.
func relative(t *testing.T, path string) string {
	t.Helper()
	folder, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Rel(folder, path)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A small cluster: all daemons are scraped, and replaced as the DaemonSet does, 2 % at a time. CSI_PROXY_FLEET is the number
// of daemons.
func TestAFleetIsScrapedAndUpdated(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("daemons on one machine need sockets: the names of pipes are fixed")
	}
	size := 8
	if text := os.Getenv("CSI_PROXY_FLEET"); text != "" {
		var err error
		if size, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	fleet := make([]daemon, size)
	for i := range fleet {
		fleet[i] = start(t, "-drain=4", "-metrics-bind-address=127.0.0.1:0", "-logtostderr=false")
	}
	t.Logf("%d daemons started in %v", size, time.Since(begin).Round(time.Millisecond))

	scrapes := make([]scrape, size)
	begin = time.Now()
	each(fleet, func(i int) { scrapes[i] = fleet[i].scrape(t) })
	total := time.Since(begin)
	var series, bytes int
	var times []time.Duration
	for _, scrape := range scrapes {
		series, bytes, times = series+scrape.series, bytes+scrape.bytes, append(times, scrape.took)
	}
	slices.Sort(times)
	t.Logf("scraped in %v: %d series, %d bytes; median %v, slowest %v",
		total.Round(time.Millisecond), series, bytes, times[size/2], times[size-1])

	// A replaced daemon is unavailable from the signal to stop until the new one answers.
	batch := (size*2 + 99) / 100
	var gaps []time.Duration
	var guard sync.Mutex
	begin = time.Now()
	for chunk := range slices.Chunk(fleet, batch) {
		each(chunk, func(i int) {
			stopped := time.Now()
			old := chunk[i]
			if err := old.process.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
				return
			}
			if err := old.process.Wait(); err != nil {
				t.Errorf("a daemon without calls did not stop cleanly: %v", err)
				return
			}
			chunk[i] = start(t, "-drain=4", "-metrics-bind-address=127.0.0.1:0", "-logtostderr=false")
			chunk[i].get(t, "/healthz")
			guard.Lock()
			defer guard.Unlock()
			gaps = append(gaps, time.Since(stopped))
		})
	}
	if len(gaps) != size {
		t.Fatalf("%d of %d daemons were replaced", len(gaps), size)
	}
	slices.Sort(gaps)
	t.Logf("replaced in %v, %d at a time; out of service: median %v, longest %v",
		time.Since(begin).Round(time.Millisecond), batch, gaps[size/2].Round(time.Millisecond), gaps[size-1].Round(time.Millisecond))
	each(fleet, func(i int) { scrapes[i] = fleet[i].scrape(t) })
	for _, scrape := range scrapes {
		expect(t, "series of a daemon after the update", scrape.series, scrapes[0].series)
	}
}
