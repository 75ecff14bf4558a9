//! Where calls run that may wait for the device.

use crate::error::{Error, Result};

/// Where the database is called from.
///
/// Default: `BlockingThreads`. Trade-off: a write that waits for a flush, or for the device, holds
/// up nothing else on the runtime there, at a hand-over of some microseconds; in the runtime's
/// thread the order of all calls follows from that of the tasks alone, which is what a simulation
/// on a simulated disk needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Executor {
    /// The runtime's threads for blocking calls.
    #[default]
    BlockingThreads,
    /// The thread of the task itself.
    InPlace,
}

impl Executor {
    /// Runs `work` to its end.
    pub(crate) async fn run<T: Send + 'static>(self, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        match self {
            Executor::InPlace => work(),
            Executor::BlockingThreads => match tokio::task::spawn_blocking(work).await {
                Ok(result) => result,
                Err(error) if error.is_panic() => Err(Error::Stopped { why: format!("a callback panicked: {error}") }),
                Err(_) => Err(Error::Interrupted),
            },
        }
    }

    /// Begins `work`, behind the tasks that are ready now.
    pub(crate) fn start(self, work: impl FnOnce() + Send + 'static) {
        match self {
            Executor::InPlace => drop(tokio::spawn(async {
                tokio::task::yield_now().await;
                work();
            })),
            Executor::BlockingThreads => drop(tokio::task::spawn_blocking(work)),
        }
    }
}
