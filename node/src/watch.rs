//! Waits for writes to keys that begin with a prefix.

use crate::database_state::OpenDatabase;
use crate::failure::Failure;
use crate::waits::{in_pieces, in_thread};
use crate::work::Answer;
use napi::Env;
use napi::bindgen_prelude::{Object, ToNapiValue, Unknown};
use napi_derive::napi;
use parking_lot::Mutex;
use std::sync::Arc;

/// A watch until it is closed. Waits under way keep it for a moment.
#[napi]
pub struct Watch(Arc<Shared>);

struct Shared {
    database: Arc<OpenDatabase>,
    watch: Mutex<Option<Arc<esker::Watch>>>,
}

impl Shared {
    /// The end of the watch, or of the database, is the reason of a failure, where it is one.
    fn failure(&self, error: esker::Error) -> Failure {
        if self.watch.lock().is_none() { Failure::watch_not_open() } else { self.database.ended(error) }
    }
}

impl Watch {
    /// An open one.
    pub fn new(database: Arc<OpenDatabase>, watch: esker::Watch) -> Watch {
        Watch(Arc::new(Shared { database, watch: Mutex::new(Some(Arc::new(watch))) }))
    }
}

#[napi]
impl Watch {
    /// Whether there was a write since the last wait that said so; waits for one, for at most so
    /// many milliseconds.
    #[napi]
    pub fn wait<'env>(&self, env: &'env Env, milliseconds: Option<f64>) -> napi::Result<Object<'env>> {
        let shared = Arc::clone(&self.0);
        in_thread(env, move || {
            in_pieces(milliseconds, |piece| {
                let watch = shared.watch.lock().as_ref().map(Arc::clone).ok_or_else(Failure::watch_not_open)?;
                watch.wait(piece).map_err(|error| shared.failure(error))
            })
        })
    }

    /// Ends it. A wait under way ends with its piece.
    #[napi]
    pub fn close(&self) {
        let released = self.0.watch.lock().take();
        drop(released);
    }
}

impl Drop for Watch {
    /// Where JavaScript has it no more, a thread that waits must not have it either.
    fn drop(&mut self) {
        self.close();
    }
}

impl Answer for Watch {
    fn into_js<'env>(self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        self.into_unknown(env)
    }
}
