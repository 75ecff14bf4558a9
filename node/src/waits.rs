//! Waits for writes, each in a thread of its own: one on the threads of the pool would keep them
//! from the writes that are to end it.

use crate::failure::Failure;
use crate::work::guarded;
use napi::Env;
use napi::bindgen_prelude::Object;
use std::time::{Duration, Instant};

/// The end of what is waited for is looked for so often in a wait.
const PIECE: Duration = Duration::from_millis(100);

/// What a thread that waits needs: it calls the engine, which waits there.
const STACK_BYTES: usize = 256 << 10;

/// Makes the answer to a wait, on the thread of the event loop.
type Answering = Box<dyn FnOnce(Env) -> napi::Result<bool> + Send>;

/// A promise for what `wait` returns, in a thread of its own. It keeps the process until then.
pub fn in_thread<'env>(
    env: &'env Env,
    wait: impl FnOnce() -> Result<bool, Failure> + Send + 'static,
) -> napi::Result<Object<'env>> {
    let (deferred, promise) = env.create_deferred::<bool, Answering>()?;
    let answering = |result: Result<bool, Failure>| -> Answering {
        Box::new(move |env| result.map_err(|failure| failure.into_error(&env)))
    };
    // If there is no thread: a promise that is not settled would keep the process for ever.
    let unstarted = deferred.clone();
    let thread = std::thread::Builder::new().name("esker-wait".into()).stack_size(STACK_BYTES);
    if let Err(error) = thread.spawn(move || deferred.resolve(answering(guarded(wait)))) {
        unstarted.resolve(answering(Err(Failure::no_thread(&error))));
    }
    Ok(promise)
}

/// Waits in pieces, for at most so many milliseconds, or for as long as it takes.
pub fn in_pieces(
    milliseconds: Option<f64>,
    mut wait: impl FnMut(Duration) -> Result<bool, Failure>,
) -> Result<bool, Failure> {
    // Too far away to be a time: for as long as it takes.
    let end = milliseconds.and_then(|most| Instant::now().checked_add(Duration::from_millis(most.ceil() as u64)));
    loop {
        let left = end.map_or(PIECE, |end| end.saturating_duration_since(Instant::now()));
        if wait(left.min(PIECE))? {
            return Ok(true);
        }
        if left < PIECE {
            return Ok(false);
        }
    }
}
