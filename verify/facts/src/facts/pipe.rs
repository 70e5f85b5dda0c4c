//! Pipes, accounts and containers: `PIPE` and `HPC`.
//!
//! The daemon serves pipes through tokio and os-win32, and `os` has no primitive for them.

use crate::fact::Fact;

/// The reason for facts about containers.
const CONTAINER: &str =
    "not reachable by any operation: it concerns the process of the daemon in a HostProcess container";

pub(crate) const FACTS: &[Fact] = &[
    Fact::unchecked(
        "PIPE-01",
        "A pipe without a security descriptor gives all rights to LocalSystem, administrators and its owner, and reading to \
         everyone and the anonymous user.",
        "W32 named-pipe-security-and-access-rights",
        "not reachable by any operation: os-win32 gives each pipe a descriptor of its own, whose text the tests in \
         crates/os-win32/src/pipe/security.rs check",
    ),
    Fact::unchecked(
        "PIPE-02",
        "FILE_GENERIC_WRITE contains FILE_APPEND_DATA, which on a pipe is FILE_CREATE_PIPE_INSTANCE.",
        "W32 named-pipe-security-and-access-rights",
        "not reachable by any operation: the descriptor of os-win32 admits only who may create instances too",
    ),
    Fact::unchecked(
        "PIPE-03",
        "A further instance of a pipe needs FILE_CREATE_PIPE_INSTANCE by the list of the first one.",
        "W32 named-pipe-security-and-access-rights",
        "not reachable by any operation: the test contract_03_another_instance_is_always_ready in \
         crates/os-win32/tests/win32/pipes.rs creates further instances",
    ),
    Fact::unchecked(
        "PIPE-04",
        "A client that asks for GENERIC_READ and GENERIC_WRITE is refused with ACCESS_DENIED (5) if the list grants only \
         0x1200FF, which lacks FILE_WRITE_ATTRIBUTES.",
        "WIO TestDialAccessDeniedWithRestrictedSD",
        "not reachable by any operation: the descriptor of os-win32 grants generic rights, and the clients of the tests in \
         crates/os-win32/tests/win32/pipes.rs open with both",
    ),
    Fact::unchecked(
        "PIPE-05",
        "Opening a pipe fails with FILE_NOT_FOUND (2) at once if no pipe has the name, and with PIPE_BUSY (231) while all \
         its instances are connected.",
        "WIO TestDialUnknownFailsImmediately; W32 named-pipe-client",
        "not reachable by any operation: the tests a_pipe_that_no_process_serves_is_not_found and \
         a_client_waits_while_the_only_instance_is_connected in crates/os-win32/tests/win32/pipes.rs meet both",
    ),
    Fact::unchecked(
        "PIPE-06",
        "go-winio creates the first instance with FILE_CREATE and the others with FILE_OPEN, and all with \
         FILE_PIPE_REJECT_REMOTE_CLIENTS.",
        "WIO pipe.go",
        "not reachable by any operation: the test contract_04_a_name_in_use_is_refused_and_its_owner_is_returned in \
         crates/os-win32/tests/win32/pipes.rs checks that a second first instance is refused",
    ),
    Fact::unchecked(
        "PIPE-07",
        "The direction that a client opens a pipe for must be one that the server allows.",
        "W32 named-pipe-client",
        "not reachable by any operation: the pipes of the daemon are open in both directions",
    ),
    Fact::unchecked(
        "PIPE-08",
        "ContainerAdministrator is S-1-5-93-2-1 and ContainerUser is S-1-5-93-2-2.",
        "moby/moby ContainerAdministratorSidString",
        "not reachable by any operation: the descriptor of os-win32 names administrators and LocalSystem only",
    ),
    Fact::unchecked(
        "HPC-01",
        "Stopping a HostProcess container sends CTRL_SHUTDOWN_EVENT to each process, waits 5 s and ends the job.",
        "HS internal/jobcontainers/jobcontainer.go Shutdown",
        "not reachable by any operation: it concerns the process of the daemon in a HostProcess container, for which \
         docs/windows.md recommends a shorter time to drain",
    ),
    Fact::unchecked(
        "HPC-02",
        "Where files are bound into a HostProcess container, its command line begins with cmd /c.",
        "HS internal/jobcontainers/jobcontainer.go CreateProcess",
        CONTAINER,
    ),
    Fact::unchecked(
        "HPC-03",
        "When the first process of a HostProcess container has ended, the others get the same event and 5 s.",
        "HS internal/jobcontainers/jobcontainer.go waitBackground",
        CONTAINER,
    ),
    Fact::unchecked(
        "HPC-04",
        "The job of a HostProcess container dies with its last handle.",
        "HS internal/jobcontainers/jobcontainer.go Create",
        CONTAINER,
    ),
    Fact::unchecked(
        "HPC-05",
        "The signals CtrlC, CtrlBreak, CtrlClose and CtrlLogOff reach a process of a HostProcess container by a thread that is \
         made in it, and not by the console.",
        "HS internal/jobcontainers/process.go signalProcess",
        CONTAINER,
    ),
];
