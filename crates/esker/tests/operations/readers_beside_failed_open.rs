//! Readers beside an open for writing that fails at any call, or whose process dies there: what
//! they are told is right, and none of it is taken for damage.

use crate::calling_env::Telling;
use crate::changes::keeping;
use crate::common::{DIRECTORY, keyspace};
use esker::env::Env;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::MemEnv;
use esker::{ChangeBatch, Db, Follower, Options, Slice};
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};

const FAIL: Action = Action::Fail(ErrorKind::Other);

/// A dozen writes fill two segments of the log.
fn options(env: &MemEnv) -> Options {
    keeping(env).wal_segment_bytes(1 << 10)
}

type End = (&'static str, fn(&MemEnv));

/// What the process before has left, by how its log ends.
const ENDS: [End; 5] = [
    ("not closed", not_closed),
    ("closed", closed),
    ("with a segment without a record", with_an_empty_segment),
    ("closed, and a segment without a record", closed_before_an_empty_segment),
    ("without any record", without_any_record),
];

fn written(env: &MemEnv) -> Db {
    let db = Db::open(DIRECTORY, options(env)).unwrap();
    let k = keyspace(&db, "k");
    k.put("large", [7; 200]).unwrap();
    (0..20u8).for_each(|number| k.put([number], [number; 90]).unwrap());
    db
}

fn not_closed(env: &MemEnv) {
    drop(written(env));
}

fn closed(env: &MemEnv) {
    written(env).close().unwrap();
}

fn with_an_empty_segment(env: &MemEnv) {
    not_closed(env);
    load(env);
}

fn closed_before_an_empty_segment(env: &MemEnv) {
    closed(env);
    load(env);
}

fn load(env: &MemEnv) {
    let db = Db::open(DIRECTORY, options(env)).unwrap();
    keyspace(&db, "k").ingest([("loaded", "1")]).unwrap();
}

fn without_any_record(env: &MemEnv) {
    let db = Db::open(DIRECTORY, options(env)).unwrap();
    keyspace(&db, "k").ingest([("a", "1")]).unwrap();
    keyspace(&db, "dropped");
    db.drop_keyspace("dropped").unwrap();
}

/// What a database holds and tells.
#[derive(PartialEq)]
struct Answers {
    pairs: Vec<(Slice, Slice)>,
    last_value: Option<Vec<u8>>,
    changes: Vec<ChangeBatch>,
    /// Those from the last one on.
    last_changes: Vec<ChangeBatch>,
}

fn ask(db: &Db) -> esker::Result<Answers> {
    let k = db.existing_keyspace("k")?;
    let pairs = k.iter().collect::<esker::Result<Vec<_>>>()?;
    let last_value = match pairs.last() {
        Some((key, _)) => k.get(key)?.map(|value| value.to_vec()),
        None => None,
    };
    let changes = db.changes(0)?.collect::<esker::Result<Vec<_>>>()?;
    let last = changes.last().map_or(0, |batch| batch.changes[0].sequence);
    let last_changes = db.changes(last)?.collect::<esker::Result<Vec<_>>>()?;
    Ok(Answers { pairs, last_value, changes, last_changes })
}

fn catch_up_and_ask(follower: &Follower) -> esker::Result<Answers> {
    follower.catch_up()?;
    ask(follower.db())
}

/// What is wrong with the answers.
fn difference(who: &str, answers: esker::Result<Answers>, right: &Answers) -> Option<String> {
    match answers {
        Ok(answers) if answers == *right => None,
        Ok(Answers { pairs, changes, last_changes, .. }) => {
            let counts = (pairs.len(), changes.len(), last_changes.len());
            Some(format!("{who}: pairs, changes and last changes: {counts:?}"))
        }
        Err(error) => Some(format!("{who}: {error}")),
    }
}

/// A handle that was opened before an open, or in the middle of it.
enum Standing {
    Reader(Db),
    /// It catches up again and again.
    Follower(Follower),
    /// It does so only at the end.
    LateFollower(Follower),
}

impl Standing {
    fn open(number: usize, env: &MemEnv) -> esker::Result<Standing> {
        Ok(match number % 3 {
            0 => Standing::Reader(Db::open_read_only(DIRECTORY, options(env))?),
            1 => Standing::Follower(Db::open_follower(DIRECTORY, options(env))?),
            _ => Standing::LateFollower(Db::open_follower(DIRECTORY, options(env))?),
        })
    }

    fn ask(&self) -> esker::Result<Answers> {
        match self {
            Standing::Reader(db) => ask(db),
            Standing::Follower(follower) => catch_up_and_ask(follower),
            Standing::LateFollower(follower) => ask(follower.db()),
        }
    }
}

/// All handles beside an open, and what was wrong.
struct Beside {
    env: MemEnv,
    right: Answers,
    standing: Vec<Standing>,
    wrong: Vec<String>,
}

impl Beside {
    fn new(env: &MemEnv) -> Beside {
        let right = ask(&Db::open_read_only(DIRECTORY, options(env)).unwrap()).unwrap();
        let mut beside = Beside { env: env.clone(), right, standing: Vec::new(), wrong: Vec::new() };
        (0..3).for_each(|_| beside.look("the open"));
        beside
    }

    /// Opens one more handle, and has followers catch up.
    fn look(&mut self, before: &str) {
        for standing in &self.standing {
            if let Standing::Follower(follower) = standing
                && let Err(error) = follower.catch_up()
            {
                self.wrong.push(format!("catching up before {before}: {error}"));
            }
        }
        match Standing::open(self.standing.len(), &self.env) {
            Ok(opened) => self.standing.push(opened),
            Err(error) => self.wrong.push(format!("opening before {before}: {error}")),
        }
    }

    /// Asks those that were opened so far, and three new ones.
    fn ask_all(&mut self, when: &str) {
        (0..3).for_each(|_| self.look(when));
        for (number, standing) in self.standing.iter().enumerate() {
            let who = format!("handle {number} {when}");
            self.wrong.extend(difference(&who, standing.ask(), &self.right));
        }
    }

    /// The next open succeeds, and its process writes. Followers have that.
    fn end(&mut self) {
        let db = Db::open(DIRECTORY, options(&self.env)).unwrap();
        keyspace(&db, "k").put("new", "1").unwrap();
        let now = ask(&db).unwrap();
        assert!(now.changes.starts_with(&self.right.changes) && now.changes.len() == self.right.changes.len() + 1);
        for (number, standing) in self.standing.iter().enumerate() {
            let (answers, right) = match standing {
                Standing::Reader(db) => (ask(db), &self.right),
                Standing::Follower(follower) | Standing::LateFollower(follower) => (catch_up_and_ask(follower), &now),
            };
            self.wrong.extend(difference(&format!("handle {number} at the end"), answers, right));
        }
    }
}

/// Before these calls of an open there may be something new to see.
const LOOKED_BEFORE: [&str; 6] =
    ["Env::open_log", "LogFile::sync_range", "Env::create", "Env::rename", "Env::sync_dir", "Env::remove"];

/// Has an open fail at its call `nth` of those that change something, and with `dies` at all behind
/// that. Whether there is such a call, and what was wrong.
fn fail_at(nth: u64, action: Action, dies: bool, base: &MemEnv) -> (bool, Vec<String>) {
    let env = base.kill();
    let beside = Arc::new(Mutex::new(Beside::new(&env)));
    let faulty = FaultEnv::new(Arc::new(env.clone()));
    let rule = Rule::new(Class::AnyMutating, nth, action);
    faulty.add(if dies { rule.from_then_on() } else { rule });
    let (looking, called): (_, Arc<dyn Env>) = (Arc::clone(&beside), Arc::new(faulty.clone()));
    let told = move |call: &'static str| {
        if LOOKED_BEFORE.contains(&call) {
            looking.lock().unwrap().look(call);
        }
    };
    let telling = Telling { told: Arc::new(told), called };
    drop(Db::open(DIRECTORY, options(&env).env(Arc::new(telling))));
    let mut beside = beside.lock().unwrap();
    beside.ask_all("behind it");
    if dies {
        die_with_a_new_segment(&env);
        beside.ask_all("behind another death");
    }
    beside.end();
    (faulty.fired() > 0, std::mem::take(&mut beside.wrong))
}

/// An open whose process dies when it has begun the log anew, before a manifest says so.
fn die_with_a_new_segment(env: &MemEnv) {
    let faulty = FaultEnv::new(Arc::new(env.clone()));
    faulty.add(Rule::new(Class::Create, 0, FAIL).on_names_with("MANIFEST").from_then_on());
    faulty.add(Rule::new(Class::Remove, 0, FAIL).from_then_on());
    assert!(Db::open(DIRECTORY, options(env).env(Arc::new(faulty))).is_err());
}

/// Seen: `Corruption` from a reader of changes on a handle that was opened while an open failed
/// behind the begin of its log segment, which it took away again; the same where the log had no
/// record and the process of the open died there; a follower that had caught up while an open
/// failed missed what the next one wrote, whose segment had the same number. Cost: false alarms,
/// and readers of the past.
#[test]
fn an_open_that_fails_or_dies_at_any_call_is_no_damage_for_readers() {
    for (end, leave) in ENDS {
        let base = MemEnv::new();
        leave(&base);
        for (action, dies) in [(FAIL, false), (Action::FailAfter(ErrorKind::Other), false), (FAIL, true)] {
            for nth in 0.. {
                let (has_failed, wrong) = fail_at(nth, action, dies, &base);
                assert!(wrong.is_empty(), "a log {end}, {action:?} at call {nth}, dies: {dies}: {wrong:#?}");
                if !has_failed {
                    assert!(nth > 12, "{end}: {nth} calls");
                    break;
                }
            }
        }
    }
}

/// Has another process open the database before call `nth` of handles that read everything. Whether
/// there is such a call.
fn is_right_beside_an_open(nth: u64, fails: bool, base: &MemEnv, note: &str) -> bool {
    let env = base.kill();
    let left = Arc::new(Mutex::new(None::<u64>));
    let (counted, machine, called): (_, _, Arc<dyn Env>) = (Arc::clone(&left), env.clone(), Arc::new(env.clone()));
    let told = move |call: &'static str| {
        if call.starts_with("Env::") {
            let before = {
                let mut left = counted.lock().unwrap();
                let before = *left;
                *left = before.and_then(|left| left.checked_sub(1));
                before
            };
            if before == Some(0) {
                open_beside(&machine, fails);
            }
        }
    };
    let telling = Arc::new(Telling { told: Arc::new(told), called });
    let reader = Db::open_read_only(DIRECTORY, options(&env).env(telling.clone())).unwrap();
    let follower = Db::open_follower(DIRECTORY, options(&env).env(telling)).unwrap();
    let right = ask(&reader).unwrap();
    *left.lock().unwrap() = Some(nth);
    let answers = [("reader", ask(&reader)), ("follower", catch_up_and_ask(&follower))];
    let has_come = left.lock().unwrap().take().is_none();
    for (who, answers) in answers {
        // It may give up on files that change under it, and say so.
        let gives_up = answers.as_ref().is_err_and(|error| error.is_retryable());
        let wrong = difference(who, answers, &right).filter(|_| !gives_up);
        assert!(wrong.is_none(), "{note} before call {nth}: {wrong:?}");
    }
    let wrong = difference("follower", catch_up_and_ask(&follower), &right);
    assert!(wrong.is_none(), "{note} before call {nth}, later: {wrong:?}");
    has_come
}

fn open_beside(env: &MemEnv, fails: bool) {
    let faulty = FaultEnv::new(Arc::new(env.clone()));
    if fails {
        faulty.add(Rule::new(Class::Create, 0, FAIL).on_names_with("MANIFEST").from_then_on());
    }
    let opened = Db::open(DIRECTORY, options(env).env(Arc::new(faulty)));
    assert_eq!(opened.is_err(), fails);
}

/// Trap: a reader lists the directory, and then an open replaces the last segment, which is empty.
#[test]
fn an_open_between_two_calls_of_a_reader_is_no_damage() {
    for (end, leave) in ENDS {
        let base = MemEnv::new();
        leave(&base);
        for fails in [false, true] {
            let note = format!("a log {end}, an open that fails: {fails}");
            let mut calls = 0;
            while is_right_beside_an_open(calls, fails, &base, &note) {
                calls += 1;
            }
            assert!(calls > 20, "{note}: {calls} calls");
        }
    }
}

/// Trap: a record that only vouches for the edit before counts as a change of the manifest, and who
/// reads a database meanwhile begins again.
#[test]
fn a_record_that_vouches_for_an_edit_spoils_no_open_for_reading() {
    let env = MemEnv::new();
    let (ends, watched): (Arc<Mutex<Vec<usize>>>, MemEnv) = (Arc::default(), env.clone());
    let noted = Arc::clone(&ends);
    let told = move |call: &'static str| {
        if call == "WriteFile::append" {
            noted.lock().unwrap().extend(manifest_of(&watched).map(|(_, bytes)| bytes.len()));
        }
    };
    let telling = |env: &MemEnv, told: crate::calling_env::Told| {
        options(env).env(Arc::new(Telling { told, called: Arc::new(env.clone()) as Arc<dyn Env> }))
    };
    let db = Db::open(DIRECTORY, telling(&env, Arc::new(told))).unwrap();
    keyspace(&db, "k").put("a", "1").unwrap();
    db.flush().unwrap();
    let (path, whole) = manifest_of(&env).unwrap();
    // Before the last append, the edit had no record behind it.
    let end = *ends.lock().unwrap().last().unwrap();
    assert!(end < whole.len());
    // How many calls an open makes, before one of which the last record comes.
    let calls = |coming: usize| {
        let (read, count) = (env.kill(), Arc::new(Mutex::new(0)));
        read.set_file_bytes(&path, whole[..end].to_vec());
        let (counted, changed, path, whole) = (Arc::clone(&count), read.clone(), path.clone(), whole.clone());
        let told = move |_: &'static str| {
            let mut count = counted.lock().unwrap();
            if *count == coming {
                changed.set_file_bytes(&path, whole.clone());
            }
            *count += 1;
        };
        let db = Db::open_read_only(DIRECTORY, telling(&read, Arc::new(told))).unwrap();
        assert_eq!(keyspace(&db, "k").get("a").unwrap().as_deref(), Some(&b"1"[..]));
        *count.lock().unwrap()
    };
    let undisturbed = calls(usize::MAX);
    for coming in 0..undisturbed {
        assert_eq!(calls(coming), undisturbed, "before call {coming}");
    }
}

/// The newest manifest.
fn manifest_of(env: &MemEnv) -> Option<(std::path::PathBuf, Vec<u8>)> {
    let is_manifest = |path: &std::path::PathBuf| path.to_string_lossy().contains("MANIFEST");
    let path = env.files().into_iter().filter(is_manifest).max()?;
    let bytes = env.file_bytes(&path)?;
    Some((path, bytes))
}
