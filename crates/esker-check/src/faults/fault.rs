//! How calls fail, and what a failed call must do to the handle.

use crate::powerloss::script::Step;
use crate::random::Random;
use esker::Db;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{MemEnv, SyncFailure};
use std::cell::Cell;
use std::io::ErrorKind;

const CLASSES: [Class; 13] = [
    Class::Look,
    Class::Open,
    Class::Read,
    Class::Create,
    Class::Append,
    Class::Sync,
    Class::SyncDir,
    Class::Rename,
    Class::Remove,
    Class::Link,
    Class::LogWrite,
    Class::LogStore,
    Class::Lock,
];

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    Rule {
        class: Class,
        action: Action,
        forever: bool,
        /// Only on files whose name contains this.
        names: Option<&'static str>,
    },
    /// A sync that fails once; the pages are dropped, or reach the disk after all.
    Sync(SyncFailure),
    /// The same of a directory.
    SyncDir(SyncFailure),
    /// No call by itself: the disk.
    Full(FullDisk),
}

/// A disk that is full from one step on until it is freed before another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FullDisk {
    from: usize,
    until: usize,
    /// The bytes that still fit when it begins.
    room: u64,
}

impl FullDisk {
    /// One in so many steps.
    pub fn some(steps: usize, random: &mut Random) -> FullDisk {
        let from = random.below(steps);
        let room = [0, random.below(300) as u64, random.below(10_000) as u64][random.below(3)];
        FullDisk { from, until: from + 1 + random.below(steps - from), room }
    }

    /// The same in other steps, those of the same length first.
    pub fn elsewhere(self, steps: usize) -> Vec<FullDisk> {
        let lengths = [self.until - self.from, 1, 2, 4, steps];
        let all = lengths.iter().flat_map(|length| (0..steps).map(move |from| (from, from + length)));
        let rooms = [self.room, 0];
        all.flat_map(|(from, until)| rooms.map(|room| FullDisk { from, until, room })).collect()
    }
}

impl Fault {
    /// Every fault there is.
    pub fn all() -> Vec<Fault> {
        let actions = [
            Action::Fail(ErrorKind::Other),
            Action::Fail(ErrorKind::StorageFull),
            Action::Partial { kind: ErrorKind::StorageFull, bytes: 5 },
            Action::FailAfter(ErrorKind::Other),
        ];
        let failures =
            [SyncFailure::DropPending, SyncFailure::KeepPending, SyncFailure::KeepSome(1), SyncFailure::KeepSome(2)];
        let mut faults: Vec<Fault> =
            failures.into_iter().flat_map(|how| [Fault::Sync(how), Fault::SyncDir(how)]).collect();
        for class in CLASSES {
            for action in actions {
                let partial = matches!(action, Action::Partial { .. });
                if partial && !matches!(class, Class::Append | Class::LogWrite | Class::LogStore) {
                    continue;
                }
                let names = None;
                faults.extend([false, true].map(|forever| Fault::Rule { class, action, forever, names }));
            }
        }
        for (class, names) in [
            (Class::Append, "MANIFEST"),
            (Class::Sync, "MANIFEST"),
            (Class::Sync, ".wal"),
            (Class::LogWrite, ".wal"),
            (Class::Create, ".wal"),
            (Class::Rename, "CURRENT"),
        ] {
            for action in [Action::Fail(ErrorKind::Other), Action::FailAfter(ErrorKind::StorageFull)] {
                faults.push(Fault::Rule { class, action, forever: false, names: Some(names) });
            }
        }
        faults
    }

    /// The class of the calls that it can hit.
    pub fn class(self) -> Class {
        match self {
            Fault::Rule { class, .. } => class,
            Fault::Sync(_) => Class::Sync,
            Fault::SyncDir(_) => Class::SyncDir,
            Fault::Full(_) => Class::Append,
        }
    }

    fn names(self) -> Option<&'static str> {
        match self {
            Fault::Rule { names, .. } => names,
            _ => None,
        }
    }

    fn is_forever(self) -> bool {
        matches!(self, Fault::Rule { forever: true, .. })
    }

    /// Whether the call says that the disk is full.
    fn says_full(self) -> bool {
        match self {
            Fault::Rule {
                action: Action::Fail(kind) | Action::FailAfter(kind) | Action::Partial { kind, .. }, ..
            } => kind == ErrorKind::StorageFull,
            _ => false,
        }
    }
}

/// A fault that waits for its call.
#[derive(Debug)]
pub struct Armed {
    fault: Fault,
    nth: u64,
    env: FaultEnv,
    memory: MemEnv,
    /// The number of the present step.
    step: Cell<usize>,
}

/// The calls made before a step, by which its own are told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Before {
    hits: u64,
    log_writes: u64,
    renames: u64,
}

impl Armed {
    /// Lets the `nth` call fail, counted from now.
    pub fn new(fault: Fault, nth: u64, env: &FaultEnv, memory: &MemEnv) -> Armed {
        match fault {
            Fault::Rule { class, action, forever, names } => {
                let mut rule = Rule::new(class, nth, action);
                if let Some(part) = names {
                    rule = rule.on_names_with(part);
                }
                env.add(if forever { rule.from_then_on() } else { rule });
            }
            Fault::Sync(failure) => memory.fail_sync(nth, failure),
            Fault::SyncDir(failure) => memory.fail_sync_dir(nth, failure),
            Fault::Full(_) => {}
        }
        Armed { fault, nth, env: env.clone(), memory: memory.clone(), step: Cell::new(0) }
    }

    /// To be said before every step: the disk fills, or is freed.
    pub fn begin_step(&self, number: usize) {
        self.step.set(number);
        let Fault::Full(FullDisk { from, until, room }) = self.fault else { return };
        if number == from {
            let files = self.memory.files();
            // A file of two names counts twice, which leaves more space than was requested.
            let used = files.iter().filter_map(|path| self.memory.file_bytes(path)).map(|bytes| bytes.len() as u64);
            self.memory.set_capacity(Some(used.sum::<u64>() + room));
        } else if number == until {
            self.memory.set_capacity(None);
        }
    }

    /// Whether the disk was full and is not any more.
    pub fn is_freed(&self) -> bool {
        matches!(self.fault, Fault::Full(FullDisk { until, .. }) if self.step.get() >= until)
    }

    /// How often it happened.
    pub fn hits(&self) -> u64 {
        match self.fault {
            Fault::Rule { .. } => self.env.fired(),
            // It happens below the environment that counts, to the call of the same number.
            Fault::Sync(_) | Fault::SyncDir(_) => u64::from(self.env.calls(self.fault.class()) > self.nth),
            Fault::Full(FullDisk { from, .. }) => u64::from(self.step.get() >= from),
        }
    }

    /// Whether a read may have met it.
    pub fn hits_reads(&self) -> bool {
        self.hits() > 0 && matches!(self.fault.class(), Class::Look | Class::Open | Class::Read)
    }

    /// Whether whatever is tried again must succeed.
    pub fn is_over(&self) -> bool {
        match self.fault {
            Fault::Full(_) => self.is_freed(),
            _ => self.hits() > 0 && !self.fault.is_forever(),
        }
    }

    pub fn before(&self) -> Before {
        let (log_writes, renames) = (self.env.calls(Class::LogWrite), self.env.calls(Class::Rename));
        Before { hits: self.hits(), log_writes, renames }
    }

    /// What failed in a step that ended with `outcome` and must have made the handle read-only: the
    /// log, or the manifest. C5 of durability.md: "After the first failed write or sync of the log,
    /// and the first failed append, sync or switch of the manifest".
    ///
    /// Files of the log are also written and synced when the next one is prepared, which may fail
    /// without harm (C8). Each preparation writes a header with a write of the log, and where that
    /// is mapped nothing else does.
    pub fn must_refuse(
        &self,
        before: Before,
        step: &Step,
        outcome: &esker::Result<()>,
        db: &Db,
    ) -> Option<&'static str> {
        if self.hits() == before.hits {
            return None;
        }
        let now = self.before();
        let prepared = now.log_writes > before.log_writes;
        match (self.fault.class(), self.fault.names()) {
            (Class::LogStore, _) => Some("a write of the log"),
            (Class::Append | Class::Sync, Some("MANIFEST"))
                if !self.is_unfinished(outcome) && !self.may_keep_changes(outcome, db) =>
            {
                Some("the manifest")
            }
            (Class::Sync, Some(".wal")) if !prepared => Some("a sync of the log"),
            // Nothing but the file that names the manifest is renamed.
            (Class::Rename, _) => Some("the switch of the manifest"),
            // Names of tables and of prepared log files are synced too; neither is made where
            // nothing but a keyspace is created.
            (Class::SyncDir, _) if matches!(step, Step::Create(_)) && !prepared && now.renames > before.renames => {
                Some("the sync of the switch")
            }
            (Class::Sync | Class::LogWrite, _) if *step == Step::Sync && outcome.is_err() => Some("Db::sync"),
            _ => None,
        }
    }

    /// Whether the failure is that of a full disk, at a manifest that is not in force: nothing has
    /// changed, and a keyspace that was to be created or dropped is as it was.
    fn is_unfinished(&self, outcome: &esker::Result<()>) -> bool {
        let Err(error @ esker::Error::Io { path, .. }) = outcome else { return false };
        let current = self.memory.file_bytes(&path.with_file_name("CURRENT")).unwrap_or_default();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        error.is_disk_full() && !String::from_utf8_lossy(&current).starts_with(&*name)
    }

    /// Whether the failure may be that of a full disk where changes were to be given up, at a
    /// manifest that is not in force: they stay, the next flush tries again, and nobody is told. An
    /// edit of the manifest in force is needed by the step, which returns its error.
    fn may_keep_changes(&self, outcome: &esker::Result<()>, db: &Db) -> bool {
        self.fault.says_full() && outcome.is_ok() && db.stats().kept_wal_bytes > 0
    }

    /// Whether what failed in a step must not have made the handle read-only: "A log segment that
    /// cannot be made fails the write, not the handle" (C8).
    pub fn must_not_refuse(&self, before: Before) -> bool {
        let hit = self.hits() > before.hits;
        hit && self.fault.class() == Class::Create && self.fault.names() == Some(".wal")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::powerloss::written_variants;
    use crate::simulated::MEMORY_PATH;
    use esker::KeyspaceOptions;
    use std::sync::Arc;

    /// A database with more of the log than is kept for readers of changes, once it is flushed.
    fn filled(env: &FaultEnv) -> Db {
        // The last ones keep changes.
        let (_, options) = written_variants().pop().unwrap();
        let db = Db::open(MEMORY_PATH, options.env(Arc::new(env.clone()))).unwrap();
        let keyspace = db.keyspace("a", KeyspaceOptions::default()).unwrap();
        let mut random = Random::new(1);
        for number in 0..40 {
            keyspace.put(format!("k{number}"), random.bytes(350)).unwrap();
        }
        db
    }

    /// Whether the flush of such a database succeeds though a call of that number fails for want of
    /// space on a manifest; none if there is no such call. The manifest in force must make the
    /// handle read-only, and no other one may be said to.
    fn flush_on_a_full_disk(class: Class, nth: u64) -> Option<bool> {
        let memory = MemEnv::new();
        let env = FaultEnv::new(Arc::new(memory.clone()));
        let db = filled(&env);
        let action = Action::FailAfter(ErrorKind::StorageFull);
        let fault = Fault::Rule { class, action, forever: false, names: Some("MANIFEST") };
        let armed = Armed::new(fault, nth, &env, &memory);
        let before = armed.before();
        let outcome = db.flush();
        let must_refuse = armed.must_refuse(before, &Step::Flush, &outcome, &db);
        assert_eq!(must_refuse.is_none(), db.health().writable, "{class:?} {nth}: {must_refuse:?}, {outcome:?}");
        (armed.hits() > 0).then_some(outcome.is_ok())
    }

    /// If a full disk that keeps changes from being given up were taken for a failure of the
    /// manifest in force, or the other way round, this would fail.
    #[test]
    fn changes_that_a_full_disk_keeps_from_being_given_up_leave_the_handle_writable() {
        for class in [Class::Append, Class::Sync] {
            let flushes: Vec<bool> = (0..).map_while(|nth| flush_on_a_full_disk(class, nth)).collect();
            // The edit that names the table comes first, then what gives changes up.
            assert!(flushes.contains(&false) && flushes.last() == Some(&true), "{class:?}: {flushes:?}");
        }
    }
}
