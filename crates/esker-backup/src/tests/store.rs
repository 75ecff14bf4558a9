//! A store in memory whose calls go wrong as planned.

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

use crate::Cancel;

/// What a call panics with by [`Plan::EndAt`].
pub const END: &str = "the end of the process, as planned";

/// What goes wrong. Calls are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing.
    Fine,
    /// This call does nothing and fails.
    FailAt(u64),
    /// This call and all after it do nothing and fail: the process is gone, or the network.
    FailFrom(u64),
    /// So many calls from this one on do nothing and fail.
    FailTimes(u64, u64),
    /// This call and all after it do nothing and fail for good: there is no permission.
    DenyFrom(u64),
    /// This call does what it is to, and fails.
    AnswerLostAt(u64),
    /// The same, and all calls after it do nothing and fail.
    AnswerLostFrom(u64),
    /// So many calls from this one on do what they are to, and fail.
    AnswerLostTimes(u64, u64),
    /// The process ends in this call, which does nothing: it panics with [`END`], so that nothing
    /// is tidied up behind it.
    EndAt(u64),
    /// This call and all after it do nothing and never return; the first sets the flag that
    /// cancels.
    HangFrom(u64),
    /// Objects are put whether one is there or not.
    Overwrite,
    /// A client that does not put an object only if there is none.
    Unconditional,
}

/// Called after each call that has changed something.
type Look = Box<dyn Fn(&InMemory) + Send + Sync>;

struct Shared {
    inner: Arc<InMemory>,
    calls: AtomicU64,
    /// When each of them began.
    times: Mutex<Vec<Instant>>,
    plan: Mutex<Plan>,
    cancel: Cancel,
    /// Where calls let others come first; 0 if they do not.
    random: AtomicU64,
    look: Option<Look>,
}

/// See the file's comment.
#[derive(Clone)]
pub struct Planned(Arc<Shared>);

impl Planned {
    /// A store with these objects.
    pub fn new(inner: Arc<InMemory>, plan: Plan, cancel: &Cancel) -> Planned {
        let (calls, plan, random) = (AtomicU64::new(0), Mutex::new(plan), AtomicU64::new(0));
        let (times, cancel) = (Mutex::default(), cancel.clone());
        Planned(Arc::new(Shared { inner, calls, times, plan, cancel, random, look: None }))
    }

    /// One whose calls take different times, and whose listings are of no one moment.
    pub fn shuffled(inner: Arc<InMemory>, plan: Plan, seed: u64, look: Look) -> Planned {
        let (calls, plan, random) = (AtomicU64::new(0), Mutex::new(plan), AtomicU64::new(seed | 1));
        let (times, cancel) = (Mutex::default(), Cancel::default());
        Planned(Arc::new(Shared { inner, calls, times, plan, cancel, random, look: Some(look) }))
    }

    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        self.0.calls.load(Relaxed)
    }

    /// When each call began, by the clock of the runtime.
    pub fn times(&self) -> Vec<Instant> {
        self.0.times.lock().unwrap().clone()
    }
}

impl Shared {
    /// A number below `limit`.
    fn below(&self, limit: u64) -> u64 {
        let mut state = self.random.load(Relaxed);
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.random.store(state, Relaxed);
        state % limit
    }

    async fn pause(&self) {
        if self.random.load(Relaxed) == 0 {
            return;
        }
        // Now and then one stands still while others do much.
        let yields = if self.below(40) == 0 { self.below(400) } else { self.below(6) };
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
    }

    /// Whether this call does its work; and whether its answer comes.
    async fn begin(&self) -> Result<bool> {
        self.pause().await;
        let call = self.calls.fetch_add(1, Relaxed);
        self.times.lock().unwrap().push(Instant::now());
        let plan = *self.plan.lock().unwrap();
        match plan {
            Plan::FailAt(at) if call == at => Err(failure()),
            Plan::FailFrom(at) if call >= at => Err(failure()),
            Plan::FailTimes(at, times) if (at..at + times).contains(&call) => Err(failure()),
            Plan::DenyFrom(at) if call >= at => Err(denial()),
            Plan::AnswerLostAt(at) | Plan::AnswerLostFrom(at) if call == at => Ok(false),
            Plan::AnswerLostFrom(at) if call > at => Err(failure()),
            Plan::AnswerLostTimes(at, times) if (at..at + times).contains(&call) => Ok(false),
            Plan::EndAt(at) if call == at => std::panic::panic_any(END),
            Plan::HangFrom(at) if call >= at => {
                self.cancel.cancel();
                std::future::pending().await
            }
            _ => Ok(true),
        }
    }

    async fn end<T>(&self, is_answered: bool, outcome: Result<T>) -> Result<T> {
        if let Some(look) = &self.look {
            look(&self.inner);
        }
        self.pause().await;
        if is_answered { outcome } else { outcome.and_then(|_| Err(failure())) }
    }

    /// What a directory shows that is read while it changes: what was there all the time, and of
    /// the rest some.
    async fn listing(&self, prefix: Option<&Path>) -> Result<Vec<ObjectMeta>> {
        let is_answered = self.begin().await?;
        let before: Vec<ObjectMeta> = self.inner.list(prefix).try_collect().await?;
        if self.random.load(Relaxed) != 0 && self.below(4) == 0 {
            for _ in 0..self.below(200) {
                tokio::task::yield_now().await;
            }
        }
        let after: Vec<ObjectMeta> = self.inner.list(prefix).try_collect().await?;
        let names = |list: &[ObjectMeta]| list.iter().map(|meta| meta.location.clone()).collect::<BTreeSet<Path>>();
        let (first, second) = (names(&before), names(&after));
        let mut listed: Vec<ObjectMeta> = after.into_iter().chain(before).collect();
        listed.sort_by(|one, other| one.location.cmp(&other.location));
        listed.dedup_by(|one, other| one.location == other.location);
        listed.retain(|meta| (first.contains(&meta.location) && second.contains(&meta.location)) || self.below(2) == 0);
        self.end(is_answered, Ok(listed)).await
    }
}

fn failure() -> Error {
    Error::Generic { store: "planned", source: "as planned".into() }
}

fn denial() -> Error {
    Error::PermissionDenied { path: "any".into(), source: "as planned".into() }
}

impl fmt::Debug for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "planned")
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "planned")
    }
}

#[async_trait]
impl ObjectStore for Planned {
    async fn put_opts(&self, location: &Path, payload: PutPayload, mut options: PutOptions) -> Result<PutResult> {
        match *self.0.plan.lock().unwrap() {
            Plan::Overwrite => options.mode = PutMode::Overwrite,
            Plan::Unconditional if options.mode == PutMode::Create => {
                return Err(Error::NotImplemented { operation: "put".into(), implementer: "the test".into() });
            }
            _ => {}
        }
        let is_answered = self.0.begin().await?;
        let outcome = self.0.inner.put_opts(location, payload, options).await;
        self.0.end(is_answered, outcome).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let is_answered = self.0.begin().await?;
        let upload = self.0.inner.put_multipart_opts(location, options).await?;
        let upload: Box<dyn MultipartUpload> = Box::new(PlannedUpload { shared: Arc::clone(&self.0), upload });
        self.0.end(is_answered, Ok(upload)).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let is_answered = self.0.begin().await?;
        let outcome = self.0.inner.get_opts(location, options).await;
        self.0.end(is_answered, outcome).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let shared = Arc::clone(&self.0);
        locations
            .then(move |location| {
                let shared = Arc::clone(&shared);
                async move {
                    let location = location?;
                    let is_answered = shared.begin().await?;
                    let deleted = shared.inner.delete_stream(stream::iter([Ok(location)]).boxed());
                    let outcome = deleted.try_collect::<Vec<Path>>().await;
                    shared.end(is_answered, outcome.map(|mut paths| paths.remove(0))).await
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (shared, prefix) = (Arc::clone(&self.0), prefix.cloned());
        let listing = async move { shared.listing(prefix.as_ref()).await };
        let listed = listing.map(|listed| match listed {
            Ok(listed) => stream::iter(listed.into_iter().map(Ok).collect::<Vec<_>>()),
            Err(error) => stream::iter(vec![Err(error)]),
        });
        listed.flatten_stream().boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        Err(failure())
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(failure())
    }
}

struct PlannedUpload {
    shared: Arc<Shared>,
    upload: Box<dyn MultipartUpload>,
}

impl fmt::Debug for PlannedUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "planned upload")
    }
}

#[async_trait]
impl MultipartUpload for PlannedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (shared, part) = (Arc::clone(&self.shared), self.upload.put_part(data));
        async move {
            let is_answered = shared.begin().await?;
            let outcome = part.await;
            shared.end(is_answered, outcome).await
        }
        .boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let is_answered = self.shared.begin().await?;
        let outcome = self.upload.complete().await;
        self.shared.end(is_answered, outcome).await
    }

    async fn abort(&mut self) -> Result<()> {
        let is_answered = self.shared.begin().await?;
        let outcome = self.upload.abort().await;
        self.shared.end(is_answered, outcome).await
    }
}
