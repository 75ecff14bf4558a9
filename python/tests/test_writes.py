"""Batches, snapshots, transactions, times to live, large values."""

from __future__ import annotations

import datetime
import pathlib
import threading
from typing import Any, Callable

import pytest

import esker

HOUR = datetime.timedelta(hours=1)


def test_a_batch_is_one_write_to_several_keyspaces(db: esker.Database) -> None:
    names = db.keyspace("names")
    with db.batch(sync=True) as batch:
        batch[b"count"] = b"1"
        batch.keyspace(names).put(b"ada", b"1815")
        batch.keyspace("names")[b"bob"] = b""
        del batch.keyspace("names")[b"bob"]
        assert len(batch) == 4
        assert b"count" not in db
    assert db[b"count"] == b"1" and dict(names) == {b"ada": b"1815"}
    assert len(batch) == 0


def test_a_batch_is_discarded_by_an_exception(db: esker.Database) -> None:
    batch = db.batch()
    with pytest.raises(LookupError):
        with batch:
            batch[b"a"] = b"1"
            raise LookupError
    assert len(db) == 0 and len(batch) == 0
    batch[b"b"] = b"2"
    batch.commit()
    assert dict(db) == {b"b": b"2"}


def test_a_batch_has_all_operations(db: esker.Database) -> None:
    counts = db.keyspace("counts", merge_operator="uint64add", ttl=True)
    one = (1).to_bytes(8, "little")
    counts.update({b"a": one, b"b": one})
    with db.batch() as batch:
        view = batch.keyspace(counts)
        view.delete_range(b"a", b"b")
        view.merge(b"b", one)
        view.merge(b"c", one, ttl=HOUR)
        view.put(b"d", one, ttl=HOUR)
        view.put(b"e", one, expires=datetime.datetime(2200, 1, 1, tzinfo=datetime.timezone.utc))
        view.delete(b"f")
        batch.clear()
        assert len(batch) == 0
        view.delete_range(b"a", b"b")
        view.merge(b"b", one)
        view.put(b"d", one, ttl=HOUR)
    assert dict(counts) == {b"b": (2).to_bytes(8, "little"), b"d": one}
    assert counts.expires_at(b"d") is not None and counts.expires_at(b"b") is None


def test_a_snapshot_is_of_one_moment(db: esker.Database) -> None:
    names = db.keyspace("names")
    names.update({b"a": b"1", b"b": b"2"})
    db[b"x"] = b"1"
    snapshot = db.snapshot()
    names.clear()
    db[b"x"] = b"2"
    then = snapshot.keyspace(names)
    assert dict(then) == {b"a": b"1", b"b": b"2"} and list(then.scan(reverse=True))[0] == (b"b", b"2")
    assert snapshot[b"x"] == b"1" and snapshot.keyspace("names").get_many([b"a", b"c"]) == [b"1", None]
    assert len(then) == 2 and then.first() == (b"a", b"1") and then.last() == (b"b", b"2") and b"a" in then
    assert then.cursor().valid is False and snapshot.sequence > 0
    scan = snapshot.scan()
    snapshot.close()
    snapshot.close()
    assert snapshot.closed
    with pytest.raises(esker.ClosedError):
        snapshot[b"x"]
    with pytest.raises(esker.ClosedError):
        then[b"a"]
    # An iterator holds what it needs by itself.
    assert list(scan) == [(b"x", b"1")]
    with pytest.raises(AttributeError):
        then.put(b"a", b"1")  # type: ignore[attr-defined]


def test_a_transaction_sees_itself_and_conflicts_with_others(db: esker.Database) -> None:
    db.update({b"a": b"1", b"b": b"2", b"c": b"3"})
    with db.transaction() as transaction:
        assert transaction[b"a"] == b"1" and b"x" not in transaction
        transaction[b"x"] = b"4"
        del transaction[b"a"]
        with pytest.raises(KeyError):
            del transaction[b"a"]
        with pytest.raises(KeyError):
            transaction[b"a"]
        assert [key for key, _ in transaction.scan()] == [b"b", b"c", b"x"]
        assert list(transaction.scan(b"c", reverse=True)) == [(b"x", b"4"), (b"c", b"3")]
        assert list(transaction) == [b"b", b"c", b"x"]
        assert transaction.first() == (b"b", b"2") and transaction.last() == (b"x", b"4")
        assert transaction.get(b"q", b"?") == b"?"
        assert b"x" not in db
    assert transaction.finished and list(db) == [b"b", b"c", b"x"]
    with pytest.raises(RuntimeError):
        transaction.commit()
    with pytest.raises(RuntimeError):
        transaction.get(b"a")
    transaction.rollback()

    with pytest.raises(esker.ConflictError) as conflict:
        with db.transaction() as transaction:
            transaction[b"x"] = transaction[b"b"]
            db[b"b"] = b"other"
    assert conflict.value.retryable and conflict.value.keyspace == "default" and conflict.value.key == "b"
    assert db[b"x"] == b"4"

    with pytest.raises(LookupError):
        with db.transaction() as transaction:
            transaction.put(b"x", b"5")
            raise LookupError
    assert db[b"x"] == b"4"


def test_a_long_scan_in_a_transaction(db: esker.Database) -> None:
    db.update((b"%04d" % number, b"") for number in range(1000))
    with db.transaction() as transaction:
        assert len(list(transaction.scan())) == 1000
        assert len(list(transaction.scan(b"0100", b"0200", reverse=True))) == 100
        view = transaction.keyspace(db)
        assert view.pop_first() == (b"0000", b"")
        view.delete_range(b"0001", b"0999")
        assert [key for key, _ in view.scan()] == [b"0999"]


def test_transact_runs_again_after_a_conflict(db: esker.Database) -> None:
    db[b"n"] = b"0"

    def add(transaction: esker.Transaction) -> int:
        count = int(transaction[b"n"]) + 1
        transaction[b"n"] = b"%d" % count
        return count

    def work() -> None:
        for _ in range(50):
            db.transact(add, attempts=1000)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db[b"n"] == b"200"

    tries = []

    def always_late(transaction: esker.Transaction) -> None:
        tries.append(transaction[b"n"])
        db[b"n"] = b"%d" % len(tries)
        transaction[b"m"] = b""

    with pytest.raises(esker.ConflictError):
        db.transact(always_late, attempts=3)
    assert len(tries) == 3

    def broken(transaction: esker.Transaction) -> None:
        transaction[b"m"] = b""
        raise LookupError

    with pytest.raises(LookupError):
        db.transact(broken)
    assert b"m" not in db


def test_times_to_live(db: esker.Database) -> None:
    sessions = db.keyspace("sessions", ttl=HOUR)
    assert sessions.expires and sessions.default_ttl == HOUR
    now = datetime.datetime.now(datetime.timezone.utc)
    sessions[b"a"] = b"1"
    sessions.put(b"b", b"2", ttl=2 * HOUR)
    gone = now - HOUR
    sessions.put(b"c", b"3", expires=gone)
    at = now + 3 * HOUR
    sessions.put(b"d", b"4", expires=at)
    assert list(sessions) == [b"a", b"b", b"d"]
    first = sessions.expires_at(b"a")
    assert first is not None and now < first <= now + HOUR + datetime.timedelta(minutes=5)
    expires = sessions.expires_at(b"d")
    assert expires is not None and abs(expires - at) <= datetime.timedelta(milliseconds=1)
    assert sessions.touch(b"a", 5 * HOUR) and not sessions.touch(b"x", HOUR)
    assert sessions.persist(b"a") and sessions.expires_at(b"a") is None
    assert sessions.expire_at(b"a", gone) and b"a" not in sessions
    with pytest.raises(KeyError):
        sessions.expires_at(b"a")
    with pytest.raises(esker.InvalidArgumentError):
        sessions.put(b"e", b"", ttl=datetime.timedelta(0))
    with pytest.raises(ValueError):
        sessions.put(b"e", b"", ttl=-HOUR)
    with pytest.raises(TypeError):
        sessions.put(b"e", b"", ttl=3600)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        sessions.put(b"e", b"", ttl=HOUR, expires=at)
    for naive in (at.replace(tzinfo=None), 7, "tomorrow", at.date()):
        with pytest.raises(TypeError, match="an aware datetime"):
            sessions.put(b"e", b"", expires=naive)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="an aware datetime"):
            sessions.expire_at(b"a", naive)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="before 1970"):
        sessions.expire_at(b"a", datetime.datetime(1969, 12, 31, tzinfo=datetime.timezone.utc))
    elsewhere = at.astimezone(datetime.timezone(datetime.timedelta(hours=-7)))
    sessions.put(b"d", b"4", expires=elsewhere)
    assert abs((sessions.expires_at(b"d") or at) - at) <= datetime.timedelta(milliseconds=1)
    with pytest.raises(esker.InvalidArgumentError):
        db.put(b"e", b"", ttl=HOUR)
    with pytest.raises(esker.InvalidArgumentError):
        db.keyspace("sessions", ttl=False)


def test_values_of_any_size_survive_closing(directory: pathlib.Path) -> None:
    values = {b"%d" % size: bytes(range(256)) * (size // 256) + bytes(size % 256) for size in (0, 1, 40_000, 5_000_000)}
    with esker.open(directory) as db:
        for key, value in values.items():
            db.put(key, value, sync=True)
    with esker.open(directory) as db:
        assert dict(db) == values


def test_a_write_without_log_and_with_a_timeout(db: esker.Database) -> None:
    db.put(b"a", b"1", wal=False)
    db.put(b"b", b"2", timeout=datetime.timedelta(0))
    db.put(b"c", b"3", timeout=datetime.timedelta(seconds=1))
    with pytest.raises(esker.InvalidArgumentError):
        db.put(b"d", b"", sync=True, wal=False)
    assert len(db) == 3


def test_checkpoints_open_as_databases(db: esker.Database, tmp_path: pathlib.Path) -> None:
    db[b"a"] = b"1"
    db.checkpoint(tmp_path / "linked")
    db.checkpoint(tmp_path / "copied", copy=True)
    db[b"a"] = b"2"
    for name in ("linked", "copied"):
        with esker.open(tmp_path / name, read_only=True) as copy:
            assert copy[b"a"] == b"1"
            with pytest.raises(esker.ReadOnlyError):
                copy[b"a"] = b"3"
    with pytest.raises(esker.InvalidArgumentError):
        db.checkpoint(tmp_path / "linked")
    db.sync()


def test_what_is_told_of_a_database(db: esker.Database, directory: pathlib.Path) -> None:
    db[b"a"] = b"1"
    assert db.path == str(directory)
    assert db.properties()["esker.keyspace.default.memtable_entries"] == "1"
    assert db.health() == esker.Health(True, None, None, 0)
    assert "write_buffer_bytes" in db.explain()
    assert db.prometheus().startswith("# ")
    assert "keyspace" in db.stats()
    assert repr(db) == f"<esker.Database {str(directory)!r}>".replace("'", '"')
    assert "default" in repr(db.keyspace("default"))


def test_options_reach_the_engine(directory: pathlib.Path) -> None:
    with esker.open(directory, profile="counters", block_bytes=4096, compression="lz4", wal_mode="plain") as db:
        text = db.explain()
        assert "block_bytes = 4096" in text or "block_bytes = 4 KiB" in text
        assert "profile counters" in text
    wrongs: list[dict[str, Any]] = [{"profile": "fast"}, {"compression": "rot13"}, {"read_mode": "slow"}]
    for wrong in wrongs:
        with pytest.raises(ValueError):
            esker.open(directory, **wrong)
    wrong_types: list[dict[str, Any]] = [{"no_such_option": 1}, {"block_bytes": "large"}, {"compression": 7}]
    for wrong_type in wrong_types:
        with pytest.raises(TypeError):
            esker.open(directory, **wrong_type)
    with pytest.raises(OverflowError):
        esker.open(directory, block_bytes=-1)
    with pytest.raises(esker.InvalidArgumentError):
        esker.open(directory, memory_budget_bytes=1)
    with esker.open(directory) as db:
        with pytest.raises(ValueError):
            db.keyspace("k", compaction_style="never")  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            db.keyspace("k", compaction_style="fifo")
        with pytest.raises(TypeError):
            db.keyspace("k", fifo_bytes=1)
        db.keyspace("leveled", compaction_style="leveled")
        db.keyspace("tiered", compaction_style="tiered")
        db.keyspace("lazy-leveling", compaction_style="lazy-leveling")
        db.keyspace("fifo", compaction_style="fifo", fifo_bytes=1 << 30)


def test_pairs_of_any_form(db: esker.Database) -> None:
    db.update([[b"a", b"1"], (b"b", b"2"), iter([b"c", b"3"])])
    assert db.ingest([[b"d", b"4"], (b"e", bytearray(b"5"))]) == 2
    assert list(db.items()) == [(b"a", b"1"), (b"b", b"2"), (b"c", b"3"), (b"d", b"4"), (b"e", b"5")]
    wrongs: list[tuple[object, type[Exception]]] = [
        ([b"x"], ValueError),
        ([b"x", b"y", b"z"], ValueError),
        (b"xy", TypeError),
        (7, TypeError),
    ]
    for wrong, error in wrongs:
        with pytest.raises(error):
            db.update([(b"x", b""), wrong])  # type: ignore[list-item]
        with pytest.raises(error):
            db.ingest([(b"x", b""), wrong])  # type: ignore[list-item]
    assert b"x" not in db


def test_transact_rolls_back_before_its_exception_leaves(db: esker.Database) -> None:
    begun: list[esker.Transaction] = []

    def body(transaction: esker.Transaction) -> None:
        begun.append(transaction)
        transaction.put(b"k", b"v")
        raise LookupError

    with pytest.raises(LookupError):
        db.transact(body)
    assert begun[0].finished and b"k" not in db


def test_reads_and_times_of_transactions(db: esker.Database) -> None:
    sessions = db.keyspace("sessions", ttl=True, merge_operator="max")
    hour = datetime.timedelta(hours=1)
    later = datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone.utc)
    sessions.update({b"a": b"1", b"b": b"2", b"c": b"3"})
    sessions.put(b"d", b"4", expires=later)
    with db.transaction() as transaction:
        view = transaction.keyspace(sessions)
        assert transaction.sequence > 0 and transaction.write_count == 0
        view[b"a"] = b"long"
        assert transaction.write_count == 1
        assert view.get_many([b"b", b"none", b"a"]) == [b"2", None, b"long"]
        buffer = bytearray(4)
        assert view.get_into(b"a", buffer) == 4 and buffer == b"long"
        assert view.get_into(b"none", buffer) is None
        with pytest.raises(ValueError, match="4 bytes"):
            view.get_into(b"a", bytearray(3))
        assert view.count() == 4 and view.count(b"b", b"d") == 2 and view.count(prefix=b"a") == 1
        assert view.expires_at(b"d") == later and view.expires_at(b"b") is None
        with pytest.raises(KeyError):
            view.expires_at(b"none")
        with pytest.raises(esker.InvalidArgumentError):
            view.expires_at(b"a")
        view.put(b"e", b"5", expires=later)
        view.merge(b"f", b"6", ttl=hour)
        view.touch(b"b", hour)
        view.expire_at(b"c", later)
        view.persist(b"d")
        with pytest.raises(esker.InvalidArgumentError, match="twice"):
            view.put(b"g", b"7", ttl=hour, expires=later)
        for wrong in (7, "hour", None):
            with pytest.raises(TypeError):
                view.touch(b"b", wrong)  # type: ignore[arg-type]
            with pytest.raises(TypeError):
                view.expire_at(b"b", wrong)  # type: ignore[arg-type]
    assert sessions.expires_at(b"c") == later and sessions.expires_at(b"e") == later
    assert sessions.expires_at(b"d") is None
    assert sessions.expires_at(b"b") is not None and sessions.expires_at(b"f") is not None
    calls: list[Callable[[], Any]] = [
        lambda: view.get_many([b"a"]),
        lambda: view.get_into(b"a", bytearray(9)),
        lambda: view.expires_at(b"a"),
        lambda: view.count(),
        lambda: view.touch(b"a", hour),
        lambda: view.expire_at(b"a", later),
        lambda: view.persist(b"a"),
        lambda: transaction.sequence,
        lambda: transaction.write_count,
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="finished"):
            call()

    # All that was read counts.
    reads: list[Callable[[esker.KeyspaceTransaction], Any]] = [
        lambda view: view.get_many([b"a"]),
        lambda view: view.count(),
        lambda view: view.expires_at(b"a"),
    ]
    for read in reads:
        with pytest.raises(esker.ConflictError):
            with db.transaction() as transaction:
                read(transaction.keyspace(sessions))
                transaction[b"x"] = b"1"
                sessions[b"a"] = b"other"


def test_times_of_batches(db: esker.Database) -> None:
    sessions = db.keyspace("sessions", ttl=True)
    hour = datetime.timedelta(hours=1)
    later = datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone.utc)
    sessions.update({b"a": b"1", b"b": b"2"})
    sessions.put(b"c", b"3", ttl=hour)
    with db.batch() as batch:
        view = batch.keyspace(sessions)
        view.touch(b"a", hour)
        view.expire_at(b"b", later)
        view.persist(b"c")
        with pytest.raises(TypeError):
            view.touch(b"a", 7)  # type: ignore[arg-type]
        assert len(batch) == 3
    assert sessions.expires_at(b"a") is not None
    assert sessions.expires_at(b"b") == later and sessions.expires_at(b"c") is None
