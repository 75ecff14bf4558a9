//! Replicas apply the same entries to the same state: time, sessions, and what notices a replica
//! that does not.

use super::history::{hash, key_value, options, payload};
use super::world::{apply, entry, put, small};
use crate::{Apply, Context, Error, KeyValue, KeyValueAnswer, Operation, Rejection, Reply, Request, StateMachine};
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::MemEnv;
use esker::{CompactionFilter, CompactionStyle, Db, Decision, Keyspace, KeyspaceOptions, Ttl};
use std::collections::BTreeMap;
use std::sync::Arc;

fn open<A: Apply>(env: &MemEnv, apply: A) -> StateMachine<A> {
    try_open(env, apply).unwrap()
}

fn try_open<A: Apply>(env: &MemEnv, apply: A) -> crate::Result<StateMachine<A>> {
    StateMachine::open("state", apply, options(Arc::new(env.clone()), small()))
}

fn done(values: Vec<Option<Vec<u8>>>) -> Reply {
    Reply::Applied(postcard::to_stdvec(&KeyValueAnswer::Done(values)).unwrap())
}

fn get(keyspace: &str, key: &str) -> Operation {
    Operation::Get { keyspace: keyspace.into(), key: key.into() }
}

fn add(amount: u64) -> Operation {
    Operation::Merge { keyspace: "sums".into(), key: b"sum".into(), operand: amount.to_le_bytes().into() }
}

fn sum(amount: u64) -> Reply {
    done(vec![Some(amount.to_le_bytes().into())])
}

#[test]
fn what_expires_is_decided_by_the_time_of_entries_alone() {
    let env = MemEnv::new();
    let machine = open(&env, key_value());
    let lease = |ttl_ms| apply(vec![put("leases", "a", "mine", Some(ttl_ms))]);
    machine.apply(&entry(1, 1, 1_000, lease(500))).unwrap();
    // The entry's time, not the sum of what passed.
    assert_eq!(
        machine.apply(&entry(1, 2, 1_499, apply(vec![get("leases", "a")]))).unwrap(),
        done(vec![Some(b"mine".into())])
    );
    // No clock of this replica makes it go.
    let machine = {
        drop(machine);
        open(&env, key_value())
    };
    let leases = |machine: &StateMachine<KeyValue>| machine.database().keyspaces()["leases"].get("a").unwrap();
    assert!(leases(&machine).is_some());
    assert_eq!(machine.apply(&entry(1, 3, 1_500, apply(vec![get("leases", "a")]))).unwrap(), done(vec![None]));
    assert!(leases(&machine).is_none());
    // A leader with a slower clock does not bring it back.
    assert_eq!(machine.apply(&entry(2, 4, 1_200, apply(vec![get("leases", "a")]))).unwrap(), done(vec![None]));
    assert_eq!(machine.database().time_ms(), 1_500);
    // Its leases run from the time that holds.
    machine.apply(&entry(2, 5, 1_200, lease(100))).unwrap();
    assert_eq!(
        machine.apply(&entry(2, 6, 1_599, apply(vec![get("leases", "a")]))).unwrap(),
        done(vec![Some(b"mine".into())])
    );
    assert_eq!(machine.apply(&entry(2, 7, 1_600, apply(vec![get("leases", "a")]))).unwrap(), done(vec![None]));
}

#[test]
fn a_repeated_request_of_a_session_is_applied_once() {
    let env = MemEnv::new();
    let machine = open(&env, key_value());
    assert_eq!(machine.apply(&entry(1, 1, 0, Request::OpenSession)).unwrap(), Reply::SessionOpened(1));
    let once = |number, amount| {
        let payload = payload(vec![add(amount), get("sums", "sum")]);
        Request::ApplyOnce { session: 1, number, payload }
    };
    assert_eq!(machine.apply(&entry(1, 2, 0, once(1, 5))).unwrap(), sum(5));
    assert_eq!(machine.apply(&entry(1, 3, 0, once(1, 5))).unwrap(), sum(5));
    let machine = {
        drop(machine);
        open(&env, key_value())
    };
    assert_eq!(machine.apply(&entry(1, 4, 0, once(1, 5))).unwrap(), sum(5));
    assert_eq!(machine.apply(&entry(1, 5, 0, once(2, 3))).unwrap(), sum(8));
    assert_eq!(machine.apply(&entry(1, 6, 0, once(1, 5))).unwrap(), Reply::Superseded { newest: 2 });
    // A refusal is an answer, too, and kept.
    let refused =
        Request::ApplyOnce { session: 1, number: 3, payload: payload(vec![add(1), put("none", "a", "", None)]) };
    let reply = machine.apply(&entry(1, 7, 0, refused.clone())).unwrap();
    assert!(matches!(&reply, Reply::Rejected(why) if why.contains("none")), "{reply:?}");
    assert_eq!(machine.apply(&entry(1, 8, 0, refused)).unwrap(), reply);
    assert_eq!(machine.apply(&entry(1, 9, 0, apply(vec![get("sums", "sum")]))).unwrap(), sum(8));
    // Number 0 is that of the opening.
    assert_eq!(machine.apply(&entry(1, 10, 0, Request::OpenSession)).unwrap(), Reply::SessionOpened(10));
    let zero = Request::ApplyOnce { session: 10, number: 0, payload: payload(vec![add(1)]) };
    assert_eq!(machine.apply(&entry(1, 11, 0, zero)).unwrap(), Reply::SessionOpened(10));
    let unknown = Request::ApplyOnce { session: 2, number: 1, payload: payload(vec![add(1)]) };
    assert_eq!(machine.apply(&entry(1, 12, 0, unknown)).unwrap(), Reply::UnknownSession);
    // A session without a new request for an hour is forgotten, by the time of entries. A repeat
    // renews nothing.
    assert_eq!(
        machine.apply(&entry(1, 14, 3_599_999, once(4, 1))).unwrap(),
        done(vec![Some(9u64.to_le_bytes().into())])
    );
    assert_eq!(
        machine.apply(&entry(1, 15, 7_199_998, once(4, 1))).unwrap(),
        done(vec![Some(9u64.to_le_bytes().into())])
    );
    assert_eq!(machine.apply(&entry(1, 16, 7_199_999, once(5, 1))).unwrap(), Reply::UnknownSession);
    assert_eq!(machine.apply(&entry(1, 17, 0, apply(vec![get("sums", "sum")]))).unwrap(), sum(9));
}

/// Applies the request on replicas that have the same state; the reply of all.
fn on_both(replicas: &[StateMachine<KeyValue>; 2], (index, time_ms): (u64, u64), request: Request) -> Reply {
    let replies = replicas.each_ref().map(|replica| replica.apply(&entry(1, index, time_ms, request.clone())).unwrap());
    assert_eq!(replies[0], replies[1], "entry {index}");
    assert_eq!(hash(&replicas[0].database()), hash(&replicas[1].database()), "entry {index}");
    replies[0].clone()
}

#[test]
fn a_session_too_many_ends_those_that_were_not_used_for_longest() {
    let disks = [MemEnv::new(), MemEnv::new()];
    let open = |disk: &MemEnv, database| {
        let options = options(Arc::new(disk.clone()), database).sessions_at_most(16);
        StateMachine::open("state", key_value(), options).unwrap()
    };
    let replicas = [open(&disks[0], small()), open(&disks[1], esker::Options::default())];
    let once = |session, number| Request::ApplyOnce { session, number, payload: payload(vec![add(1)]) };
    let applied = done(Vec::new());
    for session in 1..=16 {
        let opened = on_both(&replicas, (session, session), Request::OpenSession);
        assert_eq!(opened, Reply::SessionOpened(session));
    }
    // The first one is used last.
    for index in 17..=32 {
        assert_eq!(on_both(&replicas, (index, index), once(33 - index, 1)), applied);
    }
    // How many there are is part of the state.
    let [first, second] = replicas;
    drop(first);
    let replicas = [open(&disks[0], small()), second];
    assert_eq!(on_both(&replicas, (33, 33), Request::OpenSession), Reply::SessionOpened(33));
    // Two have ended, those that were used first, and are not applied again.
    for (index, session) in [(34, 16), (35, 15)] {
        assert_eq!(on_both(&replicas, (index, 34), once(session, 1)), Reply::UnknownSession);
    }
    for (index, session, number) in [(36, 14, 1), (37, 13, 2), (38, 33, 1)] {
        assert_eq!(on_both(&replicas, (index, 38), once(session, number)), applied, "{session}");
    }
    // There is room for one more; the next one takes that of 14, whose request was a repeat, and of
    // 12.
    for index in [39, 40] {
        assert_eq!(on_both(&replicas, (index, 40), Request::OpenSession), Reply::SessionOpened(index));
    }
    for (index, session, expected) in [(41, 14, &Reply::UnknownSession), (42, 12, &Reply::UnknownSession)] {
        assert_eq!(on_both(&replicas, (index, 42), once(session, 2)), *expected, "{session}");
    }
    for (index, session) in (43..).zip([13, 11, 10, 1, 33, 39, 40]) {
        assert_eq!(on_both(&replicas, (index, 43), once(session, 3)), applied, "{session}");
    }
    // What has expired leaves room: nobody is ended for the next ones.
    let later = 43 + 3_600_000;
    for index in 50..66 {
        assert_eq!(on_both(&replicas, (index, later), Request::OpenSession), Reply::SessionOpened(index));
    }
    for index in 66..82 {
        assert_eq!(on_both(&replicas, (index, later), once(index - 16, 1)), applied, "{index}");
    }
}

#[test]
fn an_entry_is_not_applied_again() {
    let machine = open(&MemEnv::new(), key_value());
    machine.apply(&entry(1, 1, 0, apply(vec![add(1)]))).unwrap();
    assert!(matches!(machine.apply(&entry(1, 1, 0, apply(vec![add(1)]))), Err(Error::InvalidArgument { .. })));
    // It does not know what happened, and stops.
    assert!(matches!(machine.apply(&entry(1, 2, 0, apply(vec![add(1)]))), Err(Error::Stopped { .. })));
}

/// The built-in commands, with a fault.
struct Faulty {
    inner: KeyValue,
    /// Every payload is applied twice.
    twice: bool,
    /// What a clock of this replica shows, instead of the time of the entry.
    local_clock_ms: Option<u64>,
}

impl Apply for Faulty {
    type Keyspaces = BTreeMap<String, Keyspace>;

    fn open(&self, db: &Db) -> esker::Result<Self::Keyspaces> {
        self.inner.open(db)
    }

    fn apply(&self, context: &mut Context<'_, Self::Keyspaces>, payload: &[u8]) -> Result<Vec<u8>, Rejection> {
        context.time_ms = self.local_clock_ms.unwrap_or(context.time_ms);
        if self.twice {
            self.inner.apply(context, payload)?;
        }
        self.inner.apply(context, payload)
    }
}

/// Compares a replica with a fault with one without, after some entries; what it says.
fn compare(twice: bool, local_clock_ms: Option<u64>) -> crate::Result<Reply> {
    let good = open(&MemEnv::new(), key_value());
    let disk = MemEnv::new();
    let faulty = || Faulty { inner: key_value(), twice, local_clock_ms };
    let bad = open(&disk, faulty());
    let entries = [
        apply(vec![put("names", "a", "1", None), put("names", "b", "2", None)]),
        apply(vec![add(1)]),
        apply(vec![put("leases", "a", "mine", Some(1_000))]),
        Request::OpenSession,
        Request::Hash,
    ];
    for (index, request) in entries.into_iter().enumerate() {
        let entry = entry(1, index as u64, 10_000, request);
        good.apply(&entry)?;
        bad.apply(&entry)?;
    }
    let hashes = good.hashes(4)?.unwrap();
    assert_eq!(hashes, hash(&good.database()));
    // What is written after the mark is not compared.
    let later = entry(1, 5, 10_000, apply(vec![put("names", "c", "3", None)]));
    good.apply(&later)?;
    bad.apply(&later)?;
    let compared = entry(1, 6, 10_000, Request::Compare { index: 4, hashes });
    good.apply(&compared)?;
    let reply = bad.apply(&compared);
    if reply.is_err() {
        // It stays stopped, and passes nothing on.
        assert!(matches!(bad.apply(&entry(1, 7, 10_000, Request::Hash)), Err(Error::Stopped { .. })));
        assert!(matches!(bad.build(), Err(Error::Stopped { .. })));
        assert!(matches!(bad.install(&good.build()?), Err(Error::Stopped { .. })));
        drop(bad);
        assert!(matches!(try_open(&disk, faulty()).err(), Some(Error::Stopped { .. })));
    }
    reply
}

#[test]
fn a_comparison_of_equal_states_says_nothing() {
    assert_eq!(compare(false, None).unwrap(), Reply::None);
}

#[test]
fn a_replica_that_applies_twice_is_stopped() {
    let Err(Error::Diverged(difference)) = compare(true, None) else { panic!("it was not noticed") };
    assert_eq!(difference.here.as_ref().unwrap().keyspace, "sums");
    assert!(difference.to_string().contains("after entry 4"), "{difference}");
}

#[test]
fn a_replica_with_a_clock_of_its_own_is_stopped() {
    let Err(Error::Diverged(difference)) = compare(false, Some(10_001)) else { panic!("it was not noticed") };
    assert_eq!(difference.here.as_ref().unwrap().keyspace, "leases");
}

#[test]
fn a_replica_that_is_stopped_while_it_builds_passes_nothing_on() {
    let disk = FaultEnv::new(Arc::new(MemEnv::new()));
    let machine = StateMachine::open("state", key_value(), options(Arc::new(disk.clone()), small())).unwrap();
    machine.apply(&entry(1, 1, 0, apply(vec![put("names", "a", "1", None)]))).unwrap();
    machine.apply(&entry(1, 2, 0, Request::Hash)).unwrap();
    // The second sync of its directory comes when the checkpoint is there.
    let hangs = Action::Delay(std::time::Duration::from_secs(3600));
    disk.add(Rule::new(Class::SyncDir, 1, hangs).on_names_with("slot-1"));
    std::thread::scope(|scope| {
        let building = scope.spawn(|| machine.build());
        while disk.fired() == 0 && !building.is_finished() {
            std::thread::yield_now();
        }
        assert_eq!(disk.fired(), 1);
        let compared = machine.apply(&entry(1, 3, 0, Request::Compare { index: 2, hashes: Vec::new() }));
        disk.clear();
        assert!(matches!(compared, Err(Error::Diverged(_))), "{compared:?}");
        let built = building.join().unwrap();
        assert!(matches!(built, Err(Error::Stopped { .. })), "{built:?}");
    });
    assert!(machine.snapshot().is_none());
}

#[test]
fn a_comparison_with_a_state_that_was_not_hashed_here_says_nothing() {
    let machine = open(&MemEnv::new(), key_value());
    let compared = entry(1, 6, 0, Request::Compare { index: 4, hashes: Vec::new() });
    assert_eq!(machine.apply(&compared).unwrap(), Reply::None);
    assert_eq!(machine.hashes(4).unwrap(), None);
}

#[test]
fn what_the_engine_refuses_at_the_commit_is_refused_and_stops_nothing() {
    let machine = open(&MemEnv::new(), key_value());
    machine.apply(&entry(1, 1, 0, Request::OpenSession)).unwrap();
    let request = Request::ApplyOnce { session: 1, number: 1, payload: payload(vec![put("names", "b", "", None)]) };
    // It takes a batch of 4 GiB; the commit acts as if this were one.
    crate::planted::refuse_next_commit();
    let reply = machine.apply(&entry(1, 2, 0, request.clone())).unwrap();
    let Reply::Rejected(why) = &reply else { panic!("{reply:?}") };
    assert!(why.contains("4 GiB"), "{why}");
    assert_eq!(machine.apply(&entry(1, 3, 0, request)).unwrap(), reply);
    let names = apply(vec![get("names", "b")]);
    assert_eq!(machine.apply(&entry(1, 4, 0, names)).unwrap(), done(vec![None]));
}

#[test]
fn operands_that_cannot_be_combined_are_a_refusal_of_what_reads_them() {
    let sums = || put("sums", "sum", "no number", None);
    let machine = open(&MemEnv::new(), key_value());
    machine.apply(&entry(1, 1, 0, apply(vec![sums(), add(1)]))).unwrap();
    let reply = machine.apply(&entry(1, 2, 0, apply(vec![put("names", "b", "", None), get("sums", "sum")]))).unwrap();
    assert!(matches!(&reply, Reply::Rejected(why) if why.contains("uint64add")), "{reply:?}");
    let names = apply(vec![get("names", "b")]);
    assert_eq!(machine.apply(&entry(1, 3, 0, names)).unwrap(), done(vec![None]));
}

#[test]
fn a_reply_that_its_session_cannot_keep_is_refused_and_stops_nothing() {
    let env = MemEnv::new();
    let open = || {
        let options = options(Arc::new(env.clone()), small()).most_session_bytes(200);
        StateMachine::open("state", Wordy(key_value()), options).unwrap()
    };
    let machine = open();
    machine.apply(&entry(1, 1, 0, Request::OpenSession)).unwrap();
    machine.apply(&entry(1, 2, 0, apply(vec![put("names", "long", vec![b'x'; 300], None)]))).unwrap();
    let once = |number, operations| Request::ApplyOnce { session: 1, number, payload: payload(operations) };
    let is_too_long = |reply: &Reply| matches!(reply, Reply::Rejected(why) if why.contains("at most 200 bytes"));
    let long = once(1, vec![put("names", "b", "", None), get("names", "long")]);
    let reply = machine.apply(&entry(1, 3, 0, long.clone())).unwrap();
    assert!(is_too_long(&reply), "{reply:?}");
    assert_eq!(machine.apply(&entry(1, 4, 0, long.clone())).unwrap(), reply);
    // A reason may be too long, too: that of the payload, and that of a commit.
    let refused = Request::ApplyOnce { session: 1, number: 2, payload: vec![b'w'; 300] };
    let reason = machine.apply(&entry(1, 5, 0, refused)).unwrap();
    assert!(is_too_long(&reason), "{reason:?}");
    crate::planted::refuse_next_commit_because("w".repeat(300));
    let reason = machine.apply(&entry(1, 6, 0, once(3, vec![put("names", "b", "", None)]))).unwrap();
    assert!(is_too_long(&reason), "{reason:?}");
    // What was refused wrote nothing, and the next request is applied; also after another open.
    drop(machine);
    let machine = open();
    assert_eq!(machine.apply(&entry(1, 7, 0, once(4, vec![get("names", "b")]))).unwrap(), done(vec![None]));
    // Without a session nothing has to be kept.
    let reply = machine.apply(&entry(1, 8, 0, apply(vec![get("names", "long")]))).unwrap();
    assert_eq!(reply, done(vec![Some(vec![b'x'; 300])]));
}

/// A filter that keeps everything.
struct KeepAll;

impl CompactionFilter for KeepAll {
    fn name(&self) -> &str {
        "keep-all"
    }

    fn decide(&self, _key: &[u8], _value: &[u8]) -> Decision {
        Decision::Keep
    }
}

#[test]
fn what_drops_values_at_another_moment_on_each_replica_is_refused() {
    let default = KeyspaceOptions::default;
    let refused =
        |env: &MemEnv, options: KeyspaceOptions| match try_open(env, KeyValue::new().keyspace("names", options)) {
            Ok(_) => false,
            Err(Error::Database(esker::Error::InvalidArgument { what })) => {
                assert!(what.contains("names") && what.contains("Fifo"), "{what}");
                true
            }
            Err(error) => panic!("{error}"),
        };
    let env = MemEnv::new();
    for style in [CompactionStyle::LazyLeveling, CompactionStyle::Leveled, CompactionStyle::Tiered] {
        assert!(!refused(&env, default().compaction_style(style)), "{style:?}");
    }
    let everything = default().merge_operator(esker::merge::UInt64Add).ttl(Ttl::Enabled { default: None });
    assert!(!refused(&MemEnv::new(), everything.clone()));
    assert!(refused(&MemEnv::new(), everything.compaction_filter(KeepAll)));
    let fifo = default().compaction_style(CompactionStyle::Fifo { max_bytes: 1 });
    assert!(refused(&env, default().compaction_filter(KeepAll)) && refused(&env, fifo.clone()));
    // It was refused before it was stored.
    assert!(!refused(&env, default()));
    // One that is stored already.
    let stored = MemEnv::new();
    let db = Db::open("state/slot-0", small().env(Arc::new(stored.clone()))).unwrap();
    drop((db.keyspace("names", fifo).unwrap(), db));
    assert!(refused(&stored_state(&stored), default()));
}

#[test]
fn a_keyspace_of_the_state_machine_is_not_one_of_commands() {
    for name in ["raft.state", "raft.sessions", "raft.anything"] {
        let opened = try_open(&MemEnv::new(), KeyValue::new().keyspace(name, KeyspaceOptions::default()));
        let error = opened.err().expect("it opens");
        assert!(matches!(error, Error::Database(esker::Error::InvalidArgument { .. })), "{name}: {error}");
    }
}

/// A state machine whose database is the one in the first slot of that disk.
fn stored_state(disk: &MemEnv) -> MemEnv {
    let other = MemEnv::new();
    drop(open(&other, KeyValue::new()));
    let state = other.file_bytes(std::path::Path::new("state/STATE")).unwrap();
    disk.set_file_bytes(std::path::Path::new("state/STATE"), state);
    disk.clone()
}

/// The built-in commands, which refuse payloads of `w` with these as the reason.
struct Wordy(KeyValue);

impl Apply for Wordy {
    type Keyspaces = BTreeMap<String, Keyspace>;

    fn open(&self, db: &Db) -> esker::Result<Self::Keyspaces> {
        self.0.open(db)
    }

    fn apply(&self, context: &mut Context<'_, Self::Keyspaces>, payload: &[u8]) -> Result<Vec<u8>, Rejection> {
        if payload.starts_with(b"ww") {
            return Err(Rejection::Refused(String::from_utf8_lossy(payload).into_owned()));
        }
        self.0.apply(context, payload)
    }
}
