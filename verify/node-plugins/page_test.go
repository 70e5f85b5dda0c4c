//go:build !windows

package nodeplugins

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// notRun has the beginnings of the commands of the page that its test does not run.
var notRun = []string{
	// It chooses the newest versions of today.
	"go get ",
	// The tests of this folder themselves, and the same under Wine, which `cargo xtask test go` runs.
	"(cd examples/node-plugin-go && go build ",
	"(cd examples/node-plugin-go && GOOS=windows ",
}

// built lets the commands of the page run programs that exist: no test downloads or compiles.
const built = `exec 2>&1
cargo() {
	case "$*" in
	"sim "*) "$CSI_PROXY_SIM" "${@:2}" ;;
	"build -q -p csi-proxyctl") ;;
	"run -q -p csi-proxy-client --example stage_volume -- "*) "$CSI_STAGE_VOLUME" "${@:8}" ;;
	*) echo "nothing is built for: cargo $*"; return 1 ;;
	esac
}
go() {
	case "$*" in
	"run $CSI_GRPCURL_MODULE "*) "$CSI_GRPCURL" "${@:3}" ;;
	"run ./firstcall "*) "$CSI_FIRST_CALL" "${@:3}" ;;
	"list -m "*) command go "$@" ;;
	*) echo "nothing is built for: go $*"; return 1 ;;
	esac
}`

// endOfBlock is what the shell prints after each block.
const endOfBlock = "end of the block"

// block is a block of commands, or the contents of a file, with what the commands print.
type block struct{ language, text, shown string }

// blocks returns the blocks of a page. A block of text shows what the commands before it print; that of the section
// about containers is a recipe.
func blocks(page string) []block {
	var found []block
	for at, part := range strings.Split(page, "\n```") {
		language, text, _ := strings.Cut(part, "\n")
		switch {
		case at%2 == 0 || language == "go":
		case language == "text":
			found[len(found)-1].shown += text
		default:
			found = append(found, block{language: language, text: text})
		}
	}
	return found
}

// isAsShown tells whether a text is as the page shows it. Dots stand for any text in a line, and as a line of their own
// for any lines.
func isAsShown(text, shown string) bool {
	text = commit.ReplaceAllString(text, "$1")
	pattern := ""
	for line := range strings.Lines(strings.TrimSpace(shown) + "\n") {
		if line == "...\n" {
			pattern += "(.*\\n)*"
		} else {
			pattern += strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, ".*")
		}
	}
	return regexp.MustCompile("^" + pattern + "$").MatchString(strings.TrimSpace(text) + "\n")
}

// commit is the commit in the version of a program, which the page cannot know.
var commit = regexp.MustCompile(`(csi-proxy \d+\.\d+\.\d+)\+[0-9a-f.]+`)

// background starts commands of a terminal of their own, waits until they print what is shown, and returns what ends
// them.
func background(t *testing.T, commands, shown string) (end func()) {
	t.Helper()
	terminal := exec.Command("bash", "-c", commands)
	terminal.Dir = "../.."
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	terminal.Stdout = writer
	// csi-proxy-sim logs to standard error; a plugin prints nothing else.
	if !strings.HasPrefix(commands, `"$CSI_PROXY_SIM"`) {
		terminal.Stderr = writer
	}
	terminal.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := terminal.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	end = func() {
		syscall.Kill(-terminal.Process.Pid, syscall.SIGINT)
		terminal.Wait()
	}
	// Programs that print less would otherwise never end.
	timer := time.AfterFunc(5*time.Minute, func() { syscall.Kill(-terminal.Process.Pid, syscall.SIGKILL) })
	defer timer.Stop()
	printed := ""
	for lines := bufio.NewScanner(reader); strings.Count(printed, "\n") <= strings.Count(shown, "\n") && lines.Scan(); {
		printed += lines.Text() + "\n"
	}
	if !isAsShown(printed, shown) {
		t.Errorf("%s\nprints\n%s\nand not\n%s", commands, printed, shown)
	}
	go io.Copy(io.Discard, reader)
	return end
}

// The commands of docs/driver-development.md, in their order, print what the page shows.
func TestThePageForDriverAuthors(t *testing.T) {
	programs := plugins(t) // Skips the test if no simulator is named.
	if os.Getenv("CSI_GRPCURL") == "" {
		t.Skip("grpcurl and the first call are not built; `cargo xtask test go` does that")
	}
	page, err := os.ReadFile("../../docs/driver-development.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("../../examples/node-plugin-go/firstcall/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```go\n"+string(program)+"```\n") {
		t.Error("the program on the page is not examples/node-plugin-go/firstcall")
	}
	folder, err := os.MkdirTemp("", "csi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })

	shell := exec.Command("bash")
	shell.Dir = "../.."
	input, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { input.Close(); shell.Wait() })
	fmt.Fprintln(input, built)

	lines := bufio.NewScanner(output)
	unused := slices.Clone(notRun)
	endNode := func() {}
	for _, step := range blocks(strings.ReplaceAll(string(page), "/tmp/", folder+"/")) {
		begins := func(beginning string) bool { return strings.HasPrefix(step.text, beginning) }
		switch {
		case step.language == "toml":
			if err := os.WriteFile(filepath.Join(folder, "node.toml"), []byte(step.text), 0o600); err != nil {
				t.Fatal(err)
			}
		case slices.ContainsFunc(notRun, begins):
			unused = slices.DeleteFunc(unused, begins)
		case begins("cargo sim -"):
			endNode()
			endNode = background(t, `"$CSI_PROXY_SIM" `+strings.TrimPrefix(step.text, "cargo sim "), step.shown)
			defer endNode()
		case begins("(cd examples/node-plugin-go && go run . "):
			defer background(t, strings.Replace(step.text, "go run .", "'"+programs["Go"]+"'", 1), step.shown)()
		default:
			fmt.Fprintf(input, "%s\necho \"$? %s\"\n", step.text, endOfBlock)
			printed, status := "", "no end"
			for lines.Scan() {
				if found, isEnd := strings.CutSuffix(lines.Text(), " "+endOfBlock); isEnd {
					status = found
					break
				}
				printed += lines.Text() + "\n"
			}
			if step.shown == "" && status != "0" || step.shown != "" && !isAsShown(printed, step.shown) {
				t.Errorf("%s\nprints\n%s\nand not\n%s\nthe exit code is %s", step.text, printed, step.shown, status)
			}
		}
	}
	if len(unused) > 0 {
		t.Errorf("the page has no command that begins with any of %q", unused)
	}
}

func TestDotsStandForAnyTextAndNothingElseDoes(t *testing.T) {
	for _, same := range [][2]string{{"a 1 b\nc", "a ... b\nc"}, {"a\nx\ny\nb", "a\n...\nb"}, {"a\nb", "...\na\n...\nb\n..."}} {
		if !isAsShown(same[0], same[1]) {
			t.Errorf("%q is not %q", same[0], same[1])
		}
	}
	for _, other := range [][2]string{{"a 1 b", "a ... c"}, {"x a", "a"}, {"a\nb", "a ... b"}, {"a.b", "a.c"}, {"axb", "a.b"}} {
		if isAsShown(other[0], other[1]) {
			t.Errorf("%q is %q", other[0], other[1])
		}
	}
}
