//! The same types under loom. All threads of a model run on one thread of the system, in turn.
//!
//! A type that loom lacks is replaced by what its documentation promises, and no more:
//! parking_lot's locks by loom's, and arc-swap's pointers by [`ArcSwapAny`]. So what is tried is
//! the engine above arc-swap, not arc-swap (doc/decisions/0032). References of `Arc` are those of
//! the standard library: when they are counted is tried, since threads take turns in between, the
//! orderings within `Arc` are not.

pub use loom::hint::spin_loop;
pub use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence};
pub use loom::thread::yield_now;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// As parking_lot's, which is never poisoned.
#[derive(Debug, Default)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

/// The lock, held.
pub struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Mutex<T> {
        Mutex(loom::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().expect("loom's are not poisoned")))
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("only empty within a wait")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("only empty within a wait")
    }
}

/// As parking_lot's.
#[derive(Debug)]
pub struct Condvar(loom::sync::Condvar);

impl Condvar {
    pub fn new() -> Condvar {
        Condvar(loom::sync::Condvar::new())
    }

    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.0.take().expect("only empty within a wait");
        guard.0 = Some(self.0.wait(held).expect("loom's are not poisoned"));
    }

    /// Time does not pass: it is signalled, as the models that wait see to.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _most: std::time::Duration) {
        self.wait(guard);
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// As the standard's.
#[derive(Debug)]
pub struct OnceLock<T> {
    value: std::sync::OnceLock<T>,
    is_set: AtomicBool,
    setting: Mutex<()>,
}

impl<T> OnceLock<T> {
    pub fn new() -> OnceLock<T> {
        OnceLock { value: std::sync::OnceLock::new(), is_set: AtomicBool::new(false), setting: Mutex::new(()) }
    }

    pub fn get(&self) -> Option<&T> {
        if self.is_set.load(Ordering::Acquire) { self.value.get() } else { None }
    }

    pub fn get_or_init(&self, first: impl FnOnce() -> T) -> &T {
        let _setting = self.setting.lock();
        let value = self.value.get_or_init(first);
        self.is_set.store(true, Ordering::Release);
        value
    }
}

/// A model of arc-swap's pointers by what their documentation promises, and no more: a load
/// acquires what the store of its value released, and may miss later ones. The pointer keeps its
/// current value alive and no other; a load never returns one that is gone. How arc-swap sees to
/// that is not tried here.
pub struct ArcSwapAny<T: Kept> {
    values: std::sync::Mutex<Vec<Value<T>>>,
    current: AtomicUsize,
    /// Accessed before `current`, without a visible effect. Loom remembers the last access of an
    /// atomic only: a load of one thread would be forgotten when another one loads before it swaps,
    /// as the replacement of a read state does, and no other order of the two be tried.
    order: AtomicUsize,
}

enum Value<T: Kept> {
    Current(T),
    Former(T::Weak),
}

/// What such a pointer points to.
pub trait Kept: Clone {
    type Weak;
    fn downgrade(&self) -> Self::Weak;
    fn upgrade(weak: &Self::Weak) -> Option<Self>;
}

impl<T> Kept for Arc<T> {
    type Weak = Weak<T>;

    fn downgrade(&self) -> Weak<T> {
        Arc::downgrade(self)
    }

    fn upgrade(weak: &Weak<T>) -> Option<Arc<T>> {
        weak.upgrade()
    }
}

impl<T> Kept for Option<Arc<T>> {
    type Weak = Option<Weak<T>>;

    fn downgrade(&self) -> Option<Weak<T>> {
        self.as_ref().map(Arc::downgrade)
    }

    fn upgrade(weak: &Option<Weak<T>>) -> Option<Option<Arc<T>>> {
        match weak {
            Some(weak) => weak.upgrade().map(Some),
            None => Some(None),
        }
    }
}

pub type ArcSwap<T> = ArcSwapAny<Arc<T>>;
pub type ArcSwapOption<T> = ArcSwapAny<Option<Arc<T>>>;

/// What was loaded.
pub struct Guard<T>(T);

impl<T> Guard<T> {
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Guard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Kept> ArcSwapAny<T> {
    pub fn new(value: T) -> ArcSwapAny<T> {
        ArcSwapAny {
            values: std::sync::Mutex::new(vec![Value::Current(value)]),
            current: AtomicUsize::new(0),
            order: AtomicUsize::new(0),
        }
    }

    fn value(&self, at: usize) -> Option<T> {
        match &self.values.lock().expect("nothing panics under it")[at] {
            Value::Current(value) => Some(value.clone()),
            Value::Former(weak) => T::upgrade(weak),
        }
    }

    pub fn load(&self) -> Guard<T> {
        Guard(self.load_full())
    }

    pub fn load_full(&self) -> T {
        self.order.fetch_add(0, Ordering::Relaxed);
        let before = self.value(self.current.load(Ordering::Acquire));
        // If that is gone, it was replaced before this load was announced.
        before.unwrap_or_else(|| self.value(self.current.fetch_add(0, Ordering::AcqRel)).expect("the newest is kept"))
    }

    pub fn swap(&self, value: T) -> T {
        let mut values = self.values.lock().expect("nothing panics under it");
        values.push(Value::Current(value));
        let at = values.len() - 1;
        // Loom may run another thread in the middle of the swap.
        drop(values);
        self.order.fetch_add(0, Ordering::Relaxed);
        let before = self.current.swap(at, Ordering::AcqRel);
        let value = self.value(before).expect("it was the newest");
        self.values.lock().expect("nothing panics under it")[before] = Value::Former(value.downgrade());
        value
    }

    pub fn store(&self, value: T) {
        self.swap(value);
    }
}

impl<T> ArcSwap<T> {
    pub fn from_pointee(value: T) -> ArcSwap<T> {
        ArcSwap::new(Arc::new(value))
    }
}

impl<T> ArcSwapOption<T> {
    pub fn empty() -> ArcSwapOption<T> {
        ArcSwapOption::new(None)
    }
}

impl<T: Default> Default for ArcSwap<T> {
    fn default() -> ArcSwap<T> {
        ArcSwap::from_pointee(T::default())
    }
}

impl<T> Default for ArcSwapOption<T> {
    fn default() -> ArcSwapOption<T> {
        ArcSwapOption::empty()
    }
}

impl<T: Kept> fmt::Debug for ArcSwapAny<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ArcSwapAny")
    }
}

/// Loom's atomics cannot lie in memory with another owner: they are kept beside it, found by its
/// address, while a model runs once.
pub mod raw {
    use super::{AtomicU32, AtomicU64};
    use loom::cell::UnsafeCell;
    use std::cell::RefCell;
    use std::collections::HashMap;

    /// Objects by address, and those of memory that has gone, until the run has ended.
    struct Objects<T: 'static> {
        now: HashMap<usize, &'static T>,
        gone: Vec<&'static T>,
    }

    impl<T> Default for Objects<T> {
        fn default() -> Objects<T> {
            Objects { now: HashMap::new(), gone: Vec::new() }
        }
    }

    type Kept<T> = RefCell<Objects<T>>;

    std::thread_local! {
        static WORDS: Kept<AtomicU64> = RefCell::default();
        static HALVES: Kept<AtomicU32> = RefCell::default();
        static PLAIN: Kept<UnsafeCell<()>> = RefCell::default();
    }

    /// The object of an address, made at the first access. Loom takes that for the writing of its
    /// first value, so that an access that is not ordered behind the first one is an error.
    fn of<T>(kept: &'static std::thread::LocalKey<Kept<T>>, address: usize, first: impl FnOnce() -> T) -> &'static T {
        if let Some(found) = kept.with_borrow(|kept| kept.now.get(&address).copied()) {
            return found;
        }
        let made: &'static T = Box::leak(Box::new(first()));
        kept.with_borrow_mut(|kept| kept.now.insert(address, made));
        made
    }

    /// # Safety
    /// As of the real one.
    pub unsafe fn word<'a>(start: *mut u8) -> &'a AtomicU64 {
        of(&WORDS, start.addr(), || AtomicU64::new(0))
    }

    /// # Safety
    /// As of the real one.
    pub unsafe fn half<'a>(start: *mut u8) -> &'a AtomicU32 {
        of(&HALVES, start.addr(), || AtomicU32::new(0))
    }

    pub fn begin(start: *mut u8, words: usize) {
        for word in 0..words {
            of(&WORDS, start.addr() + word * 8, || AtomicU64::new(0));
        }
    }

    /// Without it a reader would meet the former values of addresses that the allocator has given
    /// out again.
    pub fn end(start: *const u8, bytes: usize) {
        fn let_go<T>(kept: &mut Objects<T>, addresses: std::ops::Range<usize>) {
            let Objects { now, gone } = kept;
            gone.extend(now.extract_if(|address, _| addresses.contains(address)).map(|(_, object)| object));
        }
        let (start, end) = (start.addr(), start.addr() + bytes);
        WORDS.with_borrow_mut(|kept| let_go(kept, start..end));
        HALVES.with_borrow_mut(|kept| let_go(kept, start..end));
        PLAIN.with_borrow_mut(|kept| let_go(kept, start / 8..end.div_ceil(8)));
    }

    /// Bytes are tracked in units of eight.
    fn plain(start: *const u8, bytes: usize) -> impl Iterator<Item = &'static UnsafeCell<()>> {
        (start.addr() / 8..(start.addr() + bytes).div_ceil(8)).map(|at| of(&PLAIN, at, || UnsafeCell::new(())))
    }

    pub fn reads(start: *const u8, bytes: usize) {
        plain(start, bytes).for_each(|cell| cell.with(|_| ()));
    }

    pub fn writes(start: *const u8, bytes: usize) {
        plain(start, bytes).for_each(|cell| cell.with_mut(|_| ()));
    }

    /// Releases all of it, at the end of a run.
    pub fn forget() {
        fn free<T>(kept: &mut Objects<T>) {
            for object in kept.now.drain().map(|(_, object)| object).chain(kept.gone.drain(..)) {
                // SAFETY: made by `of` from a box, and no thread of the model is left that has it.
                drop(unsafe { Box::from_raw(std::ptr::from_ref(object).cast_mut()) });
            }
        }
        WORDS.with_borrow_mut(free);
        HALVES.with_borrow_mut(free);
        PLAIN.with_borrow_mut(free);
    }
}
