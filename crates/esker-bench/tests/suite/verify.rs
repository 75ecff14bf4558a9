//! What a run left behind is compared with what it must have left, and an engine that loses,
//! doubles, invents or hides anything is found out.

#![allow(clippy::unwrap_used)]

use esker_bench::bench::bench_with;
use esker_bench::interrupt::Interrupt;
use esker_bench::progress::Display;
use esker_bench::record::{Record, Verification};
use esker_bench::reference;
use esker_bench::sweep::task::{Step, Surroundings, Task, collect};
use esker_bench::verify::content::verify;
use esker_engines::{
    Engine, EngineKind, EngineOptions, Iteration, Opened, Operation, Result, Session, WriteMode, registry,
};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

struct Ran {
    code: i32,
    out: String,
    records: Vec<Record>,
}

fn run_kind(kind: EngineKind, db: &Path, flags: &str) -> Ran {
    let json = db.join("rows.jsonl");
    let mut arguments: Vec<String> = flags.split_whitespace().map(String::from).collect();
    arguments.push(format!("--engine={}", kind.name));
    arguments.push(format!("--db={}", db.display()));
    arguments.push(format!("--json={}", json.display()));
    let mut out = Vec::new();
    let code = bench_with(&arguments, &[kind], &mut out, Display::Hidden, Interrupt::new);
    let lines = std::fs::read_to_string(&json).unwrap();
    let records = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    Ran { code, out: String::from_utf8(out).unwrap(), records }
}

fn run(flags: &str) -> Ran {
    let db = tempfile::tempdir().unwrap();
    run_kind(reference::KIND, db.path(), flags)
}

const MERGE: &str = "--benchmarks=mergerandom,verifymerges --merge_operator=uint64add --value_size=8 --num=2000";
const UPDATE: &str = "--benchmarks=updaterandom,verifyupdates --value_size=8 --num=2000";

#[test]
fn counters_are_exact_however_they_are_merged() {
    for flags in [
        "",
        "--threads=3",
        "--threads=10 --merge_operand=one",
        "--threads=2 --keygen=rocksdb --seed=7",
        "--merge_keys=17 --threads=2",
        "--merge_keys=1 --writes=300",
        "--key_prefix=3 --key_size=20",
        "--threads=2 --fresh_process",
    ] {
        let ran = run(&format!("{MERGE} {flags}"));
        assert_eq!(ran.code, 0, "{flags}: {}", ran.out);
        let (merge, check) = (&ran.records[0], &ran.records[1]);
        assert_eq!(check.skipped, None, "{flags}");
        let expected = format!("({} counters exact after {} operations)", check.ops, merge.ops);
        assert_eq!(check.message, expected, "{flags}");
    }
}

#[test]
fn several_merges_add_up() {
    let list = "--benchmarks=fillrandom,mergerandom,create,mergerandom,mergerandom,open,verifymerges";
    let ran = run(&format!("{MERGE} {list} --threads=2"));
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert!(ran.records.last().unwrap().message.contains("exact after 8000 operations"), "{}", ran.out);
}

#[test]
fn updated_keys_and_values_are_those_that_threads_wrote() {
    for flags in ["", "--threads=3", "--threads=2 --value_size=100", "--threads=2 --keygen=rocksdb"] {
        let ran = run(&format!("{UPDATE} {flags}"));
        assert_eq!(ran.code, 0, "{flags}: {}", ran.out);
        let (update, check) = (&ran.records[0], &ran.records[1]);
        assert_eq!(check.message, format!("({} values exact after {} operations)", check.ops, update.ops), "{flags}");
    }
}

#[test]
fn what_cannot_be_recomputed_is_skipped_with_the_reason() {
    for (flags, reason) in [
        ("--benchmarks=verifymerges,mergerandom", "there was no mergerandom before"),
        ("--benchmarks=fillseq,mergerandom,verifymerges", "fillseq wrote too"),
        ("--benchmarks=mergerandom,verifyupdates", "mergerandom wrote too, and only updaterandom can be recomputed"),
        ("--value_size=9 --merge_operator=put", "--merge_operator is not uint64add"),
        ("--merge_operator=", "there was no mergerandom before"),
        ("--writes=2000000000 --max_seconds=0.1", "mergerandom ended early"),
    ] {
        let ran = run(&format!("{MERGE} {flags}"));
        assert_eq!(ran.code, 0, "{flags}: {}", ran.out);
        let skipped = ran.records.iter().filter(|record| record.benchmark.starts_with("verify"));
        let skipped: Vec<&str> = skipped.filter_map(|record| record.skipped.as_deref()).collect();
        assert!(skipped.len() == 1 && skipped[0].contains(reason), "{flags}: {skipped:?}");
    }
    let db = tempfile::tempdir().unwrap();
    run_kind(reference::KIND, db.path(), MERGE);
    let ran = run_kind(reference::KIND, db.path(), &format!("{MERGE} --use_existing_db=1"));
    assert!(ran.records[1].skipped.as_ref().unwrap().contains("held before is not known"));
}

#[test]
fn a_check_moves_no_key_sequence() {
    let ran = run("--benchmarks=fillrandom,verifymerges,waitidle,readrandom --num=10000");
    assert!(ran.out.contains("(6250 of 10000 found)"), "{}", ran.out);
}

/// What an engine does wrong with its 1000th write: that of the last operation of a thread in the
/// tests below.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    Loses,
    Doubles,
    Invents,
    Misplaces,
    Shortens,
    HidesFromGet,
    /// Some keys can be seen once, by the scan of everything.
    Forgets,
    /// It loses every write after that one to a key that is there.
    LosesLaterUpdates,
}

const FAULTY_WRITE: u64 = 1000;

struct Faulty {
    inner: Box<dyn Engine>,
    fault: Fault,
    writes: AtomicU64,
}

impl Engine for Faulty {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(FaultySession { engine: self, inner: self.inner.session()? }))
    }
}

struct FaultySession<'a> {
    engine: &'a Faulty,
    inner: Box<dyn Session + 'a>,
}

impl FaultySession<'_> {
    fn write_one(&mut self, operation: Operation<'_>, mode: WriteMode) -> Result<()> {
        let count = self.engine.writes.fetch_add(1, Ordering::Relaxed) + 1;
        if self.engine.fault == Fault::LosesLaterUpdates
            && count > FAULTY_WRITE
            && let Operation::Put(key, _) = operation
            && self.inner.get(key, &mut Vec::new())?
        {
            return Ok(());
        }
        let fault = if count == FAULTY_WRITE { self.engine.fault } else { Fault::None };
        let mut apply = |operation: Operation<'_>| match operation {
            Operation::Merge(key, operand) => self.inner.merge(key, operand, mode),
            Operation::Put(key, value) => self.inner.put(key, value, mode),
            Operation::Delete(key) => self.inner.delete(key, mode),
        };
        match (fault, operation) {
            (Fault::Loses, _) => Ok(()),
            (Fault::Doubles, _) => apply(operation).and_then(|()| apply(operation)),
            (Fault::Invents, _) => {
                apply(operation).and_then(|()| apply(Operation::Put(b"0000000000900000", b"12345678")))
            }
            (Fault::Misplaces, Operation::Merge(_, value)) => apply(Operation::Merge(b"0000000000900001", value)),
            (Fault::Shortens, Operation::Merge(key, _) | Operation::Put(key, _)) => {
                apply(Operation::Put(key, b"short"))
            }
            _ => apply(operation),
        }
    }
}

impl Session for FaultySession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], mode: WriteMode) -> Result<()> {
        self.write_one(Operation::Put(key, value), mode)
    }
    fn delete(&mut self, key: &[u8], mode: WriteMode) -> Result<()> {
        self.write_one(Operation::Delete(key), mode)
    }
    fn merge(&mut self, key: &[u8], operand: &[u8], mode: WriteMode) -> Result<()> {
        self.write_one(Operation::Merge(key, operand), mode)
    }
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let found = self.inner.get(key, value)?;
        let hides = matches!(self.engine.fault, Fault::HidesFromGet | Fault::Forgets);
        Ok(found && !(hides && key.ends_with(b"7")))
    }
    fn iterate(&mut self) -> Result<Box<dyn Iteration + '_>> {
        let inner = self.inner.iterate()?;
        Ok(Box::new(FaultyIteration { inner, forgets: self.engine.fault == Fault::Forgets }))
    }
}

struct FaultyIteration<'a> {
    inner: Box<dyn Iteration + 'a>,
    forgets: bool,
}

impl Iteration for FaultyIteration<'_> {
    fn seek_to_first(&mut self) -> Result<bool> {
        self.inner.seek_to_first()
    }
    fn seek_to_last(&mut self) -> Result<bool> {
        self.inner.seek_to_last()
    }
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let there = self.inner.seek(key)?;
        if there && self.forgets && self.inner.key().ends_with(b"7") { self.inner.next() } else { Ok(there) }
    }
    fn next(&mut self) -> Result<bool> {
        self.inner.next()
    }
    fn prev(&mut self) -> Result<bool> {
        self.inner.prev()
    }
    fn key(&self) -> &[u8] {
        self.inner.key()
    }
    fn value(&self) -> &[u8] {
        self.inner.value()
    }
}

fn faulty(directory: &Path, options: &EngineOptions, fault: Fault) -> Result<Opened> {
    let Opened { engine: inner, description } = (reference::KIND.open)(directory, options, None)?;
    Ok(Opened::new(Faulty { inner, fault, writes: AtomicU64::new(0) }, description))
}

macro_rules! kind {
    ($fault:ident) => {
        EngineKind { open: |directory, options, _| faulty(directory, options, Fault::$fault), ..reference::KIND }
    };
}

fn outcome(kind: EngineKind, flags: &str) -> (i32, usize) {
    let db = tempfile::tempdir().unwrap();
    let ran = run_kind(kind, db.path(), flags);
    (ran.code, ran.records.len())
}

#[test]
fn one_wrong_merge_is_a_failure() {
    for threads in ["--threads=1", "--threads=10"] {
        let flags = format!("{MERGE} {threads} --merge_operand=random");
        assert_eq!(outcome(kind!(None), &flags), (0, 2));
        for kind in [kind!(Loses), kind!(Doubles), kind!(Invents), kind!(Misplaces), kind!(Shortens)] {
            // The merges make their row; the check makes none.
            assert_eq!(outcome(kind, &flags), (1, 1));
        }
    }
}

#[test]
fn one_wrong_update_is_a_failure() {
    let flags = format!("{UPDATE} --num=1000");
    assert_eq!(outcome(kind!(None), &flags), (0, 2));
    for kind in [kind!(Loses), kind!(Invents), kind!(Shortens)] {
        assert_eq!(outcome(kind, &flags), (1, 1));
    }
}

#[test]
fn a_later_update_that_is_lost_is_a_failure() {
    // So many operations that the first benchmark writes every key.
    let list = "--benchmarks=updaterandom,updaterandom,verifyupdates --num=50 --writes=500 --threads=2";
    let flags = format!("{UPDATE} {list}");
    assert_eq!(outcome(kind!(None), &flags), (0, 3));
    assert_eq!(outcome(kind!(LosesLaterUpdates), &flags), (1, 2));
}

fn task(engine: &str, flags: &[(&str, &str)], steps: Vec<Step>) -> Task {
    Task {
        engine: engine.into(),
        repetition: 1,
        flags: flags.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        steps,
        verify: true,
        ..Task::default()
    }
}

/// What the look at everything after a task has shown, and the row it is kept with.
fn verified(kind: &EngineKind, flags: &[(&str, &str)], steps: &[&str]) -> (String, Verification) {
    let db = tempfile::tempdir().unwrap();
    let db = db.path().display().to_string();
    let steps: Vec<Step> = steps.iter().map(|name| Step::new(name, Some(name))).collect();
    let mut task = task(kind.name, flags, steps);
    task.flags.insert("db".into(), db);
    let (interrupt, mut records) = (Interrupt::new(), Vec::new());
    let around = Surroundings { kind, display: Display::Hidden, interrupt: &interrupt };
    let mut ended = None;
    task.perform(&around, &mut |event| {
        ended = ended.take().or(collect(event, &mut records));
        Ok(())
    })
    .unwrap();
    assert_eq!(ended, None, "{}", kind.name);
    let last = records.pop().unwrap();
    assert!(records.iter().all(|record| record.verification.is_none()));
    (last.row.clone(), last.verification.unwrap())
}

#[test]
fn a_lookup_that_contradicts_the_scan_is_counted() {
    let flags = [("num", "5000"), ("value_size", "20")];
    let (row, right) = verified(&reference::KIND, &flags, &["fillseq", "readrandom"]);
    assert_eq!((row.as_str(), right.entries, right.sampled, right.mismatches), ("readrandom", 5000, 1000, 0));
    let (_, wrong) = verified(&kind!(HidesFromGet), &flags, &["fillseq"]);
    assert_eq!((&wrong.content_hash, wrong.sampled), (&right.content_hash, 1000));
    assert!(wrong.mismatches > 50 && wrong.mismatches < 150, "{wrong:?}");
    let (_, less) = verified(&kind!(Loses), &flags, &["fillseq"]);
    assert_eq!((less.entries, less.mismatches), (4999, 0));
    assert_ne!(less.content_hash, right.content_hash);
}

#[test]
fn what_expires_between_scan_and_lookup_is_left_out() {
    let look = |fault, expiring| {
        let db = tempfile::tempdir().unwrap();
        let engine = faulty(db.path(), &EngineOptions::default(), fault).unwrap();
        let mut session = engine.session().unwrap();
        for number in 0..5000 {
            session.put(format!("{number:016}").as_bytes(), b"v", WriteMode::default()).unwrap();
        }
        drop(session);
        verify(&*engine, expiring, &Interrupt::new()).unwrap().unwrap()
    };
    let wrong = look(Fault::Forgets, false);
    assert!(wrong.sampled == 1000 && wrong.mismatches > 50, "{wrong:?}");
    let expired = look(Fault::Forgets, true);
    assert_eq!((expired.sampled, expired.mismatches), (1000 - wrong.mismatches, 0));
    // What a scan still shows has not expired.
    assert_eq!(look(Fault::HidesFromGet, true).mismatches, wrong.mismatches);
}

/// The same load gives the same hash on every engine that is here.
fn same_everywhere(flags: &[(&str, &str)], steps: &[&str]) {
    let (_, expected) = verified(&reference::KIND, flags, steps);
    assert!(expected.entries > 0 && expected.mismatches == 0);
    for kind in registry::KINDS {
        if let Err(missing) = (kind.probe)(None) {
            assert_ne!(std::env::var("ESKER_REQUIRE_PEERS").as_deref(), Ok("1"), "{missing}");
            eprintln!("skipped: {missing}");
            continue;
        }
        let (_, found) = verified(&kind, flags, steps);
        assert_eq!(found, expected, "{}", kind.name);
    }
}

#[test]
fn engines_with_the_same_entries_have_the_same_hash() {
    same_everywhere(&[("num", "20000")], &["fillrandom", "overwrite", "deleterandom", "readrandom"]);
}

#[test]
fn counters_of_all_engines_have_the_same_hash() {
    let flags = [("num", "3000"), ("value_size", "8"), ("merge_operator", "uint64add"), ("disable_wal", "1")];
    same_everywhere(&flags, &["mergerandom", "compact", "verifymerges"]);
}
