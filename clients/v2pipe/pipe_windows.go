package v2pipe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
)

// dial opens a pipe and checks who owns the pipe. The server cannot impersonate this process.
func dial(ctx context.Context, name, also string) (net.Conn, error) {
	connection, err := winio.DialPipeContext(ctx, `\\.\pipe\`+name)
	if err != nil {
		return nil, err
	}
	if err := checkOwner(connection, also); err != nil {
		connection.Close()
		return nil, err
	}
	return connection, nil
}

// checkOwner refuses a pipe that neither LocalSystem nor Administrators own. Only they, or a process with the privilege to
// restore files, can make such a pipe. `also` is another owner that is accepted, if it is not empty.
func checkOwner(connection net.Conn, also string) error {
	pipe, ok := connection.(interface{ Fd() uintptr })
	if !ok {
		return fmt.Errorf("a pipe without a handle: %T", connection)
	}
	descriptor, err := windows.GetSecurityInfo(windows.Handle(pipe.Fd()), windows.SE_KERNEL_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("cannot read the owner of the pipe: %w", err)
	}
	owner, _, err := descriptor.Owner()
	if err != nil {
		return fmt.Errorf("cannot read the owner of the pipe: %w", err)
	}
	if owner.String() != also && !owner.IsWellKnown(windows.WinLocalSystemSid) && !owner.IsWellKnown(windows.WinBuiltinAdministratorsSid) {
		return fmt.Errorf("the owner of the pipe is %s, and not LocalSystem or Administrators: the pipe may belong to any user's program", owner)
	}
	return nil
}

// isMissing returns whether no process serves the pipe.
func isMissing(err error) bool {
	return errors.Is(err, os.ErrNotExist)
}
