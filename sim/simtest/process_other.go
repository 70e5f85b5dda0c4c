//go:build !linux

package simtest

import "syscall"

// endsWithThread has no effect on other systems.
func endsWithThread() *syscall.SysProcAttr { return nil }
