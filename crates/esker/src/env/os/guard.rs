//! Faults under mappings. A page of a mapped file is unavailable if the medium fails, the disk is
//! full or the file was truncated. The system answers a load or a store there with SIGBUS, which
//! ends the process. The handler of this module, installed with the first mapping, maps a page of
//! zeroes instead and marks the mapping as failed. A reader checks that mark before it relies on
//! what it read.
//!
//! The handler is async-signal-safe: it takes no lock and allocates no memory. It searches a fixed
//! table of address ranges, which other threads change meanwhile. An access outside of all ranges
//! goes to the handler that was installed before.
//!
//! Not caught are an access by a thread that blocks SIGBUS, an access after the process replaced
//! the handler by one that does not call it, and a page of zeroes that the system cannot allocate.
//! On systems whose signals this module does not know nothing is guarded, and so nothing is mapped.

use crate::env::note_mapping_fault;
use libc::{c_int, c_void, sigaction, siginfo_t};
use parking_lot::Mutex;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

/// So many mappings are guarded at a time: tables of a TiB, at their usual size.
const MOST_RANGES: usize = 1 << 14;

static SLOTS: [Slot; MOST_RANGES] = [const { Slot::new() }; MOST_RANGES];
/// The ranges that the handler knows.
pub(super) static RANGES: Ranges = Ranges::over(&SLOTS);

/// A range of addresses.
#[derive(Debug)]
pub(super) struct Slot {
    /// Odd while the others change.
    turn: AtomicUsize,
    start: AtomicUsize,
    /// 0 if the slot is free.
    bytes: AtomicUsize,
    failed: AtomicBool,
}

impl Slot {
    pub(super) const fn new() -> Slot {
        let [turn, start, bytes] = [const { AtomicUsize::new(0) }; 3];
        Slot { turn, start, bytes, failed: AtomicBool::new(false) }
    }

    /// Set by the owner of the slot.
    fn set(&self, start: usize, bytes: usize) {
        let turn = self.turn.load(Ordering::Relaxed);
        self.turn.store(turn.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        self.start.store(start, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
        self.failed.store(false, Ordering::Relaxed);
        self.turn.store(turn.wrapping_add(2), Ordering::Release);
    }

    /// Whether the range has this address. A slot that changes meanwhile has not: a range that is
    /// in use does not change.
    fn contains(&self, address: usize) -> bool {
        let turn = self.turn.load(Ordering::Acquire);
        let (start, bytes) = (self.start.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        let is_whole = turn.is_multiple_of(2) && self.turn.load(Ordering::Relaxed) == turn;
        is_whole && address.wrapping_sub(start) < bytes
    }
}

/// A table of ranges: changed under a lock, read by the handler without.
#[derive(Debug)]
pub(super) struct Ranges {
    slots: &'static [Slot],
    /// The first slot that was never used.
    used: AtomicUsize,
    free: Mutex<Vec<usize>>,
}

impl Ranges {
    pub(super) const fn over(slots: &'static [Slot]) -> Ranges {
        Ranges { slots, used: AtomicUsize::new(0), free: Mutex::new(Vec::new()) }
    }

    /// Takes up the `bytes` bytes from `start`, which stay mapped for as long as the result lives;
    /// `None` if there is no room, or no way to guard them.
    pub(super) fn guard(&'static self, start: usize, bytes: usize) -> Option<Guard> {
        if !is_installed() {
            return None;
        }
        let mut free = self.free.lock();
        let index = free.pop().unwrap_or(self.used.load(Ordering::Relaxed));
        self.slots.get(index)?.set(start, bytes);
        if index == self.used.load(Ordering::Relaxed) {
            self.used.store(index + 1, Ordering::Release);
        }
        Some(Guard { ranges: self, index })
    }

    /// The range with this address. For the handler: no lock, no memory.
    fn find(&self, address: usize) -> Option<&Slot> {
        let used = self.slots.get(..self.used.load(Ordering::Acquire))?;
        used.iter().find(|slot| slot.contains(address))
    }
}

/// A range that faults are caught in. To be dropped before it is unmapped.
#[derive(Debug)]
pub(super) struct Guard {
    ranges: &'static Ranges,
    index: usize,
}

impl Guard {
    /// Whether a page of the mapping was unavailable. Called once
    /// [`crate::env::mapping_fault_seen`] has reported a fault in some mapping.
    pub(super) fn has_failed(&self) -> bool {
        self.ranges.slots.get(self.index).is_some_and(|slot| slot.failed.load(Ordering::Relaxed))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(slot) = self.ranges.slots.get(self.index) {
            let mut free = self.ranges.free.lock();
            slot.set(0, 0);
            free.push(self.index);
        }
    }
}

/// What was done about the signal before.
static BEFORE: OnceLock<sigaction> = OnceLock::new();
/// That was to be done once only, and has been.
static BEFORE_IS_SPENT: AtomicBool = AtomicBool::new(false);
/// The size of a page; 0 until the handler is installed.
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Whether faults are caught; installs the handler first, once.
fn is_installed() -> bool {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    *INSTALLED.get_or_init(|| errno().is_some() && install())
}

fn install() -> bool {
    // SAFETY: the call takes a number and returns one.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let Some(page_bytes) = usize::try_from(page_bytes).ok().filter(|bytes| bytes.is_power_of_two()) else {
        return false;
    };
    PAGE_BYTES.store(page_bytes, Ordering::Relaxed);
    // SAFETY: a `sigaction` is plain numbers, a set of signals and optional addresses, for all of
    // which zeroes are a value.
    let mut before: sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes the present action to `before`, and changes nothing.
    if unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut before) } != 0 {
        return false;
    }
    // Known to the handler before there is one. It blocks what the one before would, and begins as
    // that does.
    let before = BEFORE.get_or_init(|| before);
    let mut action = *before;
    action.sa_sigaction = on_signal as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
    action.sa_flags = (before.sa_flags & (libc::SA_RESTART | libc::SA_NODEFER)) | libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler has the type that `SA_SIGINFO` asks for, and does nothing but what a
    // signal handler may. `SA_ONSTACK` lets it run where the interrupted thread has little stack
    // left.
    unsafe { libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) == 0 }
}

/// The handler. Everything that it calls may be called while anything at all is interrupted.
extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the system hands a handler with `SA_SIGINFO` a valid `siginfo_t`.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    if is_fault(code)
        && let Some(slot) = RANGES.find(address)
    {
        // Before a thread can read the zeroes.
        slot.failed.store(true, Ordering::SeqCst);
        note_mapping_fault();
        if put_zeroes(address) {
            return;
        }
    }
    pass_on(code, signal, info, context);
}

/// Whether the signal reports an access to an unavailable page. The system repeats such an access
/// when the handler returns.
fn is_fault(code: c_int) -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return matches!(code, libc::BUS_ADRERR | libc::BUS_OBJERR | libc::BUS_MCEERR_AR);
    // The first code is that of an address that is not aligned; what other processes send has none
    // above zero.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    return code > 1;
}

/// Puts a page of zeroes, which nothing is behind, in the place of the one at `address`, which lies
/// in a guarded range. Whether it could.
fn put_zeroes(address: usize) -> bool {
    let page_bytes = PAGE_BYTES.load(Ordering::Relaxed);
    let page = address & !(page_bytes.wrapping_sub(1));
    let Some(errno) = errno() else { return false };
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED);
    // SAFETY: `errno` is this thread's. The page lies in a mapping of the engine's, which stays
    // until the interrupted access, which is one to it, is done; ranges begin at a page. No Rust
    // reference relies on its bytes: those of a mapped file can change at any time.
    unsafe {
        let interrupted = *errno;
        let put = libc::mmap(page as *mut c_void, page_bytes, access, kind, -1, 0);
        *errno = interrupted;
        put as usize == page
    }
}

/// The place of the thread's `errno`; `None` where it is not known.
fn errno() -> Option<*mut c_int> {
    // SAFETY: the call has no requirements.
    #[cfg(target_os = "linux")]
    return Some(unsafe { libc::__errno_location() });
    // SAFETY: as above.
    #[cfg(target_os = "android")]
    return Some(unsafe { libc::__errno() });
    // SAFETY: as above.
    #[cfg(target_vendor = "apple")]
    return Some(unsafe { libc::__error() });
    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    return None;
}

/// Does what would have happened without this handler.
fn pass_on(code: c_int, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let before = BEFORE.get().filter(|_| !BEFORE_IS_SPENT.load(Ordering::Relaxed));
    match before.map_or(libc::SIG_DFL, |before| before.sa_sigaction) {
        // A process that ignores the signal ignores those that are sent; an access cannot be
        // ignored.
        libc::SIG_IGN if code <= 0 => {}
        libc::SIG_DFL | libc::SIG_IGN => die(code),
        handler => {
            let flags = before.map_or(0, |before| before.sa_flags);
            if flags & libc::SA_RESETHAND != 0 {
                BEFORE_IS_SPENT.store(true, Ordering::Relaxed);
            }
            if flags & libc::SA_SIGINFO != 0 {
                // SAFETY: it was installed as a function of this type, neither of the two numbers
                // above, and gets what this one got.
                let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                    unsafe { std::mem::transmute(handler) };
                handler(signal, info, context);
            } else {
                // SAFETY: as above.
                let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
                handler(signal);
            }
        }
    }
}

/// Ends the process as the unhandled signal does.
fn die(code: c_int) {
    // SAFETY: zeroes are the default action with no flags; the calls may be made in a handler. An
    // access is tried again when the handler returns, and then ends the process where it happened;
    // what was sent has to be sent again, and arrives when the handler returns.
    unsafe {
        let action: sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
        if !is_fault(code) {
            libc::raise(libc::SIGBUS);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::env::os::map::{LogMap, ReadMap};
    use crate::env::os::unix::Positioned;
    use crate::env::{Env, mapping_fault_seen, os::OsEnv};
    use crate::{Db, Options, WalMode};
    use std::fs::{self, File, OpenOptions};
    use std::os::unix::process::ExitStatusExt;
    use std::path::PathBuf;
    use std::process::{Command, exit};

    const FILE_BYTES: u64 = 64 << 10;

    /// A file of ones, removed at the end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("esker-guard-{}-{name}", std::process::id()));
            fs::write(&path, vec![1; FILE_BYTES as usize]).unwrap();
            Scratch(path)
        }

        fn open(&self) -> File {
            OpenOptions::new().read(true).write(true).open(&self.0).unwrap()
        }

        fn map(&self) -> ReadMap {
            ReadMap::new(&Positioned::new(self.open()), FILE_BYTES).unwrap()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    fn ranges(slots: usize) -> &'static Ranges {
        let slots: Vec<Slot> = (0..slots).map(|_| Slot::new()).collect();
        Box::leak(Box::new(Ranges::over(Vec::leak(slots))))
    }

    #[test]
    fn an_address_is_found_in_its_range_until_that_ends_and_a_full_table_takes_no_more() {
        let ranges = ranges(3);
        let guards: Vec<Guard> = (1..=3).map(|at| ranges.guard(at * 0x10000, 0x2000).unwrap()).collect();
        assert!(ranges.guard(0x90000, 0x1000).is_none());
        let found = |address| ranges.find(address).map(|slot| slot.start.load(Ordering::Relaxed));
        for at in 1..=3 {
            let start = at * 0x10000;
            assert_eq!(found(start), Some(start));
            assert_eq!(found(start + 0x1fff), Some(start));
            assert_eq!((found(start - 1), found(start + 0x2000)), (None, None));
        }
        assert_eq!((found(0), found(usize::MAX)), (None, None));
        ranges.find(0x20000).unwrap().failed.store(true, Ordering::Relaxed);
        assert_eq!(guards.iter().map(Guard::has_failed).collect::<Vec<_>>(), [false, true, false]);
        let mut guards = guards.into_iter();
        let (first, second) = (guards.next(), guards.next());
        drop(second);
        assert_eq!((found(0x10000), found(0x20000)), (Some(0x10000), None));
        // The next one in the slot has failed in nothing.
        let next = ranges.guard(0x90000, 0x1000).unwrap();
        assert!(!next.has_failed() && found(0x90000).is_some() && ranges.guard(0xa0000, 0x1000).is_none());
        drop(first);
        assert!(ranges.guard(0xa0000, 0x1000).is_some());
    }

    #[test]
    fn a_slot_that_is_being_changed_has_no_address() {
        let slot = Slot::new();
        slot.set(0x1000, 0x1000);
        assert!(slot.contains(0x1800));
        slot.turn.fetch_add(1, Ordering::Relaxed);
        assert!(!slot.contains(0x1800));
        slot.turn.fetch_add(1, Ordering::Relaxed);
        assert!(slot.contains(0x1800));
    }

    /// The start of one range with the length of another would have an address that neither has.
    #[test]
    fn ranges_that_come_and_go_are_never_mixed_up_and_hide_none_that_stays() {
        const ROUNDS: usize = 5_000_000;
        let ranges = ranges(8);
        let _stays = ranges.guard(0x7000_0000, 0x1000).unwrap();
        let changes = ranges.guard(1, 1).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let look = || {
                while !done.load(Ordering::Relaxed) {
                    assert!(ranges.find(0x7000_0800).is_some());
                    for _ in 0..100 {
                        assert!(ranges.find(0x5_0000).is_none());
                    }
                }
            };
            let looking = [scope.spawn(look), scope.spawn(look)];
            for round in 0..ROUNDS {
                let (start, bytes) = if round % 2 == 0 { (0x1_0000, 0x1000) } else { (0x90_0000, 0x10_0000) };
                ranges.slots[changes.index].set(start, bytes);
                if round % 64 == 0 {
                    drop(ranges.guard(start, bytes).unwrap());
                }
            }
            done.store(true, Ordering::Relaxed);
            looking.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }

    #[test]
    fn a_full_table_leaves_files_unmapped() {
        let scratch = Scratch::new("full");
        let ranges = ranges(1);
        let first = ReadMap::guarded(&Positioned::new(scratch.open()), FILE_BYTES, ranges).unwrap();
        assert!(ReadMap::guarded(&Positioned::new(scratch.open()), FILE_BYTES, ranges).is_none());
        assert!(LogMap::guarded(&scratch.open(), FILE_BYTES, ranges).is_none());
        drop(first);
        assert!(ReadMap::guarded(&Positioned::new(scratch.open()), FILE_BYTES, ranges).is_some());
    }

    #[test]
    fn what_is_cut_off_reads_as_zeroes_is_noted_and_leaves_errno_and_other_mappings_alone() {
        let (short, whole) = (Scratch::new("short"), Scratch::new("whole"));
        let (first, second, other) = (short.map(), short.map(), whole.map());
        short.open().set_len(5000).unwrap();
        let page = PAGE_BYTES.load(Ordering::Relaxed);
        // The remaining bytes of the file, and the rest of its last page, are readable.
        assert_eq!(first.bytes()[4999], 1);
        assert!(!first.has_failed());
        let errno = errno().unwrap();
        // SAFETY: it is this thread's.
        unsafe { *errno = 77 };
        let cut_off = std::hint::black_box(first.bytes())[page.max(8192) + 9];
        // SAFETY: as above.
        assert_eq!((cut_off, unsafe { *errno }), (0, 77));
        assert!(mapping_fault_seen() && first.has_failed());
        assert!(!second.has_failed() && !other.has_failed());
        assert!(other.bytes().iter().all(|&byte| byte == 1));
        assert!(second.bytes()[8192..].iter().all(|&byte| byte == 0) && second.has_failed());
        // One that may take the slot of a mapping that has failed.
        drop((first, second));
        assert!(!whole.map().has_failed());
    }

    #[test]
    fn many_threads_meet_the_same_pages() {
        let scratch = Scratch::new("threads");
        let map = scratch.map();
        scratch.open().set_len(0).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let map = &map;
                scope.spawn(move || {
                    for at in (0..FILE_BYTES as usize).step_by(512) {
                        let at = if thread % 2 == 0 { at } else { FILE_BYTES as usize - 1 - at };
                        assert_eq!(std::hint::black_box(map.bytes())[at], 0);
                        assert!(map.has_failed());
                    }
                });
            }
        });
    }

    const CHILD: &str = "ESKER_GUARD_CHILD";

    /// Runs `test` of this module again in a process of its own, as `case`. How it ended: its exit
    /// code, or the signal that ended it.
    fn ends_with(test: &str, case: &str) -> (Option<i32>, Option<i32>) {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", &format!("env::os::guard::tests::{test}"), "--nocapture", "--test-threads=1"]);
        let output = child.env(CHILD, case).output().unwrap();
        (output.status.code(), output.status.signal())
    }

    fn case() -> Option<String> {
        let case = std::env::var(CHILD).ok()?;
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the call reads its argument. The process is to die, and to leave no memory image.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
        Some(case)
    }

    static SEEN: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn tells_address(_: c_int, info: *mut siginfo_t, _: *mut c_void) {
        // SAFETY: as in the handler under test.
        let address = unsafe { (*info).si_addr() as usize };
        // SAFETY: the process ends here.
        unsafe { libc::_exit(if address == SEEN.load(Ordering::Relaxed) { 42 } else { 1 }) }
    }

    extern "C" fn tells_signal(signal: c_int) {
        // SAFETY: as above.
        unsafe { libc::_exit(if signal == libc::SIGBUS { 43 } else { 1 }) }
    }

    extern "C" fn counts(_: c_int) {
        SEEN.fetch_add(1, Ordering::Relaxed);
    }

    fn handle_before(handler: usize, flags: c_int) {
        // SAFETY: zeroes are a `sigaction`, and the handler has the type that the flags ask for.
        unsafe {
            let mut action: sigaction = std::mem::zeroed();
            (action.sa_sigaction, action.sa_flags) = (handler, flags);
            assert_eq!(libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()), 0);
        }
    }

    /// An access that fails in a mapping that is none of the engine's.
    fn fault_elsewhere() -> ! {
        let scratch = Scratch::new("elsewhere");
        let file = scratch.open();
        // SAFETY: it is the point.
        let foreign = unsafe { memmap2::Mmap::map(&file) }.unwrap();
        file.set_len(0).unwrap();
        drop(scratch);
        SEEN.store(foreign.as_ptr() as usize, Ordering::Relaxed);
        let byte = std::hint::black_box(&foreign)[0];
        exit(100 + i32::from(byte))
    }

    #[test]
    fn what_is_not_the_engines_goes_to_whoever_handled_it_before() {
        const TEST: &str = "what_is_not_the_engines_goes_to_whoever_handled_it_before";
        let Some(case) = case() else {
            let killed = (None, Some(libc::SIGBUS));
            // The one that the standard library brings, which looks for stack overflows, and none.
            assert_eq!(ends_with(TEST, "runtime"), killed);
            assert_eq!(ends_with(TEST, "default"), killed);
            assert_eq!(ends_with(TEST, "ignore"), killed);
            assert_eq!(ends_with(TEST, "siginfo"), (Some(42), None));
            assert_eq!(ends_with(TEST, "plain"), (Some(43), None));
            return;
        };
        match case.as_str() {
            "default" => handle_before(libc::SIG_DFL, 0),
            "ignore" => handle_before(libc::SIG_IGN, 0),
            "siginfo" => handle_before(tells_address as *const () as usize, libc::SA_SIGINFO),
            "plain" => handle_before(tells_signal as *const () as usize, 0),
            _ => {}
        }
        // The engine's own faults are its own.
        let scratch = Scratch::new("own");
        let map = scratch.map();
        scratch.open().set_len(0).unwrap();
        assert_eq!(std::hint::black_box(map.bytes())[9000], 0);
        assert!(map.has_failed());
        drop(scratch);
        fault_elsewhere()
    }

    #[test]
    fn a_signal_that_is_sent_does_what_it_would_have() {
        const TEST: &str = "a_signal_that_is_sent_does_what_it_would_have";
        // SAFETY: the call has no requirements.
        let send = || unsafe { libc::raise(libc::SIGBUS) };
        let Some(case) = case() else {
            assert_eq!(ends_with(TEST, "default"), (None, Some(libc::SIGBUS)));
            assert_eq!(ends_with(TEST, "ignore"), (Some(44), None));
            assert_eq!(ends_with(TEST, "again"), (Some(45), None));
            assert_eq!(ends_with(TEST, "once"), (None, Some(libc::SIGBUS)));
            return;
        };
        match case.as_str() {
            "default" => handle_before(libc::SIG_DFL, 0),
            "ignore" => handle_before(libc::SIG_IGN, 0),
            "again" => handle_before(counts as *const () as usize, 0),
            _ => handle_before(counts as *const () as usize, libc::SA_RESETHAND),
        }
        let scratch = Scratch::new("sent");
        let _map = scratch.map();
        drop(scratch);
        send();
        match case.as_str() {
            "ignore" => exit(44),
            "default" => exit(1),
            _ if SEEN.load(Ordering::Relaxed) != 1 => exit(2),
            _ => {}
        }
        send();
        exit(if SEEN.load(Ordering::Relaxed) == 2 { 45 } else { 3 })
    }

    #[test]
    fn a_process_with_too_many_mappings_goes_on_without() {
        const TEST: &str = "a_process_with_too_many_mappings_goes_on_without";
        if case().is_none() {
            assert_eq!(ends_with(TEST, "full"), (Some(46), None));
            return;
        }
        let guards: Vec<Guard> = (0..MOST_RANGES).map(|_| RANGES.guard(1, 1).unwrap()).collect();
        let scratch = Scratch::new("unmapped");
        let file = OsEnv.open(&scratch.0).unwrap();
        assert!(file.mapping().is_none() && file.check_mapping().is_ok());
        let mut bytes = [0; 2];
        file.read_at(100, &mut bytes).unwrap();
        assert_eq!(bytes, [1, 1]);
        let directory = std::env::temp_dir().join(format!("esker-guard-{}-db", std::process::id()));
        let db = Db::open(&directory, Options::default().wal_mode(WalMode::Mapped)).unwrap();
        let names = db.keyspace("names", Default::default()).unwrap();
        names.put("ada", "1815").unwrap();
        db.flush().unwrap();
        assert_eq!(names.get("ada").unwrap().unwrap(), b"1815");
        drop((names, db, guards));
        fs::remove_dir_all(&directory).unwrap();
        drop(scratch);
        exit(46)
    }
}
