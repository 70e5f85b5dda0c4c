package simtest

import "syscall"

// endsWithThread makes Linux end a program with the thread that starts it: `go test` runs no clean-up when its time-out has
// passed, or after a panic.
func endsWithThread() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
