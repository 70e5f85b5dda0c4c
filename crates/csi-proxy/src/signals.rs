//! The signals that tell a program to stop: Ctrl-C, SIGTERM, or an event of the Windows console.

/// All signals to stop that this system has.
pub struct StopSignals(imp::Signals);

impl StopSignals {
    /// Listens to the signals from now on. Must be called within a tokio runtime.
    pub fn listen() -> std::io::Result<Self> {
        imp::Signals::listen().map(Self)
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) {
        self.0.next().await;
    }
}

#[cfg(unix)]
mod imp {
    use tokio::signal::unix::{Signal, SignalKind, signal};

    pub(super) struct Signals {
        interrupt: Signal,
        terminate: Signal,
    }

    impl Signals {
        pub(super) fn listen() -> std::io::Result<Self> {
            Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
        }

        pub(super) async fn next(&mut self) {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
            }
        }
    }
}

#[cfg(windows)]
mod imp {
    use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlClose, CtrlShutdown};
    use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown};

    /// The events of a console. Windows ends the process as soon as the handler of a close or shutdown event returns,
    /// so tokio's handler does not return, and Windows waits for the process to end. A container that stops sends a
    /// shutdown event.
    pub(super) struct Signals {
        ctrl_c: CtrlC,
        ctrl_break: CtrlBreak,
        close: CtrlClose,
        shutdown: CtrlShutdown,
    }

    impl Signals {
        pub(super) fn listen() -> std::io::Result<Self> {
            Ok(Self { ctrl_c: ctrl_c()?, ctrl_break: ctrl_break()?, close: ctrl_close()?, shutdown: ctrl_shutdown()? })
        }

        pub(super) async fn next(&mut self) {
            tokio::select! {
                _ = self.ctrl_c.recv() => {}
                _ = self.ctrl_break.recv() => {}
                _ = self.close.recv() => {}
                _ = self.shutdown.recv() => {}
            }
        }
    }
}
