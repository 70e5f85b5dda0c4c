package deploy

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
)

// memoryLimit returns the beginning of a command that runs a program with so much memory: in a control group, or with a limit
// on its data where no group can be made.
func memoryLimit(t *testing.T, bytes int64) []string {
	t.Helper()
	limit := strconv.FormatInt(bytes, 10)
	for _, version := range []struct{ folder, limit, processes string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "cgroup.procs"},
		{"/sys/fs/cgroup", "memory.max", "cgroup.procs"},
	} {
		group := filepath.Join(version.folder, fmt.Sprintf("csi-proxy-test-%d", os.Getpid()))
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { os.Remove(group) })
		if os.WriteFile(filepath.Join(group, version.limit), []byte(limit), 0) == nil {
			return []string{"sh", "-c", "echo $$ > " + filepath.Join(group, version.processes) + ` && exec "$@"`, "sh"}
		}
	}
	return []string{"prlimit", "--data=" + limit}
}

// The frames of HTTP/2 (RFC 9113) that the client below uses.
const (
	dataFrame, headersFrame, settingsFrame, windowUpdateFrame = 0, 1, 4, 8
	endStream, acknowledged, endHeaders                       = 1, 1, 4
)

func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))[1:]
	frame = append(frame, kind, flags)
	return append(binary.BigEndian.AppendUint32(frame, stream), payload...)
}

// PathExists of `C:\var\lib\kubelet`, as a request and as a message of gRPC.
var (
	kubeletPath     = append([]byte{0x0a, 18}, `C:\var\lib\kubelet`...)
	existsMessage   = append([]byte{0, 0, 0, 0, 20}, kubeletPath...)
	existsRPC       = "v1.Filesystem/PathExists"
	existsHeaders   = append([]byte{0x83, 0x86, 0x04, byte(len(existsRPC) + 1), '/'}, existsRPC...)
	filesystemPipe  = "csi-proxy-filesystem-v1"
	streamsAtOnce   = uint32(128)
	firstOfNextCall = 2 * streamsAtOnce
)

// grow opens a connection, makes as many calls at once on it as it may have, twice, and leaves it open without a call.
func (d daemon) grow(connections *[]net.Conn) error {
	client, err := net.DialTimeout("unix", filepath.Join(d.sockets, filesystemPipe+".sock"), 10*time.Second)
	if err != nil {
		return err
	}
	*connections = append(*connections, client)
	client.SetDeadline(time.Now().Add(10 * time.Second))
	// No response may be sent before all requests have arrived.
	begin := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(settingsFrame, 0, 0, []byte{0, 4, 0, 0, 0, 0})...)
	input := bufio.NewReader(client)
	for first := uint32(1); first <= 1+firstOfNextCall; first += firstOfNextCall {
		heads, bodies, windows := begin, []byte(nil), []byte(nil)
		for stream := first; stream < first+firstOfNextCall; stream += 2 {
			heads = append(heads, frame(headersFrame, endHeaders, stream, existsHeaders)...)
			bodies = append(bodies, frame(dataFrame, endStream, stream, existsMessage)...)
			windows = append(windows, frame(windowUpdateFrame, 0, stream, []byte{0, 0, 0, 100})...)
		}
		if _, err := client.Write(append(append(heads, bodies...), windows...)); err != nil {
			return err
		}
		for ended := uint32(0); ended < streamsAtOnce; {
			var head [9]byte
			if _, err := io.ReadFull(input, head[:]); err != nil {
				return err
			}
			length := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
			if _, err := io.CopyN(io.Discard, input, length); err != nil {
				return err
			}
			switch kind, flags := head[3], head[4]; {
			case kind == settingsFrame && flags&acknowledged == 0:
				client.Write(frame(settingsFrame, acknowledged, 0, nil))
			case kind == headersFrame && flags&endStream != 0:
				ended++
			}
		}
		begin = frame(windowUpdateFrame, 0, 0, []byte{0, 0, 0x40, 0})
	}
	return nil
}

// The memory limit of the manifests is the ceiling that the daemon computes from the flags in them, and the page has the number.
func TestTheMemoryLimitIsTheCeilingOfTheDaemon(t *testing.T) {
	for name, objects := range renderings(t) {
		if name != "overlays/example" && name != "the chart" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			container := only[*apps.DaemonSet](t, objects).Spec.Template.Spec.Containers[0]
			limit := container.Resources.Limits.Memory().Value()
			daemon := start(t, arguments(t, container, "")...)
			expect(t, "memory limit", daemon.metric(t, "csi_proxy_memory_ceiling_bytes"), limit)
			row := fmt.Sprintf("| 256, as in the chart and in the manifests for Kustomize | %d MiB |\n", limit>>20)
			if !strings.Contains(read(t, "docs/limits.md"), row) {
				t.Errorf("docs/limits.md has no line %s", row)
			}
		})
	}
	ceiling := start(t, "-metrics-bind-address=127.0.0.1:0").metric(t, "csi_proxy_memory_ceiling_bytes") >> 20
	if row := fmt.Sprintf("| 1024, the default | %d MiB |\n", ceiling); !strings.Contains(read(t, "docs/limits.md"), row) {
		t.Errorf("docs/limits.md has no line %s", row)
	}
}

// A client opens many connections, makes each as large as it can, and keeps all open. The daemon of the chart survives and
// serves other clients. With 1024 connections and a limit of 256 MiB, the daemon was killed after 677 connections.
func TestOneClientCannotEndTheDaemonByItsMemory(t *testing.T) {
	container := only[*apps.DaemonSet](t, mustHelm(t, image)).Spec.Template.Spec.Containers[0]
	limit := memoryLimit(t, container.Resources.Limits.Memory().Value())
	daemon := startIn(t, limit, append(arguments(t, container, ""), "-direct")...)
	var connections []net.Conn
	defer func() {
		for _, connection := range connections {
			connection.Close()
		}
	}()
	for i := range 300 {
		if err := daemon.grow(&connections); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		if i%20 == 0 {
			within, cancel := context.WithTimeout(t.Context(), time.Second)
			status, text, err := daemon.answer(within, filesystemPipe, existsRPC, kubeletPath)
			cancel()
			if err != nil || status != "0" {
				t.Fatalf("another client after %d connections: status %q %s %v", i, status, text, err)
			}
		}
	}
	t.Logf("%v: %d KiB resident", limit, daemon.metric(t, "process_resident_memory_bytes")>>10)
}
