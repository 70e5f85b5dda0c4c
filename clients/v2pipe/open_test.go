package v2pipe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"
	wire "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	disk "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"golang.org/x/sys/windows"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// server is a daemon with one disk.
type server struct {
	wire.UnimplementedDiskServer
	calls atomic.Int32
}

func (s *server) GetDiskStats(ctx context.Context, request *wire.GetDiskStatsRequest) (*wire.GetDiskStatsResponse, error) {
	s.calls.Add(1)
	switch request.GetDiskNumber() {
	case 1:
		return &wire.GetDiskStatsResponse{TotalBytes: 1 << 30}, nil
	case 2: // A disk that hangs.
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, status.Error(codes.NotFound, "disk 3 does not exist")
}

// serve serves a pipe with an owner, in the letters of SDDL, until the test ends or the returned function is called.
func serve(t *testing.T, name, owner string) (*server, func()) {
	t.Helper()
	listener, err := winio.ListenPipe(`\\.\pipe\`+name, &winio.PipeConfig{SecurityDescriptor: "O:" + owner + "D:(A;;GA;;;WD)"})
	if err != nil {
		t.Fatal(err)
	}
	daemon, disks := grpc.NewServer(), &server{}
	wire.RegisterDiskServer(daemon, disks)
	go daemon.Serve(listener)
	t.Cleanup(daemon.Stop)
	return disks, daemon.Stop
}

// ordinaryUser returns the security identifier of this user, who is not LocalSystem.
func ordinaryUser(t *testing.T) string {
	t.Helper()
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		t.Fatal(err)
	}
	if user.User.Sid.IsWellKnown(windows.WinLocalSystemSid) {
		t.Skip("this test needs a user other than LocalSystem")
	}
	return user.User.Sid.String()
}

var tests atomic.Int32

// prefix returns a beginning of names that no other test has.
func prefix() string {
	return fmt.Sprintf("v2pipe-test-%d-%d-", os.Getpid(), tests.Add(1))
}

// noLibrary stands for the library, which must not be used.
func noLibrary(t *testing.T) func() (*Node, error) {
	return func() (*Node, error) {
		t.Error("the library is used although a pipe exists")
		return nil, errors.New("the library")
	}
}

func TestTheLibraryNeedsANodeWithoutPipes(t *testing.T) {
	prefix := prefix()
	if _, err := open(t.Context(), prefix, ""); !errors.Is(err, ErrNoPipe) {
		t.Fatal(err)
	}
	library := &Node{}
	if got, err := openOr(t.Context(), prefix, func() (*Node, error) { return library, nil }); got != library || err != nil {
		t.Fatal(got, err)
	}
	serve(t, prefix+"disk-v1beta3", "BA")
	_, err := openOr(t.Context(), prefix, noLibrary(t))
	if err == nil || !strings.Contains(err.Error(), "disk-v1beta3") {
		t.Fatal(err)
	}
}

func TestAPipeOfAnotherOwnerIsRefused(t *testing.T) {
	prefix, user := prefix(), ordinaryUser(t)
	disks, _ := serve(t, prefix+"disk-v1", user)
	for _, opened := range []func() (*Node, error){
		func() (*Node, error) { return open(t.Context(), prefix, "") },
		func() (*Node, error) { return openOr(t.Context(), prefix, noLibrary(t)) },
	} {
		if _, err := opened(); err == nil || !strings.Contains(err.Error(), user) || errors.Is(err, ErrNoPipe) {
			t.Fatal(err)
		}
	}
	if disks.calls.Load() != 0 {
		t.Error("a call has reached the pipe")
	}
}

func TestEachConnectionIsChecked(t *testing.T) {
	prefix, user := prefix(), ordinaryUser(t)
	_, stop := serve(t, prefix+"disk-v1", "BA")
	node, err := openOr(t.Context(), prefix, noLibrary(t))
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	stats, err := node.Disk.GetDiskStats(t.Context(), &disk.GetDiskStatsRequest{DiskNumber: 1})
	if err != nil || stats.TotalBytes != 1<<30 {
		t.Fatal(stats, err)
	}
	// The daemon ends, and a user's program takes the name of the pipe.
	stop()
	disks, _ := serve(t, prefix+"disk-v1", user)
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(10 * time.Millisecond) {
		_, err := node.Disk.GetDiskStats(t.Context(), &disk.GetDiskStatsRequest{DiskNumber: 1})
		if err == nil || disks.calls.Load() != 0 {
			t.Fatal("the call has reached a program of the user")
		}
		if strings.Contains(err.Error(), user) {
			return
		}
	}
	t.Error("no error names the owner of the pipe")
}

func TestCallsOverAPipe(t *testing.T) {
	prefix := prefix()
	serve(t, prefix+"disk-v1", "SY")
	node, err := open(t.Context(), prefix, "")
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()

	_, err = node.Disk.GetDiskStats(t.Context(), &disk.GetDiskStatsRequest{DiskNumber: 3})
	if status.Code(err) != codes.NotFound || status.Convert(err).Message() != "disk 3 does not exist" {
		t.Error(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := node.Disk.GetDiskStats(ctx, &disk.GetDiskStatsRequest{DiskNumber: 2})
		ended <- err
	}()
	cancel()
	if err := <-ended; status.Code(err) != codes.Canceled {
		t.Error(err)
	}

	// The daemon serves no other group.
	_, err = node.System.GetBIOSSerialNumber(t.Context(), nil)
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "system-v1alpha1") {
		t.Error(err)
	}
}

func TestAConnectionWithoutAHandleIsRefused(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	if err := checkOwner(ours, ""); err == nil {
		t.Error("a connection of an unknown kind is accepted")
	}
}
