//! Merge operators of the program: functions of JavaScript, in a worker thread of their own.
//!
//! The engine calls an operator in its own threads, in those of the pool, and in that of the event
//! loop where a read is made there, with locks held. The event loop may be waiting for one of these
//! locks, or for the end of that thread: a function that runs there would never be called. A worker
//! thread has an event loop of its own, which waits for nothing of the engine.
//!
//! A call is put into a table, a bell is rung in the worker thread, and the caller waits. The
//! worker fetches the question by its number and puts the answer into the table. Where the worker
//! ends, all calls that wait fail, and all later ones: reads of what is merged fail then, and
//! operands stay as they are. Once the engine has released the operator, the bell is rung a last
//! time, and the worker ends.

use crate::failure::Failure;
use crate::values::{Input, bytes};
use esker::{MergeError, MergeOperator};
use napi::bindgen_prelude::{BufferSlice, Function};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status};
use napi_derive::napi;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a call asks for, as JavaScript knows it.
const FULL_MERGE: u32 = 0;
const PARTIAL_MERGE: u32 = 1;
const CHECK_OPERAND: u32 = 2;

/// The number of no call, as JavaScript knows it: there will be none any more.
const NO_CALL: u32 = 0;

/// Calls the function that the worker serves with, in its thread, with the number of a call.
type Bell = ThreadsafeFunction<u32, (), u32, Status, false>;

/// The workers that serve, by the numbers that JavaScript has for them. Of one that has ended there
/// is none.
static SERVING: Mutex<Serving> = Mutex::new(Serving { last: 0, workers: BTreeMap::new() });

struct Serving {
    last: u32,
    workers: BTreeMap<u32, Arc<Worker>>,
}

/// A worker that serves an operator.
struct Worker {
    calls: Mutex<Calls>,
    /// A call was answered, or the worker has ended.
    answered: Condvar,
}

#[derive(Default)]
struct Calls {
    last: u32,
    table: BTreeMap<u32, Call>,
    /// None where the worker has ended.
    bell: Option<Arc<Bell>>,
}

enum Call {
    Asked(Asked),
    /// The worker is at it.
    Fetched,
    Answered(Result<Option<Vec<u8>>, String>),
}

/// The arguments of a call.
struct Asked {
    what: u32,
    key: Vec<u8>,
    existing: Option<Vec<u8>>,
    operands: Vec<Vec<u8>>,
}

impl Worker {
    /// The answer of the worker.
    fn ask(&self, asked: Asked) -> Result<Option<Vec<u8>>, MergeError> {
        let ended = || MergeError("the worker thread of the merge operator has ended".to_owned());
        let (number, bell) = {
            let mut calls = self.calls.lock();
            let bell = Arc::clone(calls.bell.as_ref().ok_or_else(ended)?);
            let number = calls.last.checked_add(1).unwrap_or(NO_CALL + 1);
            calls.last = number;
            calls.table.insert(number, Call::Asked(asked));
            (number, bell)
        };
        let is_rung = bell.call(number, ThreadsafeFunctionCallMode::NonBlocking) == Status::Ok;
        // The end of the worker, which this thread may hold up, frees it there.
        drop(bell);
        let mut calls = self.calls.lock();
        loop {
            match calls.table.remove(&number) {
                Some(Call::Answered(answer)) => return answer.map_err(MergeError),
                Some(other) if is_rung && calls.bell.is_some() => {
                    calls.table.insert(number, other);
                }
                _ => return Err(ended()),
            }
            self.answered.wait(&mut calls);
        }
    }

    /// No call will come: the worker may end.
    fn dismiss(&self) {
        let bell = self.calls.lock().bell.clone();
        if let Some(bell) = bell {
            // Where it cannot be rung, the worker is about to end.
            let _ = bell.call(NO_CALL, ThreadsafeFunctionCallMode::NonBlocking);
        }
    }

    /// All calls that wait fail, and later ones.
    fn end(&self) {
        let mut calls = self.calls.lock();
        let bell = calls.bell.take();
        calls.table.clear();
        drop(calls);
        self.answered.notify_all();
        drop(bell);
    }
}

fn worker(number: u32) -> Result<Arc<Worker>, Failure> {
    let found = SERVING.lock().workers.get(&number).map(Arc::clone);
    found.ok_or_else(|| Failure::invalid("the worker thread of the merge operator has ended"))
}

/// Serves an operator in this thread until that ends.
#[napi]
pub struct OperatorServer {
    number: u32,
    worker: Arc<Worker>,
}

/// The arguments of a call, which the worker answers next.
#[napi(object, object_from_js = false)]
pub struct OperatorCall<'env> {
    /// Which function is called.
    pub what: u32,
    /// The key; empty where an operand is checked.
    pub key: BufferSlice<'env>,
    /// What the key has, if it has a value.
    pub existing: Option<BufferSlice<'env>>,
    /// Operands, oldest first.
    pub operands: Vec<BufferSlice<'env>>,
}

#[napi]
impl OperatorServer {
    /// From now on `ring` is called with the number of each call.
    #[napi(constructor)]
    pub fn new(env: &Env, ring: Function<'_, u32, ()>) -> napi::Result<OperatorServer> {
        let bell = ring.build_threadsafe_function::<u32>().build_callback(|context| Ok(context.value))?;
        let calls = Calls { bell: Some(Arc::new(bell)), ..Calls::default() };
        let worker = Arc::new(Worker { calls: Mutex::new(calls), answered: Condvar::new() });
        let number = {
            let mut serving = SERVING.lock();
            serving.last = serving.last.wrapping_add(1);
            let number = serving.last;
            serving.workers.insert(number, Arc::clone(&worker));
            number
        };
        env.add_env_cleanup_hook(number, |number| {
            let ended = SERVING.lock().workers.remove(&number);
            ended.iter().for_each(|worker| worker.end());
        })?;
        Ok(OperatorServer { number, worker })
    }

    /// The number of this worker, for `ServedOperator`.
    #[napi(getter)]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The call of that number, if somebody waits for it.
    #[napi]
    pub fn call<'env>(&self, env: &'env Env, number: u32) -> napi::Result<Option<OperatorCall<'env>>> {
        let fetched = {
            let mut calls = self.worker.calls.lock();
            let Some(waiting) = calls.table.get_mut(&number) else { return Ok(None) };
            std::mem::replace(waiting, Call::Fetched)
        };
        let Call::Asked(Asked { what, key, existing, operands }) = fetched else { return Ok(None) };
        let copy = |bytes: Vec<u8>| BufferSlice::copy_from(env, bytes);
        Ok(Some(OperatorCall {
            what,
            key: copy(key)?,
            existing: existing.map(copy).transpose()?,
            operands: operands.into_iter().map(copy).collect::<napi::Result<_>>()?,
        }))
    }

    /// Answers a call: with an error, a value, or none.
    #[napi]
    pub fn answer(&self, number: u32, error: Option<String>, value: Option<Input<'_>>) {
        let answer = error.map_or_else(|| Ok(value.map(bytes)), Err);
        let mut calls = self.worker.calls.lock();
        if let Some(waiting) = calls.table.get_mut(&number) {
            *waiting = Call::Answered(answer);
            drop(calls);
            self.worker.answered.notify_all();
        }
    }
}

/// A merge operator of the program.
#[napi(object)]
pub struct ServedOperator {
    /// The number of its worker.
    pub serving: u32,
    /// What is stored with the keyspace.
    pub name: String,
    /// Whether it makes one operand of two.
    pub has_partial_merge: bool,
    /// Whether it checks operands.
    pub has_check_operand: bool,
}

impl ServedOperator {
    /// The operator for the engine, whose worker ends when that releases it.
    ///
    /// # Errors
    /// If its worker has ended.
    pub fn operator(&self) -> Result<Arc<dyn MergeOperator>, Failure> {
        let (has_partial_merge, has_check_operand) = (self.has_partial_merge, self.has_check_operand);
        let (name, worker) = (self.name.clone(), worker(self.serving)?);
        Ok(Arc::new(Served { name, worker, has_partial_merge, has_check_operand }))
    }
}

struct Served {
    name: String,
    worker: Arc<Worker>,
    has_partial_merge: bool,
    has_check_operand: bool,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.worker.dismiss();
    }
}

impl MergeOperator for Served {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, MergeError> {
        let operands = operands.iter().map(|operand| operand.to_vec()).collect();
        let existing = existing.map(<[u8]>::to_vec);
        self.worker.ask(Asked { what: FULL_MERGE, key: key.to_vec(), existing, operands })
    }

    fn partial_merge(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        if !self.has_partial_merge {
            return None;
        }
        let operands = vec![older.to_vec(), newer.to_vec()];
        // Where it throws, it declines: the other function then meets the same operands.
        self.worker.ask(Asked { what: PARTIAL_MERGE, key: key.to_vec(), existing: None, operands }).ok()?
    }

    fn check_operand(&self, operand: &[u8]) -> Result<(), MergeError> {
        if !self.has_check_operand {
            return Ok(());
        }
        let operands = vec![operand.to_vec()];
        self.worker.ask(Asked { what: CHECK_OPERAND, key: Vec::new(), existing: None, operands }).map(drop)
    }
}
