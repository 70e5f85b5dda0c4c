package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// A node on which a partition takes long, so that calls run and wait while the test looks at the page.
const slowNode = `
[[disk]]
size = "10 GiB"
[timing]
create_partition = "1h"
`

// A browser that takes longer hangs.
const browserTimeout = 2 * time.Minute

// browser returns the path of Chromium, or skips the test.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium is installed (Debian's package chromium)")
	return ""
}

// busyDaemon starts a daemon with a call that runs, one that waits for its lock, and one that has failed.
func busyDaemon(t *testing.T) daemon {
	t.Helper()
	node := filepath.Join(t.TempDir(), "node.toml")
	if err := os.WriteFile(node, []byte(slowNode), 0o600); err != nil {
		t.Fatal(err)
	}
	daemon := start(t, "-metrics-bind-address=127.0.0.1:0", "-logtostderr=false", "-drain=0", "-node="+node)
	path := `C:\<script>document.title="run"</script>`
	exists := append([]byte{0x0a, byte(len(path))}, path...)
	if status, _, err := daemon.answer(t.Context(), "csi-proxy-filesystem-v1", "v1.Filesystem/PathExists", exists); err != nil || status == "0" {
		t.Fatalf("status %q, %v", status, err)
	}
	// Disk 1: a partition, and then offline.
	for i, rpc := range []string{"v1.Disk/PartitionDisk", "v1.Disk/SetDiskState"} {
		go daemon.answer(t.Context(), "csi-proxy-disk-v1", rpc, []byte{0x08, 0x01})
		for daemon.calls(t) <= i {
			runtime.Gosched()
		}
	}
	return daemon
}

// calls returns how many calls of disks are in progress.
func (d daemon) calls(t *testing.T) int {
	t.Helper()
	var status struct{ Calls []any }
	if err := json.Unmarshal([]byte(d.get(t, "/statusz?format=json")), &status); err != nil {
		t.Fatal(err)
	}
	return len(status.Calls)
}

// What a person sees of the page.
type shown struct {
	Text string
	// The number of rows of the table below each heading.
	Rows map[string]int
	// The widths of the page and of the window.
	Width, Window int
	Title         string
}

const look = `(() => ({
	Text: document.body.innerText,
	Rows: Object.fromEntries([...document.querySelectorAll("section")].map(
		section => [section.querySelector("h2").innerText, section.querySelectorAll("tbody tr").length])),
	Width: document.documentElement.scrollWidth,
	Window: document.documentElement.clientWidth,
	Title: document.title,
}))()`

// The page is looked at in a window of a phone and in one of a screen. Pictures of both are in target/pictures.
func TestThePageOfTheDaemonInABrowser(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the test calls over Unix sockets")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(browser(t)), chromedp.NoSandbox)
	daemon := busyDaemon(t)
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	defer stop()
	pictures := filepath.Join(root, "target", "pictures")
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int64{400, 1280} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			var guard sync.Mutex
			var complaints []string
			note := func(event any) {
				guard.Lock()
				defer guard.Unlock()
				switch event := event.(type) {
				case *log.EventEntryAdded:
					complaints = append(complaints, fmt.Sprintf("%s: %s %s", event.Entry.Level, event.Entry.Text, event.Entry.URL))
				case *cdpruntime.EventExceptionThrown:
					complaints = append(complaints, event.ExceptionDetails.Text)
				case *cdpruntime.EventConsoleAPICalled:
					complaints = append(complaints, fmt.Sprint("the console was written to: ", event.Type))
				}
			}
			limited, end := context.WithTimeout(allocator, browserTimeout)
			defer end()
			tab, closeTab := chromedp.NewContext(limited, chromedp.WithListener(note))
			defer closeTab()
			url := "http://" + daemon.address + "/"
			err := chromedp.Do(tab, chromedp.EmulateViewport(width, 900), chromedp.Navigate(url))
			if err != nil {
				t.Fatal(err)
			}
			page, err := chromedp.Run(tab, chromedp.Evaluate[shown](look))
			if err != nil {
				t.Fatal(err)
			}
			picture, err := chromedp.Run(tab, chromedp.FullScreenshot(100))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(pictures, fmt.Sprintf("page-%d.png", width)), picture, 0o644); err != nil {
				t.Fatal(err)
			}
			guard.Lock()
			defer guard.Unlock()
			expect(t, "complaints of the browser", len(complaints), 0)
			for _, complaint := range complaints {
				t.Log(complaint)
			}
			expect(t, "title", page.Title, "csi-proxy-sim")
			if page.Width > page.Window {
				t.Errorf("the page is %d wide, the window %d", page.Width, page.Window)
			}
			expect(t, "rows", fmt.Sprint(page.Rows), fmt.Sprint(map[string]int{
				"Running calls": 2, "Locks": 1, "Pools of threads": 7, "Last failures": 1, "RPCs called since the start": 3, "Served": 6,
			}))
			for _, text := range []string{
				"partition disk 1", "/v1.Disk/PartitionDisk", "running", "/v1.Disk/SetDiskState",
				"waiting for lock disk 1", "disk 1", "arrivals", `<script>document.title=`, "/v1.Filesystem/PathExists",
			} {
				if !strings.Contains(page.Text, text) {
					t.Errorf("the page does not show %q:\n%s", text, page.Text)
				}
			}
		})
	}
}
