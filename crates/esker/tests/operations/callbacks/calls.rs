//! Every call of the handles. A name begins with the type and the function.

use super::hook::{Call, Own};
use crate::common::{DIRECTORY, Machine, keyspace};
use esker::{
    Changes, CheckpointMode, Cursor, Db, Error, Keyspace, KeyspaceOptions, Result, Snapshot, Transaction, Watch,
    WriteOptions,
};
use std::time::{Duration, UNIX_EPOCH};

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// In any callback.
    Works,
    /// `InCallback`, in any but a listener.
    Refused,
    /// `Locked`, in any callback.
    Locked,
    /// In any callback but a comparator, where it is `InCallback`: a scan begins.
    Scans,
}

use Outcome::{Locked, Refused, Scans, Works};

/// What a call uses that was begun before the callback was called.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Begun {
    Nothing,
    /// Something that sees no moment: nothing is kept for it.
    Handle,
    /// Something that sees the database as it was, so that writes and jobs keep that.
    Reader,
}

#[derive(Clone, Copy)]
pub struct Listed {
    pub name: &'static str,
    pub outcome: Outcome,
    pub begun: Begun,
    /// What is done before the callback is called; the call.
    pub begin: fn(&Db) -> Call,
    /// The call, as it is written.
    pub text: &'static str,
}

macro_rules! call {
    ($name:literal, $outcome:expr, $call:expr) => {
        Listed {
            name: $name,
            outcome: $outcome,
            begun: Begun::Nothing,
            begin: |_| Box::new($call),
            text: stringify!($call),
        }
    };
}

/// A call with what was begun before.
macro_rules! earlier {
    ($begun:expr, $name:literal, $outcome:expr, $begin:expr, $call:expr) => {
        Listed {
            name: $name,
            outcome: $outcome,
            begun: $begun,
            begin: |db| {
                #[allow(unused_mut)]
                let mut begun = $begin(db);
                Box::new(move |own| $call(own, begun))
            },
            text: stringify!($call),
        }
    };
}

/// With a handle that was begun before.
macro_rules! begun {
    ($($parts:tt)*) => { earlier!(Begun::Handle, $($parts)*) };
}

/// With a reader that was begun before.
macro_rules! reads {
    ($($parts:tt)*) => { earlier!(Begun::Reader, $($parts)*) };
}

fn plain(db: &Db) -> Result<Keyspace> {
    db.existing_keyspace("plain")
}

fn expiring(db: &Db) -> Result<Keyspace> {
    db.existing_keyspace("t")
}

fn merging(db: &Db) -> Result<Keyspace> {
    db.existing_keyspace("k")
}

fn synced() -> WriteOptions {
    WriteOptions::new().sync(true)
}

fn later() -> std::time::SystemTime {
    UNIX_EPOCH + Duration::from_secs(4_000_000_000)
}

const HOUR: Duration = Duration::from_secs(3600);

/// Calls that any callback may make.
pub const READS: &[Listed] = &[
    call!("Keyspace::get", Works, |db: &Own| {
        plain(db)?.get("ada").map(|value| assert_eq!(value.as_deref(), Some(&b"1815"[..])))
    }),
    call!("Keyspace::get of what is merged", Works, |db: &Own| merging(db)?.get("apart").map(drop)),
    call!("Keyspace::get of what expires", Works, |db: &Own| expiring(db)?.get("base").map(drop)),
    call!("Keyspace::get_into", Works, |db: &Own| {
        plain(db)?.get_into("ada", &mut Vec::new()).map(|found| assert!(found))
    }),
    call!("Keyspace::expires_at", Works, |db: &Own| expiring(db)?.expires_at("base").map(drop)),
    call!("Keyspace::contains_key", Works, |db: &Own| plain(db)?.contains_key("ada").map(|found| assert!(found))),
    call!("Keyspace::approximate_size", Works, |db: &Own| plain(db)?.approximate_size(..).map(drop)),
    call!("Keyspace::approximate_count", Works, |db: &Own| plain(db)?.approximate_count(..).map(drop)),
    call!("Keyspace::name", Works, |db: &Own| plain(db).map(|k| assert_eq!(&*k.name(), "plain"))),
    call!("Keyspace::runs", Works, |db: &Own| plain(db).map(|k| drop(k.runs()))),
    call!("Keyspace::id", Works, |db: &Own| plain(db).map(|k| assert!(k.id() > 0))),
    call!("Keyspace::ttl", Works, |db: &Own| expiring(db).map(|k| assert!(k.ttl() != esker::Ttl::Disabled))),
    call!("Keyspace::compaction_style", Works, |db: &Own| plain(db)
        .map(|k| assert_eq!(k.compaction_style(), esker::CompactionStyle::LazyLeveling))),
    call!("Keyspace::comparator", Works, |db: &Own| plain(db).map(|k| assert_eq!(k.comparator(), "bytewise"))),
    call!("Keyspace::compare_keys", Works, |db: &Own| plain(db).map(|k| assert!(k.compare_keys("a", "b").is_lt()))),
    call!("Keyspace::merge_operator", Works, |db: &Own| plain(db).map(|k| assert!(k.merge_operator().is_none()))),
    call!("Db::existing_keyspace", Works, |db: &Own| db.existing_keyspace("plain").map(drop)),
    call!("Db::keyspaces", Works, |db: &Own| {
        assert!(db.keyspaces().starts_with(&["k".into()]));
        Ok(())
    }),
    call!("Db::stats", Works, |db: &Own| {
        drop(db.stats());
        Ok(())
    }),
    call!("Db::properties", Works, |db: &Own| {
        drop(db.properties());
        Ok(())
    }),
    call!("Db::property", Works, |db: &Own| {
        drop(db.property("esker.flushes"));
        Ok(())
    }),
    call!("Db::record", Works, |db: &Own| {
        db.record(&mut esker::PrometheusText::new());
        Ok(())
    }),
    call!("Db::health", Works, |db: &Own| {
        drop(db.health());
        Ok(())
    }),
    call!("Db::explain", Works, |db: &Own| {
        drop(db.explain());
        Ok(())
    }),
    call!("Db::path", Works, |db: &Own| {
        assert_eq!(db.path().to_str(), Some(DIRECTORY));
        Ok(())
    }),
    call!("Db::verify", Works, |db: &Own| db.verify().map(drop)),
    call!("Db::verify_with", Works, |db: &Own| db.verify_with(&mut |_| {}).map(drop)),
    call!("Db::verify_directory of its own directory", Works, |own: &Own| {
        Db::verify_directory(DIRECTORY, own.options.clone(), &mut |_| {}).map(drop)
    }),
    call!("Db::open of another database, and all of that", Works, |_: &Own| {
        let db = Db::open(DIRECTORY, Machine::new().options())?;
        let other = keyspace(&db, "other");
        other.put("ada", "1815")?;
        db.compact()?;
        assert_eq!(other.iter().count(), 1);
        db.close()
    }),
    call!("Db::open_read_only of its own directory", Works, |own: &Own| {
        let db = Db::open_read_only(DIRECTORY, own.options.clone())?;
        assert!(plain(&db)?.get("ada")?.is_some());
        assert!(plain(&db)?.iter().next().unwrap().is_ok());
        Ok(())
    }),
    call!("Db::open_follower of its own directory", Works, |own: &Own| {
        let follower = Db::open_follower(DIRECTORY, own.options.clone())?;
        assert!(plain(follower.db())?.get("ada")?.is_some());
        Ok(())
    }),
    call!("Follower::db of its own directory", Works, |own: &Own| {
        let follower = Db::open_follower(DIRECTORY, own.options.clone())?;
        assert!(!follower.db().keyspaces().is_empty());
        Ok(())
    }),
    call!("Follower::catch_up of its own directory", Works, |own: &Own| {
        Db::open_follower(DIRECTORY, own.options.clone())?.catch_up().map(drop)
    }),
    call!("Follower::lag of its own directory", Works, |own: &Own| {
        Db::open_follower(DIRECTORY, own.options.clone())?.lag().map(drop)
    }),
    call!("Batch::len", Works, |db: &Own| {
        let mut batch = db.batch();
        batch.put(&plain(db)?, "bob", "1923")?;
        assert_eq!(batch.len(), 1);
        Ok(())
    }),
    call!("Batch::is_empty", Works, |db: &Own| {
        assert!(db.batch().is_empty());
        Ok(())
    }),
    call!("Batch::clear", Works, |db: &Own| {
        let mut batch = db.batch();
        batch.put(&plain(db)?, "bob", "1923")?;
        batch.clear();
        assert!(batch.is_empty());
        Ok(())
    }),
    call!("Snapshot::sequence", Works, |db: &Own| {
        db.snapshot().sequence();
        Ok(())
    }),
    call!("Transaction::sequence", Works, |db: &Own| {
        db.transaction().sequence();
        Ok(())
    }),
    call!("Transaction::len", Works, |db: &Own| {
        let mut transaction = db.transaction();
        transaction.put(&plain(db)?, "bob", "1923")?;
        assert_eq!(transaction.len(), 1);
        Ok(())
    }),
    call!("Transaction::is_empty", Works, |db: &Own| {
        assert!(db.transaction().is_empty());
        Ok(())
    }),
    call!("Transaction::rollback", Works, |db: &Own| {
        db.transaction().rollback();
        Ok(())
    }),
    call!("Db::open of its own directory", Locked, |own: &Own| Db::open(DIRECTORY, own.options.clone()).map(drop)),
    call!("Db::destroy of its own directory", Locked, |own: &Own| Db::destroy(DIRECTORY, own.options.clone())),
    call!("Db::repair of its own directory", Locked, |own: &Own| Db::repair(DIRECTORY, own.options.clone()).map(drop)),
];

fn in_batch(db: &Db, write: impl FnOnce(&mut esker::Batch) -> Result<()>) -> Result<()> {
    let mut batch = db.batch();
    write(&mut batch)?;
    batch.commit()
}

fn in_transaction(db: &Db, write: impl FnOnce(&mut Transaction) -> Result<()>) -> Result<()> {
    let mut transaction = db.transaction();
    write(&mut transaction)?;
    transaction.commit()
}

/// At a key.
fn cursor(db: &Db) -> Result<Cursor> {
    let mut cursor = plain(db)?.cursor()?;
    cursor.seek_to_first()?;
    assert!(cursor.valid());
    Ok(cursor)
}

/// Calls that only a listener may make.
pub const WRITES: &[Listed] = &[
    call!("Keyspace::put", Refused, |db: &Own| plain(db)?.put("bob", "1923")),
    call!("Keyspace::put of what expires", Refused, |db: &Own| expiring(db)?.put("bob", "1923")),
    call!("Keyspace::put of a large value", Refused, |db: &Own| plain(db)?.put("bob", [7; 5000])),
    call!("Keyspace::put_with, without log", Refused, |db: &Own| {
        plain(db)?.put_with("ada", "1815", &WriteOptions::new().disable_wal(true))
    }),
    call!("Keyspace::put_with, synced", Refused, |db: &Own| plain(db)?.put_with("ada", "1815", &synced())),
    call!("Keyspace::put_until", Refused, |db: &Own| expiring(db)?.put_until("bob", "1923", later())),
    call!("Keyspace::delete", Refused, |db: &Own| plain(db)?.delete("bob")),
    call!("Keyspace::delete_with", Refused, |db: &Own| plain(db)?.delete_with("bob", &synced())),
    call!("Keyspace::set_ttl", Refused, |db: &Own| plain(db)?.set_ttl(esker::Ttl::Enabled { default: None })),
    call!("Keyspace::set_merge_operator", Refused, |db: &Own| plain(db)?.set_merge_operator(esker::merge::Max)),
    call!("Keyspace::set_shared_merge_operator", Refused, |db: &Own| {
        plain(db)?.set_shared_merge_operator(std::sync::Arc::new(esker::merge::Max))
    }),
    call!("Keyspace::rename", Refused, |db: &Own| plain(db)?.rename("renamed")),
    call!("Keyspace::merge", Refused, |db: &Own| merging(db)?.merge("more", "1")),
    call!("Keyspace::merge of what expires", Refused, |db: &Own| expiring(db)?.merge("more", "1")),
    call!("Keyspace::merge_with", Refused, |db: &Own| {
        merging(db)?.merge_with("more", "1", &WriteOptions::new().disable_wal(true))
    }),
    call!("Keyspace::put_if_absent", Refused, |db: &Own| plain(db)?.put_if_absent("bob", "1923").map(drop)),
    call!("Keyspace::put_if_absent_with", Refused, |db: &Own| {
        plain(db)?.put_if_absent_with("bob", "1923", &synced()).map(drop)
    }),
    call!("Keyspace::compare_and_swap", Refused, |db: &Own| {
        plain(db)?.compare_and_swap("bob", None, Some(b"1923")).map(drop)
    }),
    call!("Keyspace::compare_and_swap_with", Refused, |db: &Own| {
        plain(db)?.compare_and_swap_with("bob", None, Some(b"1923"), &synced()).map(drop)
    }),
    call!("Keyspace::merge_and_get", Refused, |db: &Own| merging(db)?.merge_and_get("more", "1").map(drop)),
    call!("Keyspace::merge_and_get_with", Refused, |db: &Own| {
        merging(db)?.merge_and_get_with("more", "1", &WriteOptions::new().disable_wal(true)).map(drop)
    }),
    call!("Keyspace::take", Refused, |db: &Own| plain(db)?.take("bob").map(drop)),
    call!("Keyspace::take_with", Refused, |db: &Own| plain(db)?.take_with("bob", &synced()).map(drop)),
    call!("Keyspace::touch", Refused, |db: &Own| expiring(db)?.touch("bob", HOUR).map(drop)),
    call!("Keyspace::expire_at", Refused, |db: &Own| expiring(db)?.expire_at("bob", later()).map(drop)),
    call!("Keyspace::persist", Refused, |db: &Own| expiring(db)?.persist("bob").map(drop)),
    call!("Keyspace::delete_range", Refused, |db: &Own| plain(db)?.delete_range("b".."c")),
    call!("Keyspace::delete_range_with", Refused, |db: &Own| plain(db)?.delete_range_with("b".."c", &synced())),
    call!("Keyspace::clear", Refused, |db: &Own| plain(db)?.clear()),
    call!("Keyspace::delete_prefix", Refused, |db: &Own| plain(db)?.delete_prefix("b")),
    call!("Keyspace::put_with_ttl", Refused, |db: &Own| expiring(db)?.put_with_ttl("bob", "1923", HOUR)),
    call!("Keyspace::merge_with_ttl", Refused, |db: &Own| expiring(db)?.merge_with_ttl("more", "1", HOUR)),
    call!("Keyspace::pop_first", Refused, |db: &Own| plain(db)?.pop_first().map(drop)),
    call!("Keyspace::first", Refused, |db: &Own| plain(db)?.first().map(drop)),
    call!("Keyspace::last", Refused, |db: &Own| plain(db)?.last().map(drop)),
    call!("Keyspace::count", Refused, |db: &Own| plain(db)?.count("a"..).map(drop)),
    call!("Keyspace::ingest", Refused, |db: &Own| plain(db)?.ingest([("x", "1"), ("y", "2")]).map(drop)),
    call!("Batch::put", Refused, |db: &Own| in_batch(db, |batch| batch.put(&plain(db)?, "bob", "1923"))),
    call!("Batch::put of a large value", Refused, |db: &Own| {
        in_batch(db, |batch| batch.put(&plain(db)?, "bob", [7; 5000]))
    }),
    call!("Batch::put_with_ttl", Refused, |db: &Own| {
        in_batch(db, |batch| batch.put_with_ttl(&expiring(db)?, "bob", "1923", HOUR))
    }),
    call!("Batch::touch", Refused, |db: &Own| in_batch(db, |batch| batch.touch(&expiring(db)?, "bob", HOUR))),
    call!("Batch::expire_at", Refused, |db: &Own| {
        in_batch(db, |batch| batch.expire_at(&expiring(db)?, "bob", later()))
    }),
    call!("Batch::persist", Refused, |db: &Own| in_batch(db, |batch| batch.persist(&expiring(db)?, "bob"))),
    call!("Batch::put_until", Refused, |db: &Own| {
        in_batch(db, |batch| batch.put_until(&expiring(db)?, "bob", "1923", later()))
    }),
    call!("Batch::delete", Refused, |db: &Own| in_batch(db, |batch| batch.delete(&plain(db)?, "eve"))),
    call!("Batch::delete_range", Refused, |db: &Own| in_batch(db, |batch| batch.delete_range(&plain(db)?, "b".."c"))),
    call!("Batch::delete_prefix", Refused, |db: &Own| in_batch(db, |batch| batch.delete_prefix(&plain(db)?, "b"))),
    call!("Batch::merge", Refused, |db: &Own| in_batch(db, |batch| batch.merge(&merging(db)?, "more", "1"))),
    call!("Batch::merge of what expires", Refused, |db: &Own| {
        in_batch(db, |batch| batch.merge(&expiring(db)?, "more", "1"))
    }),
    call!("Batch::merge_with_ttl", Refused, |db: &Own| {
        in_batch(db, |batch| batch.merge_with_ttl(&expiring(db)?, "more", "1", HOUR))
    }),
    call!("Batch::commit", Refused, |db: &Own| {
        let mut batch = db.batch();
        batch.put(&plain(db)?, "bob", "1923")?;
        batch.merge(&merging(db)?, "more", "1")?;
        batch.commit()
    }),
    call!("Batch::commit_with, synced and empty", Refused, |db: &Own| db.batch().commit_with(&synced())),
    call!("Batch::commit_and_clear", Refused, |db: &Own| {
        let mut batch = db.batch();
        batch.put(&plain(db)?, "bob", "1923")?;
        let result = batch.commit_and_clear(&WriteOptions::new());
        // What was refused can be tried again elsewhere.
        assert_eq!(batch.is_empty(), result.is_ok());
        result
    }),
    call!("Keyspace::multi_get", Refused, |db: &Own| plain(db)?.multi_get(["ada"]).remove(0).map(drop)),
    call!("Keyspace::iter", Refused, |db: &Own| plain(db)?.iter().next().unwrap().map(drop)),
    call!("Keyspace::iter backwards", Refused, |db: &Own| plain(db)?.iter().next_back().unwrap().map(drop)),
    call!("Keyspace::range", Refused, |db: &Own| plain(db)?.range("a"..).next().unwrap().map(drop)),
    call!("Keyspace::prefix", Refused, |db: &Own| plain(db)?.prefix("a").next().unwrap().map(drop)),
    call!("Keyspace::cursor", Refused, |db: &Own| plain(db)?.cursor().map(drop)),
    call!("Cursor::seek_to_first", Refused, |db: &Own| plain(db)?.cursor()?.seek_to_first()),
    call!("Cursor::seek_to_last", Refused, |db: &Own| plain(db)?.cursor()?.seek_to_last()),
    call!("Cursor::seek", Refused, |db: &Own| plain(db)?.cursor()?.seek("a")),
    call!("Cursor::seek_for_prev", Refused, |db: &Own| plain(db)?.cursor()?.seek_for_prev("z")),
    call!("Cursor::next", Refused, |db: &Own| cursor(db)?.next()),
    call!("Cursor::prev", Refused, |db: &Own| cursor(db)?.prev()),
    call!("Cursor::valid", Refused, |db: &Own| cursor(db).map(|cursor| assert!(cursor.valid()))),
    call!("Cursor::keys_only", Refused, |db: &Own| {
        cursor(db).map(|cursor| assert_eq!(cursor.keys_only().key(), b"ada"))
    }),
    call!("Cursor::within", Refused, |db: &Own| cursor(db)?.within("a"..).seek_to_last()),
    call!("Iter::keys", Refused, |db: &Own| plain(db)?.iter().keys().next().transpose().map(drop)),
    call!("Cursor::key", Refused, |db: &Own| cursor(db).map(|cursor| assert_eq!(cursor.key(), b"ada"))),
    call!("Cursor::value", Refused, |db: &Own| cursor(db).map(|cursor| assert_eq!(cursor.value(), b"1815"))),
    call!("Db::changes", Refused, |db: &Own| db.changes(0).map(drop)),
    call!("Keyspace::watch", Refused, |db: &Own| plain(db)?.watch("a").map(drop)),
    call!("Db::snapshot", Refused, |db: &Own| db.snapshot().get(&plain(db)?, "ada").map(drop)),
    call!("Snapshot::get", Refused, |db: &Own| db.snapshot().get(&plain(db)?, "ada").map(drop)),
    call!("Snapshot::get_into", Refused, |db: &Own| {
        db.snapshot().get_into(&plain(db)?, "ada", &mut Vec::new()).map(drop)
    }),
    call!("Snapshot::multi_get", Refused, |db: &Own| db.snapshot().multi_get(&plain(db)?, ["ada"]).map(drop)),
    call!("Snapshot::expires_at", Refused, |db: &Own| db.snapshot().expires_at(&expiring(db)?, "base").map(drop)),
    call!("Snapshot::contains_key", Refused, |db: &Own| db.snapshot().contains_key(&plain(db)?, "ada").map(drop)),
    call!("Snapshot::first", Refused, |db: &Own| db.snapshot().first(&plain(db)?).map(drop)),
    call!("Snapshot::last", Refused, |db: &Own| db.snapshot().last(&plain(db)?).map(drop)),
    call!("Snapshot::count", Refused, |db: &Own| db.snapshot().count(&plain(db)?, ..).map(drop)),
    call!("Snapshot::iter", Refused, |db: &Own| db.snapshot().iter(&plain(db)?).next().unwrap().map(drop)),
    call!("Snapshot::range", Refused, |db: &Own| db.snapshot().range(&plain(db)?, "a"..).next().unwrap().map(drop)),
    call!("Snapshot::prefix", Refused, |db: &Own| db.snapshot().prefix(&plain(db)?, "a").next().unwrap().map(drop)),
    call!("Snapshot::cursor", Refused, |db: &Own| db.snapshot().cursor(&plain(db)?)?.seek_to_first()),
    call!("Db::batch", Refused, |db: &Own| db.batch().commit_with(&synced())),
    call!("Db::transaction", Refused, |db: &Own| db.transaction().get(&plain(db)?, "ada").map(drop)),
    call!("Transaction::get", Refused, |db: &Own| db.transaction().get(&plain(db)?, "ada").map(drop)),
    call!("Transaction::get_into", Refused, |db: &Own| {
        db.transaction().get_into(&plain(db)?, "ada", &mut Vec::new()).map(drop)
    }),
    call!("Transaction::multi_get", Refused, |db: &Own| {
        let keyspace = plain(db)?;
        db.transaction().multi_get(&keyspace, ["ada"]).into_iter().try_for_each(|found| found.map(drop))
    }),
    call!("Transaction::expires_at", Refused, |db: &Own| {
        db.transaction().expires_at(&expiring(db)?, "ada").map(drop)
    }),
    call!("Transaction::contains_key", Refused, |db: &Own| {
        db.transaction().contains_key(&plain(db)?, "ada").map(drop)
    }),
    call!("Transaction::first", Refused, |db: &Own| db.transaction().first(&plain(db)?).map(drop)),
    call!("Transaction::last", Refused, |db: &Own| db.transaction().last(&plain(db)?).map(drop)),
    call!("Transaction::count", Refused, |db: &Own| db.transaction().count(&plain(db)?, ..).map(drop)),
    call!("Transaction::pop_first", Refused, |db: &Own| db.transaction().pop_first(&plain(db)?).map(drop)),
    call!("Transaction::delete_prefix", Refused, |db: &Own| {
        in_transaction(db, |transaction| transaction.delete_prefix(&plain(db)?, "b"))
    }),
    call!("Transaction::iter", Refused, |db: &Own| db.transaction().iter(&plain(db)?).next().unwrap().map(drop)),
    call!("Transaction::range", Refused, |db: &Own| {
        db.transaction().range(&plain(db)?, "a"..).next_back().unwrap().map(drop)
    }),
    call!("Transaction::prefix", Refused, |db: &Own| {
        db.transaction().prefix(&plain(db)?, "a").next().unwrap().map(drop)
    }),
    call!("Transaction::put", Refused, |db: &Own| {
        in_transaction(db, |transaction| transaction.put(&plain(db)?, "bob", "1923"))
    }),
    call!("Transaction::put_with_ttl", Refused, |db: &Own| {
        in_transaction(db, |transaction| transaction.put_with_ttl(&expiring(db)?, "bob", "1923", HOUR))
    }),
    call!("Transaction::touch", Refused, |db: &Own| {
        in_transaction(db, |transaction| transaction.touch(&expiring(db)?, "bob", HOUR))
    }),
    call!("Transaction::expire_at", Refused, |db: &Own| {
        in_transaction(db, |transaction| transaction.expire_at(&expiring(db)?, "bob", later()))
    }),
    call!("Transaction::persist", Refused, |db: &Own| {
        in_transaction(db, |transaction| transaction.persist(&expiring(db)?, "bob"))
    }),
    call!("Transaction::put_until", Refused, |db: &Own| {
        in_transaction(db, |transaction| transaction.put_until(&expiring(db)?, "bob", "1923", later()))
    }),
    call!("Transaction::delete", Refused, |db: &Own| {
        in_transaction(db, |transaction| transaction.delete(&plain(db)?, "bob"))
    }),
    call!("Transaction::delete_range", Refused, |db: &Own| {
        in_transaction(db, |transaction| transaction.delete_range(&plain(db)?, "b".."c"))
    }),
    call!("Transaction::merge", Refused, |db: &Own| {
        in_transaction(db, |transaction| transaction.merge(&merging(db)?, "more", "1"))
    }),
    call!("Transaction::merge_with_ttl", Refused, |db: &Own| {
        let mut transaction = db.transaction();
        transaction.merge_with_ttl(&expiring(db)?, "ada", 1u64.to_le_bytes(), Duration::from_secs(9))?;
        transaction.commit()
    }),
    call!("Transaction::commit", Refused, |db: &Own| {
        let mut transaction = db.transaction();
        transaction.put(&plain(db)?, "bob", "1923")?;
        transaction.commit()
    }),
    call!("Transaction::commit_with", Refused, |db: &Own| {
        let mut transaction = db.transaction();
        transaction.put(&plain(db)?, "bob", "1923")?;
        transaction.commit_with(&synced())
    }),
    call!("Db::transact", Refused, |db: &Own| {
        let plain = plain(db)?;
        db.transact(3, |transaction| transaction.put(&plain, "bob", "1923"))
    }),
    call!("Db::transact_with", Refused, |db: &Own| {
        let keyspace = plain(db)?;
        db.transact_with(1, &WriteOptions::new(), |transaction| transaction.put(&keyspace, "bob", "1923"))
    }),
    call!("Db::flush", Refused, |db: &Own| db.flush()),
    call!("Db::sync", Refused, |db: &Own| db.sync()),
    call!("Db::compact", Refused, |db: &Own| db.compact()),
    call!("Keyspace::compact", Refused, |db: &Own| plain(db)?.compact()),
    call!("Keyspace::compact_range", Refused, |db: &Own| plain(db)?.compact_range("a".."c")),
    call!("Db::wait_idle", Refused, |db: &Own| db.wait_idle()),
    call!("Db::checkpoint", Refused, |db: &Own| db.checkpoint("/copy")),
    call!("Db::checkpoint_with, a copy", Refused, |db: &Own| db.checkpoint_with("/copy", CheckpointMode::Copy)),
    call!("Db::keyspace", Refused, |db: &Own| db.keyspace("plain", KeyspaceOptions::default()).map(drop)),
    call!("Db::keyspace, a new one", Refused, |db: &Own| db.keyspace("newest", KeyspaceOptions::default()).map(drop)),
    call!("Db::drop_keyspace", Refused, |db: &Own| db.drop_keyspace("plain")),
    call!("Db::close", Refused, |db: &Own| db.db.clone().close()),
];

fn snapshot(db: &Db) -> Snapshot {
    db.snapshot()
}

fn transaction(db: &Db) -> Transaction {
    let mut transaction = db.transaction();
    transaction.put(&plain(db).unwrap(), "bob", "1923").unwrap();
    transaction
}

fn batch(db: &Db) -> esker::Batch {
    let mut batch = db.batch();
    batch.put(&plain(db).unwrap(), "bob", "1923").unwrap();
    batch
}

fn changes(db: &Db) -> Changes {
    db.changes(0).unwrap()
}

fn watch(db: &Db) -> Watch {
    plain(db).unwrap().watch("a").unwrap()
}

fn iter(db: &Db) -> esker::Iter {
    plain(db).unwrap().iter()
}

/// As written above, with what was there before the callback was called.
pub const BEGUN: &[Listed] = &[
    begun!("Changes::next of an earlier one", Refused, changes, |_: &Own, mut begun: Changes| {
        begun.next().transpose().map(drop)
    }),
    begun!("Changes::wait of an earlier one", Refused, changes, |_: &Own, mut begun: Changes| {
        begun.wait(Duration::ZERO).map(drop)
    }),
    begun!("Changes::position of an earlier one", Works, changes, |_: &Own, begun: Changes| {
        assert!(begun.position() > 0);
        Ok(())
    }),
    begun!("Changes::keyspace_settings of an earlier one", Refused, changes, |_: &Own, begun: Changes| {
        begun.keyspace_settings(1, 1).map(drop)
    }),
    begun!("Changes::only_durable of an earlier one", Works, changes, |_: &Own, begun: Changes| {
        drop(begun.only_durable());
        Ok(())
    }),
    begun!("Watch::wait of an earlier one", Refused, watch, |_: &Own, begun: Watch| {
        begun.wait(Duration::ZERO).map(drop)
    }),
    reads!("Snapshot::get of an earlier one", Works, snapshot, |db: &Own, begun: Snapshot| {
        begun.get(&plain(db)?, "ada").map(|value| assert_eq!(value.as_deref(), Some(&b"1815"[..])))
    }),
    reads!("Snapshot::get_into of an earlier one", Works, snapshot, |db: &Own, begun: Snapshot| {
        begun.get_into(&plain(db)?, "ada", &mut Vec::new()).map(|found| assert!(found))
    }),
    reads!("Snapshot::multi_get of an earlier one", Works, snapshot, |db: &Own, begun: Snapshot| {
        begun.multi_get(&merging(db)?, ["apart"])?.remove(0).map(drop)
    }),
    reads!("Snapshot::expires_at of an earlier one", Works, snapshot, |db: &Own, begun: Snapshot| {
        begun.expires_at(&expiring(db)?, "base").map(drop)
    }),
    reads!("Snapshot::iter of an earlier one", Scans, snapshot, |db: &Own, begun: Snapshot| {
        let count = begun.iter(&merging(db)?).try_fold(0, |count, pair| pair.map(|_| count + 1))?;
        assert_eq!(count, 3);
        Ok(())
    }),
    reads!("Snapshot::range of an earlier one", Scans, snapshot, |db: &Own, begun: Snapshot| {
        begun.range(&expiring(db)?, "a"..).next_back().unwrap().map(drop)
    }),
    reads!("Snapshot::prefix of an earlier one", Scans, snapshot, |db: &Own, begun: Snapshot| {
        begun.prefix(&plain(db)?, "a").next().unwrap().map(drop)
    }),
    reads!("Snapshot::cursor of an earlier one", Scans, snapshot, |db: &Own, begun: Snapshot| {
        begun.cursor(&plain(db)?)?.seek_to_last()
    }),
    reads!("Snapshot::contains_key of an earlier one", Works, snapshot, |db: &Own, begun: Snapshot| {
        begun.contains_key(&plain(db)?, "ada").map(|found| assert!(found))
    }),
    reads!("Snapshot::first of an earlier one", Scans, snapshot, |db: &Own, begun: Snapshot| {
        begun.first(&plain(db)?).map(|pair| assert!(pair.is_some()))
    }),
    reads!("Snapshot::last of an earlier one", Scans, snapshot, |db: &Own, begun: Snapshot| {
        begun.last(&plain(db)?).map(|pair| assert!(pair.is_some()))
    }),
    reads!("Snapshot::count of an earlier one", Scans, snapshot, |db: &Own, begun: Snapshot| {
        begun.count(&merging(db)?, ..).map(|count| assert_eq!(count, 3))
    }),
    reads!("Iter::next of an earlier one", Scans, iter, |_: &Own, mut begun: esker::Iter| {
        begun.next().unwrap().map(drop)
    }),
    reads!("Cursor::seek_to_first of an earlier one", Works, cursor, |_: &Own, begun: Result<Cursor>| {
        begun?.seek_to_first()
    }),
    reads!("Cursor::prev of an earlier one", Works, cursor, |_: &Own, begun: Result<Cursor>| begun?.prev()),
    reads!("Transaction::get of an earlier one", Works, transaction, |db: &Own, mut begun: Transaction| {
        begun.get(&plain(db)?, "ada").map(drop)
    }),
    reads!("Transaction::iter of an earlier one", Scans, transaction, |db: &Own, mut begun: Transaction| {
        begun.iter(&plain(db)?).next().unwrap().map(drop)
    }),
    reads!("Transaction::pop_first in an earlier one", Scans, transaction, |db: &Own, mut begun: Transaction| {
        begun.pop_first(&plain(db)?).map(|pair| assert!(pair.is_some()))
    }),
    reads!("Transaction::put_until in an earlier one", Works, transaction, |db: &Own, mut begun: Transaction| {
        begun.put_until(&expiring(db)?, "bob", "1923", later())
    }),
    reads!("Transaction::rollback of an earlier one", Works, transaction, |_: &Own, begun: Transaction| {
        begun.rollback();
        Ok(())
    }),
    reads!("Transaction::commit of an earlier one", Refused, transaction, |_: &Own, begun: Transaction| begun.commit()),
    begun!("Batch::commit of an earlier one", Refused, batch, |_: &Own, begun: esker::Batch| begun.commit()),
];

/// All of them.
pub fn all() -> impl Iterator<Item = Listed> {
    [READS, WRITES, BEGUN].into_iter().flatten().copied()
}

/// Whether that became of it. In a listener nothing is refused.
pub fn is_right(call: &Listed, in_listener: bool, in_comparator: bool, result: &Result<()>) -> bool {
    let outcome = match call.outcome {
        Scans if in_comparator => Refused,
        Scans => Works,
        outcome => outcome,
    };
    match (outcome, result) {
        (Works, Ok(())) | (Locked, Err(Error::Locked { .. })) => true,
        (Refused, Ok(())) => in_listener,
        (Refused, Err(Error::InCallback { database })) => !in_listener && database.to_str() == Some(DIRECTORY),
        _ => false,
    }
}
