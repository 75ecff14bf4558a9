//! How calls fail, and what a failed call must do to the handle.

use crate::powerloss::script::Step;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{MemEnv, SyncFailure};
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
        }
    }

    fn names(self) -> Option<&'static str> {
        match self {
            Fault::Rule { names, .. } => names,
            Fault::Sync(_) | Fault::SyncDir(_) => None,
        }
    }

    fn is_forever(self) -> bool {
        matches!(self, Fault::Rule { forever: true, .. })
    }
}

/// A fault that waits for its call.
#[derive(Debug)]
pub struct Armed {
    fault: Fault,
    nth: u64,
    env: FaultEnv,
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
        }
        Armed { fault, nth, env: env.clone() }
    }

    /// How often it happened.
    pub fn hits(&self) -> u64 {
        match self.fault {
            Fault::Rule { .. } => self.env.fired(),
            // It happens below the environment that counts, to the call of the same number.
            Fault::Sync(_) | Fault::SyncDir(_) => u64::from(self.env.calls(self.fault.class()) > self.nth),
        }
    }

    /// Whether a read may have met it.
    pub fn hits_reads(&self) -> bool {
        self.hits() > 0 && matches!(self.fault.class(), Class::Look | Class::Open | Class::Read)
    }

    /// Whether whatever is tried again must succeed.
    pub fn is_over(&self) -> bool {
        self.hits() > 0 && !self.fault.is_forever()
    }

    pub fn before(&self) -> Before {
        let (log_writes, renames) = (self.env.calls(Class::LogWrite), self.env.calls(Class::Rename));
        Before { hits: self.hits(), log_writes, renames }
    }

    /// What failed in a step that ended with `outcome` and must have made the handle read-only: the log, or the manifest. C5 of durability.md:
    /// "After the first failed write or sync of the log, and the first failed append, sync or switch of the manifest".
    ///
    /// Files of the log are also written and synced when the next one is prepared, which may fail without harm (C8). Each preparation writes a
    /// header with a write of the log, and where that is mapped nothing else does.
    pub fn must_refuse(&self, before: Before, step: &Step, outcome: &esker::Result<()>) -> Option<&'static str> {
        if self.hits() == before.hits {
            return None;
        }
        let now = self.before();
        let prepared = now.log_writes > before.log_writes;
        match (self.fault.class(), self.fault.names()) {
            (Class::LogStore, _) => Some("a write of the log"),
            (Class::Append | Class::Sync, Some("MANIFEST")) => Some("the manifest"),
            (Class::Sync, Some(".wal")) if !prepared => Some("a sync of the log"),
            // Nothing but the file that names the manifest is renamed.
            (Class::Rename, _) => Some("the switch of the manifest"),
            // Names of tables and of prepared log files are synced too; neither is made where nothing but a keyspace is created.
            (Class::SyncDir, _) if matches!(step, Step::Create(_)) && !prepared && now.renames > before.renames => {
                Some("the sync of the switch")
            }
            (Class::Sync | Class::LogWrite, _) if *step == Step::Sync && outcome.is_err() => Some("Db::sync"),
            _ => None,
        }
    }
}
