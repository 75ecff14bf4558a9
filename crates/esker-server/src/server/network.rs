//! The threads that serve connections.
//!
//! One thread takes what wakes in the order in which the system reports it, so that requests of
//! different connections are executed in the order in which they have come. The scheduler for many
//! threads cannot be used for that: each of its threads runs what woke last first.

use super::error::ServerError;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;
use tokio::task;

/// Threads with connections, and what else they serve.
#[derive(Debug)]
pub struct Network {
    handle: Handle,
    threads: Threads,
}

#[derive(Debug)]
enum Threads {
    /// One, which ends when the sender is dropped.
    One {
        thread: JoinHandle<Runtime>,
        running: oneshot::Sender<()>,
    },
    Many(Runtime),
}

/// What makes an error of the system one of the server.
pub fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> ServerError {
    let what = what.into();
    move |error| ServerError::System(what, error)
}

/// Threads that take work from each other.
///
/// # Errors
/// [`ServerError::System`] if the system gives none.
pub fn runtime_of(name: &str, workers: usize) -> Result<Runtime, ServerError> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers).enable_all().thread_name(name).build().map_err(system("cannot start threads"))
}

/// Starts a thread.
///
/// # Errors
/// [`ServerError::System`] if the system gives none.
pub fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, ServerError> {
    thread::Builder::new().name(name.into()).spawn(body).map_err(system("cannot start a thread"))
}

impl Network {
    const NAME: &'static str = "esker-network";

    /// One thread, where everything runs in the order in which it woke.
    ///
    /// # Errors
    /// [`ServerError::System`] if the system gives none.
    pub fn in_order() -> Result<Network, ServerError> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(system("cannot start threads"))?;
        let handle = runtime.handle().clone();
        let (running, ends) = oneshot::channel::<()>();
        let thread = spawn(Network::NAME, move || {
            // Nothing is sent: the sender is dropped.
            let _ = runtime.block_on(ends);
            runtime
        })?;
        Ok(Network { handle, threads: Threads::One { thread, running } })
    }

    /// Threads that take work from each other, and may block while others go on.
    ///
    /// # Errors
    /// [`ServerError::System`] if the system gives none.
    pub fn of_threads(count: usize) -> Result<Network, ServerError> {
        let runtime = runtime_of(Network::NAME, count)?;
        Ok(Network { handle: runtime.handle().clone(), threads: Threads::Many(runtime) })
    }

    /// What they are reached by.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Has them run a task.
    pub fn spawn<T: Send + 'static>(&self, body: impl Future<Output = T> + Send + 'static) -> task::JoinHandle<T> {
        self.handle.spawn(body)
    }

    /// Runs something to its end on the thread that calls, which is none of them.
    pub fn block_on<T>(&self, body: impl Future<Output = T>) -> T {
        self.handle.block_on(body)
    }

    /// Ends them, and what they run; what blocks is waited for so long.
    pub fn shut_down(self, patience: Duration) {
        match self.threads {
            Threads::One { thread, running } => {
                drop(running);
                if let Ok(runtime) = thread.join() {
                    runtime.shutdown_timeout(patience);
                }
            }
            Threads::Many(runtime) => runtime.shutdown_timeout(patience),
        }
    }
}
