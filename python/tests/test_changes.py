"""Changes, watches, and settings that change while a keyspace is in use."""

from __future__ import annotations

import datetime
import gc
import pathlib
import signal
import sys
import threading
import weakref
from typing import Any, Callable, Iterator

import pytest

import esker

NOTHING = datetime.timedelta(0)
LONG = datetime.timedelta(minutes=10)


@pytest.fixture
def kept(directory: pathlib.Path) -> Iterator[esker.Database]:
    """An open database that keeps changes."""
    with esker.open(directory, keep_changes=1 << 20) as db:
        yield db


def test_all_kinds_of_changes(kept: esker.Database) -> None:
    hits = kept.keyspace("hits", merge_operator="uint64add")
    sessions = kept.keyspace("sessions", ttl=True)
    one = (1).to_bytes(8, "little")
    at = datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone.utc)
    changes = kept.changes()
    kept[b"a\0"] = b""
    del kept[b"a\0"]
    hits.merge(b"h", one)
    sessions.put(b"s", b"1", expires=at)
    kept.delete_range(b"a", b"b", include_start=False)
    kept.ingest([(b"k", b"v")])
    kept.update({b"x": b"1", b"y": b"2"})
    kept.drop_keyspace("hits")
    batches = list(changes)
    assert [len(batch) for batch in batches] == [1, 1, 1, 1, 1, 1, 2, 1]
    found = [change for batch in batches for change in batch]
    assert [change[1:5] for change in found] == [
        ("default", "put", b"a\0", b""),
        ("default", "delete", b"a\0", None),
        ("hits", "merge", b"h", one),
        ("sessions", "put", b"s", b"1"),
        ("default", "delete_range", None, None),
        ("default", "load", None, None),
        ("default", "put", b"x", b"1"),
        ("default", "put", b"y", b"2"),
        ("hits", "drop_keyspace", None, None),
    ]
    assert found[3].expires == at and found[0].expires is None
    deleted = found[4]
    assert (deleted.start, deleted.stop, deleted.include_start, deleted.include_stop) == (b"a\0", b"b", True, False)
    numbers = [change.sequence for change in found]
    assert numbers == sorted(set(numbers)) and changes.position == numbers[-1] + 1
    # From a number on, and no more for now.
    assert [change.key for batch in kept.changes(found[6].sequence) for change in batch][:2] == [b"x", b"y"]
    assert list(changes) == []
    kept[b"z"] = b"3"
    assert [change.key for batch in changes for change in batch] == [b"z"]


def test_other_names_and_settings_are_changes(kept: esker.Database) -> None:
    names = kept.keyspace("names")
    names[b"k"] = b"5"
    names.rename("people")
    names.set_merge_operator("max")
    # Its operand is combined first.
    names.merge(b"k", b"7")
    day = datetime.timedelta(days=1)
    names.set_ttl(day)
    names.set_ttl(True)
    changes = kept.changes()
    found = [change for batch in changes for change in batch]
    assert [(change.keyspace, change.kind) for change in found] == [
        ("names", "put"),
        ("people", "alter_keyspace"),
        ("people", "alter_keyspace"),
        ("people", "merge"),
        ("people", "alter_keyspace"),
        ("people", "alter_keyspace"),
    ]
    assert len({change.keyspace_id for change in found}) == 1
    assert [(change.former_name, change.merge_operator, change.ttl) for change in found] == [
        (None, None, None),
        ("names", None, False),
        ("people", "max", False),
        (None, None, None),
        ("people", "max", day),
        ("people", "max", True),
    ]
    number = found[0].keyspace_id
    assert names.id == number == kept.keyspaces["people"].id and kept.keyspace("other").id != number
    assert [changes.keyspace_settings(number, change.sequence) for change in found] == [
        ("names", "bytewise", None, False),
        ("people", "bytewise", None, False),
        ("people", "bytewise", "max", False),
        ("people", "bytewise", "max", False),
        ("people", "bytewise", "max", day),
        ("people", "bytewise", "max", True),
    ]
    assert changes.keyspace_settings(number + 1000, 1) is None
    for wrong in ("1", None, 1.5):
        with pytest.raises(TypeError):
            changes.keyspace_settings(wrong, 1)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            changes.keyspace_settings(number, wrong)  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        changes.keyspace_settings(-1, 1)
    changes.close()
    refused([lambda: changes.keyspace_settings(number, 1)])


def test_renames(directory: pathlib.Path) -> None:
    with esker.open(directory) as db:
        drafts, again = db.keyspace("drafts"), db.keyspace("drafts")
        drafts[b"k"] = b"old"
        with db.snapshot() as snapshot, db.batch() as batch:
            batch.keyspace(drafts)[b"b"] = b""
            drafts.rename("letters")
            drafts.rename("letters")
            assert (drafts.name, again.name) == ("letters", "letters") and "'letters'" in repr(again).replace('"', "'")
            drafts[b"k"] = b"new"
            assert snapshot.keyspace(drafts)[b"k"] == b"old" and snapshot.keyspace("letters")[b"k"] == b"old"
        assert dict(db.keyspaces["letters"]) == {b"k": b"new", b"b": b""}
        assert "drafts" not in db.keyspaces
        other = db.keyspace("drafts")
        with pytest.raises(esker.AlreadyExistsError):
            drafts.rename("drafts")
        for wrong in ("", "a\0b", "a\nb", "x" * 256):
            with pytest.raises(esker.InvalidArgumentError):
                drafts.rename(wrong)
        for other_type in (7, None, b"letters"):
            with pytest.raises(TypeError):
                drafts.rename(other_type)  # type: ignore[arg-type]
        del db.keyspaces["drafts"]
        with pytest.raises(esker.KeyspaceDroppedError):
            other.rename("gone")
        # The keyspace of the database itself.
        db[b"x"] = b"1"
        db.rename("former")
        assert (db.name, db[b"x"], db.keyspace_names()) == ("former", b"1", ["former", "letters"])
    refused([lambda: drafts.rename("closed"), lambda: drafts.id])
    assert drafts.name == "letters"
    with esker.open(directory) as db:
        assert b"x" not in db and db.keyspaces["former"][b"x"] == b"1"
    with esker.open(directory, read_only=True) as reader:
        with pytest.raises(esker.ReadOnlyError):
            reader.keyspaces["former"].rename("written")


def test_a_renamed_default_keyspace_stays_that_of_the_database(directory: pathlib.Path) -> None:
    with esker.open(directory) as db:
        # Made here, and not used through the database before.
        default = db.keyspace("default")
        default[b"a"] = b"1"
        default.rename("first")
        assert (db.name, db[b"a"], db.keyspace_names()) == ("first", b"1", ["first"])
        assert db.id == default.id
        again = db.keyspace("default")
        again[b"a"] = b"2"
        assert db[b"a"] == b"1" and db.keyspace_names() == ["default", "first"]
    with esker.open(directory) as db:
        # There from before, and reached through the names.
        db.keyspaces["default"].rename("second")
        assert (db.name, db[b"a"], db.keyspace_names()) == ("second", b"2", ["first", "second"])
        db.keyspace("default")[b"a"] = b"3"
    with esker.open(directory) as writer, esker.open_follower(directory) as follower:
        # By another one, before the first use here.
        writer.rename("third")
        follower.catch_up()
        assert (follower.db.name, follower.db[b"a"]) == ("third", b"3")


def test_times_beyond_those_of_datetime(kept: esker.Database) -> None:
    sessions = kept.keyspace("sessions", ttl=True)
    changes = kept.changes()
    sessions.put(b"k", b"v", ttl=datetime.timedelta.max)
    kept[b"behind"] = b""
    first, second = [change for batch in changes for change in batch]
    assert first.expires == datetime.datetime.max.replace(tzinfo=datetime.timezone.utc)
    assert (first.key, second.key) == (b"k", b"behind")
    assert sessions.expires_at(b"k") == first.expires


def test_in_step_with_a_snapshot(kept: esker.Database) -> None:
    kept[b"a"] = b"1"
    with kept.snapshot() as snapshot:
        copy, next_write = dict(snapshot.items()), snapshot.sequence + 1
    kept[b"b"] = b"2"
    for batch in kept.changes(next_write):
        copy.update({change.key: change.value for change in batch})  # type: ignore[misc]
    assert copy == dict(kept.items())


def test_only_what_is_durable(kept: esker.Database) -> None:
    kept[b"a"] = b"1"
    changes = kept.changes(only_durable=True)
    assert list(changes) == []
    kept.sync()
    assert len(list(changes)) == 1


def test_changes_that_are_not_kept(directory: pathlib.Path) -> None:
    with esker.open(directory) as db:
        with pytest.raises(esker.InvalidArgumentError):
            db.changes()
    with esker.open(directory, keep_changes=datetime.timedelta(hours=1)) as db:
        db[b"a"] = b"1"
        with pytest.raises(esker.InvalidArgumentError):
            db.changes(1 << 40)
    # The program in between keeps what is kept.
    with esker.open(directory, keep_changes="as-before") as db:
        db[b"b"] = b"2"
    with esker.open(directory, keep_changes=datetime.timedelta(hours=1)) as db:
        assert [change.key for batch in db.changes() for change in batch] == [b"a", b"b"]
    with esker.open(directory) as db:
        db[b"c"] = b"3"
    with esker.open(directory, keep_changes=datetime.timedelta(hours=1)) as db:
        with pytest.raises(esker.GoneError) as gone:
            db.changes(1)
        assert gone.value.oldest_write is not None and gone.value.oldest_write > 1


@pytest.mark.parametrize("wrong", [True, None, 1.5, b"1", [], object()])
def test_wrong_retentions(directory: pathlib.Path, wrong: Any) -> None:
    with pytest.raises(TypeError, match="keep_changes"):
        esker.open(directory, keep_changes=wrong)
    with pytest.raises(ValueError):
        esker.open(directory, keep_changes="for ever")
    with pytest.raises((OverflowError, ValueError)):
        esker.open(directory, keep_changes=-1)


def test_waits(kept: esker.Database) -> None:
    changes, watch = kept.changes(), kept.watch(b"a")
    assert not watch.wait(NOTHING)
    kept[b"b"] = b""
    assert not watch.wait(NOTHING)
    kept[b"a"] = b""
    assert watch.wait() and not watch.wait(NOTHING)
    assert changes.wait() and len(list(changes)) == 2
    assert not changes.wait(NOTHING)
    for wait in (changes.wait, watch.wait):
        for wrong in (1, "1", 0.5):
            with pytest.raises(TypeError):
                wait(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("of", ["changes", "watch"])
def test_a_write_of_another_thread_ends_a_wait(kept: esker.Database, of: str) -> None:
    waiting = kept.changes() if of == "changes" else kept.watch(b"")
    while waiting.wait(NOTHING):
        pass
    thread = threading.Thread(target=lambda: kept.put(b"a", b""))
    thread.start()
    assert waiting.wait(LONG)
    thread.join()


@pytest.mark.parametrize("of", ["changes", "watch"])
@pytest.mark.parametrize("what", ["database", "itself"])
def test_a_close_ends_a_wait(kept: esker.Database, of: str, what: str) -> None:
    waiting = kept.changes() if of == "changes" else kept.watch(b"")
    while waiting.wait(NOTHING):
        pass
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            waiting.wait()
        except BaseException as exception:
            raised.append(exception)

    thread = threading.Thread(target=wait)
    thread.start()
    (kept if what == "database" else waiting).close()
    thread.join()
    assert len(raised) == 1 and isinstance(raised[0], esker.ClosedError)
    waiting.close()


@pytest.mark.parametrize("of", ["changes", "watch"])
def test_ctrl_c_ends_a_wait(kept: esker.Database, of: str) -> None:
    waiting = kept.changes() if of == "changes" else kept.watch(b"")
    while waiting.wait(NOTHING):
        pass
    main = threading.main_thread().ident
    assert main is not None
    begun = threading.Event()

    def interrupt() -> None:
        begun.wait()
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    # It is ignored in what a shell runs in the background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    # The other thread runs once this one gives the lock of the interpreter away, which is in the wait.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        with pytest.raises(KeyboardInterrupt):
            begun.set()
            waiting.wait(LONG)
    finally:
        sys.setswitchinterval(interval)
        signal.signal(signal.SIGINT, before)
        begun.set()
        thread.join()


def refused(calls: list[Callable[[], object]]) -> None:
    for call in calls:
        with pytest.raises(esker.ClosedError):
            call()


def test_closed_and_collected(kept: esker.Database) -> None:
    changes, watch = kept.changes(), kept.watch(b"")
    with changes, watch:
        pass
    refused([lambda: next(changes), changes.wait, lambda: changes.position, watch.wait])
    changes.close()
    watch.close()
    late, gone = kept.changes(), kept.watch(b"")
    kept.close()
    refused([lambda: next(late), late.wait, gone.wait, kept.changes, lambda: kept.watch(b"")])
    names: list[Callable[[], object]] = [weakref.ref(late), weakref.ref(gone)]
    del late, gone
    gc.collect()
    assert [name() for name in names] == [None, None]


def test_wrong_arguments(kept: esker.Database) -> None:
    wrongs: list[Any] = ["text", 1.5, None, [b"1"]]
    for wrong in wrongs:
        with pytest.raises(TypeError):
            kept.watch(wrong)
        with pytest.raises(TypeError):
            kept.changes(wrong)
    with pytest.raises(OverflowError):
        kept.changes(-1)
    with pytest.raises(TypeError):
        esker.Changes()
    with pytest.raises(TypeError):
        esker.Watch()


def test_entries_expire_from_now_on(db: esker.Database) -> None:
    names = db.keyspace("names")
    names[b"before"] = b""
    day = datetime.timedelta(days=1)
    names.set_ttl(day)
    assert names.expires and names.default_ttl == day
    names[b"after"] = b""
    assert names.expires_at(b"before") is None and names.expires_at(b"after") is not None
    names.set_ttl(True)
    assert names.default_ttl is None
    with pytest.raises(esker.InvalidArgumentError):
        names.set_ttl(False)
    wrongs: list[Any] = ["1", 1, None]
    for wrong in wrongs:
        with pytest.raises(TypeError):
            names.set_ttl(wrong)


def test_a_merge_operator_for_a_keyspace_that_exists(directory: pathlib.Path) -> None:
    longest = esker.AssociativeOperator("longest", lambda older, newer: max(older, newer, key=len))
    with esker.open(directory) as db:
        best, words = db.keyspace("best"), db.keyspace("words")
        best[b"a"] = b"5"
        best.set_merge_operator("max")
        best.merge(b"a", b"7")
        words[b"a"] = b"one"
        words.set_merge_operator(longest)
        words.merge(b"a", b"three")
        assert (best[b"a"], words[b"a"]) == (b"7", b"three")
        assert (best.merge_operator, words.merge_operator) == ("max", "longest")
        for wrong in ("no such", "uint64"):
            with pytest.raises(ValueError):
                best.set_merge_operator(wrong)
        for other in (7, None, b"max", object()):
            with pytest.raises(TypeError):
                best.set_merge_operator(other)  # type: ignore[arg-type]
    with esker.open(directory) as db:
        words = db.keyspace("words", merge_operator=longest)
        words.merge(b"a", b"seventeen")
        assert (db.keyspace("best")[b"a"], words[b"a"]) == (b"7", b"seventeen")


def test_about_how_many(db: esker.Database) -> None:
    db.update({b"%04d" % number: b"" for number in range(1000)})
    db.compact()
    assert db.approximate_count() == 1000
    assert 500 <= db.approximate_count(b"0500") <= 1000
    assert db.approximate_count(b"2", b"3") == 0
