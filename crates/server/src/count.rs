//! How many of something there are, and the moment when none is left.

use std::sync::Arc;

use tokio::sync::watch;

/// A number that goes up and down by itself.
#[derive(Debug, Default)]
pub(crate) struct Count(watch::Sender<usize>);

/// One of them; dropping it counts down.
#[derive(Debug)]
pub(crate) struct Counted(Arc<Count>);

impl Count {
    pub(crate) fn up(count: &Arc<Self>) -> Counted {
        count.0.send_modify(|number| *number += 1);
        Counted(Arc::clone(count))
    }

    pub(crate) fn now(&self) -> usize {
        *self.0.borrow()
    }

    pub(crate) async fn none(&self) {
        // Fails only when the sender is gone, which is us.
        let _ = self.0.subscribe().wait_for(|number| *number == 0).await;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.send_modify(|number| *number -= 1);
    }
}
