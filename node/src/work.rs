//! Calls on the threads of libuv's pool, whose results settle promises.

use crate::failure::Failure;
use napi::bindgen_prelude::{AsyncTask, ToNapiValue, Unknown};
use napi::{Env, ScopedTask};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A result of a call that becomes a JavaScript value on the thread of the event loop.
pub trait Answer: Send + 'static {
    /// The value.
    fn into_js<'env>(self, env: &'env Env) -> napi::Result<Unknown<'env>>;
}

/// A call for the pool, which is made once.
pub struct Work<A> {
    call: Option<Box<dyn FnOnce() -> Result<A, Failure> + Send>>,
}

/// A promise for what `call` returns, on a thread of the pool.
pub fn run<A: Answer>(call: impl FnOnce() -> Result<A, Failure> + Send + 'static) -> AsyncTask<Work<A>> {
    AsyncTask::new(Work { call: Some(Box::new(call)) })
}

/// Makes a call, and turns a panic into a failure: none may leave the library.
pub fn guarded<A>(call: impl FnOnce() -> Result<A, Failure>) -> Result<A, Failure> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Failure::panicked(text.unwrap_or("a panic without a text")))
    })
}

impl<'env, A: Answer> ScopedTask<'env> for Work<A> {
    type Output = Result<A, Failure>;
    type JsValue = Unknown<'env>;

    fn compute(&mut self) -> napi::Result<Self::Output> {
        let call = self.call.take();
        Ok(call.map_or_else(|| Err(Failure::panicked("a call was made twice")), guarded))
    }

    fn resolve(&mut self, env: &'env Env, output: Self::Output) -> napi::Result<Unknown<'env>> {
        match output {
            Ok(answer) => answer.into_js(env),
            Err(failure) => Err(failure.into_error(env)),
        }
    }
}

/// Answers that need no format.
macro_rules! plain_answer {
    ($($type:ty),*) => {$(
        impl Answer for $type {
            fn into_js<'env>(self, env: &'env Env) -> napi::Result<Unknown<'env>> {
                self.into_unknown(env)
            }
        }
    )*};
}

plain_answer!((), bool, f64, Vec<bool>, Vec<String>);

impl Answer for Option<f64> {
    fn into_js<'env>(self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        self.map_or_else(|| ().into_unknown(env), |number| number.into_unknown(env))
    }
}
