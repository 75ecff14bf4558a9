"""What programs get wrong: each is a clear error, or safe."""

from __future__ import annotations

import array
import gc
import multiprocessing
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import weakref
from typing import Any, Callable, Optional

import pytest

import esker
import esker.plyvel as plyvel

WRONG = ["text", 7, 1.5, None, object(), [b"a"], {b"a": b"b"}]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_key_or_value_of_a_wrong_type(db: esker.Database, wrong: Any) -> None:
    cursor, batch, transaction = db.cursor(), db.batch(), db.transaction()
    calls: list[Callable[[], object]] = [
        lambda: db.put(wrong, b""),
        lambda: db.put(b"", wrong),
        lambda: db.get(wrong),
        lambda: db[wrong],
        lambda: db.__setitem__(wrong, b""),
        lambda: db.__delitem__(wrong),
        lambda: wrong in db,
        lambda: db.delete(wrong),
        lambda: db.merge(wrong, b""),
        lambda: db.pop(wrong),
        lambda: db.get_many([wrong]),
        lambda: db.get_into(wrong, bytearray(1)),
        lambda: db.put_if_absent(wrong, b""),
        lambda: db.compare_and_swap(wrong, None, None),
        lambda: db.expires_at(wrong),
        lambda: db.ingest([(wrong, b"")]),
        lambda: cursor.seek(wrong),
        lambda: cursor.seek_for_prev(wrong),
        lambda: batch.put(wrong, b""),
        lambda: batch.delete(wrong),
        lambda: transaction.get(wrong),
        lambda: transaction.put(wrong, b""),
    ]
    if wrong is not None:
        calls += [
            lambda: db.scan(wrong),
            lambda: db.scan(None, wrong),
            lambda: db.scan(prefix=wrong),
            lambda: db.delete_range(wrong),
            lambda: db.count(wrong),
            lambda: db[wrong:],
            lambda: db.approximate_size(wrong),
            lambda: db.compact_range(wrong),
        ]
    for call in calls:
        with pytest.raises(TypeError):
            call()
    assert len(db) == 0 and len(batch) == 0


def test_text_is_refused_with_a_hint(db: esker.Database) -> None:
    with pytest.raises(TypeError, match="key must be bytes .* not str; encode text"):
        db.put("ada", b"")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [7, None, object(), b"", "", ["a"]])
def test_other_arguments_of_a_wrong_type(db: esker.Database, wrong: Any) -> None:
    snapshot = db.snapshot()
    for call in (db.keyspace, db.drop_keyspace, snapshot.keyspace, db.batch().keyspace, db.transaction().keyspace):
        with pytest.raises((TypeError, esker.Error)):
            call(wrong)
    with pytest.raises(TypeError):
        db.transact(wrong)
    with pytest.raises((TypeError, ValueError)):
        esker.open(wrong).close()


def test_names_that_are_none(db: esker.Database) -> None:
    for name in ("", "a\0b", "a\nb", "x" * 256):
        with pytest.raises(esker.InvalidArgumentError):
            db.keyspace(name)
    with pytest.raises(UnicodeEncodeError):
        db.keyspace("\ud800")


def test_zero_bytes(db: esker.Database, tmp_path: pathlib.Path) -> None:
    key, value = b"a\0b\0", b"\0\0\1"
    db[key] = value
    db[b"a"] = b"other"
    assert db[key] == value and db[b"a"] == b"other" and list(db.scan_keys(prefix=b"a\0")) == [key]
    for path in (f"{tmp_path}/a\0b", os.fsencode(tmp_path) + b"/a\0b"):
        with pytest.raises(ValueError, match="null byte"):
            esker.open(path)
    with pytest.raises(ValueError, match="null byte"):
        plyvel.DB(f"{tmp_path}/a\0b", create_if_missing=True)


def test_lengths_at_and_beyond_the_limits(db: esker.Database) -> None:
    longest = bytes(1 << 20)
    db[longest] = b"1"
    db[b""] = b""
    assert db[longest] == b"1" and db[b""] == b"" and len(db) == 2
    with pytest.raises(esker.InvalidArgumentError):
        db.put(longest + b"x", b"")
    with pytest.raises(esker.InvalidArgumentError):
        db.put(b"k", memoryview(bytes((1 << 30) + 1)))
    with pytest.raises(esker.InvalidArgumentError):
        db.batch().put(longest + b"x", b"")
    assert db.get(longest + b"x") is None and len(db) == 2


def test_any_contiguous_buffer_is_taken(db: esker.Database) -> None:
    data = bytes(range(100))
    for buffer in (bytearray(data), memoryview(data), memoryview(bytearray(data)), array.array("B", data)):
        db.put(buffer, buffer)
        assert db[data] == data and db[buffer] == data
        del db[buffer]
    view = memoryview(data)[10:20]
    db[view] = view
    assert db[data[10:20]] == data[10:20]
    numbers = array.array("d", [1.5, -2.0])
    db[b"numbers"] = numbers
    assert db[b"numbers"] == numbers.tobytes()
    with pytest.raises(TypeError):
        db[b"k"] = memoryview(data)[::2]
    released = memoryview(data)
    released.release()
    with pytest.raises(TypeError):
        db[b"k"] = released


def test_a_buffer_may_change_after_the_call(db: esker.Database) -> None:
    buffer = bytearray(b"before")
    batch = plyvel.DB(db.path + "-plyvel", create_if_missing=True).write_batch()
    batch.put(b"k", buffer)
    db[b"k"] = buffer
    buffer[:] = b"after!"
    buffer.extend(b"and longer")
    assert db[b"k"] == b"before"
    batch.write()


def test_a_value_goes_into_a_buffer_of_the_program(db: esker.Database) -> None:
    db.update({b"a": b"1815", b"empty": b""})
    buffer = bytearray(6)
    assert db.get_into(b"a", buffer) == 4 and bytes(buffer) == b"1815\0\0"
    assert db.get_into(b"none", buffer) is None and db.get_into(b"empty", buffer) == 0
    assert bytes(buffer) == b"1815\0\0"
    assert db.get_into(b"a", memoryview(buffer)[2:]) == 4 and bytes(buffer) == b"181815"
    with pytest.raises(ValueError, match="4 bytes"):
        db.get_into(b"a", bytearray(3))
    for wrong in (b"12345678", memoryview(b"12345678"), "text", None):
        with pytest.raises((TypeError, BufferError)):
            db.get_into(b"a", wrong)  # type: ignore[arg-type]


def test_closed_handles(directory: pathlib.Path) -> None:
    db = esker.open(directory)
    db.update({b"a": b"1", b"b": b"2"})
    names = db.keyspace("names")
    snapshot, batch, transaction = db.snapshot(), db.batch(), db.transaction()
    scan, cursor, view = db.scan(), db.cursor(), snapshot.keyspace(names)
    inside = transaction.scan()
    next(scan)
    cursor.seek_to_first()
    db.close()
    db.close()
    assert db.closed and snapshot.closed
    calls: list[Callable[[], object]] = [
        lambda: db[b"a"],
        lambda: db.put(b"a", b""),
        lambda: names.get(b"a"),
        lambda: names.merge(b"a", b""),
        lambda: list(db),
        lambda: len(db),
        lambda: db.keyspace("names"),
        db.keyspace_names,
        db.snapshot,
        db.batch,
        db.transaction,
        db.flush,
        db.properties,
        lambda: snapshot[b"a"],
        lambda: view.get(b"a"),
        lambda: batch.put(b"a", b""),
        batch.commit,
        lambda: transaction.get(b"a"),
        transaction.commit,
        lambda: next(scan),
        lambda: next(inside),
        cursor.key,
        cursor.next,
        lambda: list(db.keys()),
    ]
    for call in calls:
        with pytest.raises(esker.ClosedError):
            call()
    for handle in (scan, cursor, snapshot):
        handle.close()
    assert issubclass(esker.ClosedError, RuntimeError)


def test_iterators_outlive_their_database(directory: pathlib.Path) -> None:
    db = esker.open(directory)
    db.update((b"%03d" % number, bytes(1000)) for number in range(300))
    db.flush()
    scan, cursor, snapshot = db.scan(), db.cursor(), db.snapshot()
    next(scan)
    del db
    gc.collect()
    assert len(list(scan)) == 299
    cursor.seek(b"299")
    assert cursor.key() == b"299" and len(snapshot) == 300
    # The database is open until the last of them goes.
    with pytest.raises(esker.LockedError):
        esker.open(directory)
    del scan, cursor, snapshot
    gc.collect()
    esker.open(directory).close()


@pytest.mark.parametrize("seed", range(20))
def test_handles_go_in_any_order(directory: pathlib.Path, seed: int) -> None:
    chance = random.Random(seed)
    db = esker.open(directory)
    db.update((b"%03d" % number, b"v") for number in range(100))
    snapshot, transaction, batch = db.snapshot(), db.transaction(), db.batch()
    scan, inside = db.scan(), transaction.scan()
    next(scan)
    next(inside)
    batch.put(b"x", bytes(100_000))
    handles: list[Any] = [db, db.keyspace("k"), snapshot, snapshot.keyspace("k"), transaction, batch, scan, inside]
    handles += [db.cursor(), snapshot.cursor(), db.keys(), db.keyspaces, db.items()]
    del db, snapshot, transaction, batch, scan, inside
    chance.shuffle(handles)
    cycle: list[Any] = []
    cycle.append((cycle, handles.pop()))
    while handles:
        handles.pop()
        if chance.random() < 0.3:
            gc.collect()
    del cycle
    gc.collect()
    with esker.open(directory) as db:
        assert len(db) == 100


def test_handles_may_be_referred_to_weakly(db: esker.Database) -> None:
    scan = db.scan()
    reference = weakref.ref(scan)
    assert reference() is scan
    del scan
    gc.collect()
    assert reference() is None


def test_two_opens_in_one_process(db: esker.Database, directory: pathlib.Path) -> None:
    for other in (lambda: esker.open(directory), lambda: plyvel.DB(str(directory))):
        with pytest.raises(esker.LockedError) as locked:
            other()
        assert locked.value.retryable and locked.value.holder == os.getpid()
        assert locked.value.path is not None and locked.value.path.startswith(str(directory))
    with esker.open(directory, read_only=True) as reader:
        db[b"later"] = b""
        assert reader.keyspace_names() == []
    with pytest.raises(esker.LockedError):
        esker.destroy(directory)


def test_a_keyspace_of_another_database(db: esker.Database, tmp_path: pathlib.Path) -> None:
    with esker.open(tmp_path / "other") as other:
        stranger = other.keyspace("k")
        for call in (db.snapshot().keyspace, db.batch().keyspace, db.transaction().keyspace):
            with pytest.raises(esker.InvalidArgumentError):
                call(stranger)


def test_options_are_explained_before_an_open(tmp_path: pathlib.Path) -> None:
    with esker.open(tmp_path / "db", block_bytes=16384, profile="counters") as db:
        assert esker.explain_options(block_bytes=16384, profile="counters") == db.explain()
    wrongs: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"memory_budget_bytes": 1}, esker.InvalidArgumentError),
        ({"compression": "zstd"}, esker.InvalidArgumentError),
        ({"compression": "none of them"}, ValueError),
        ({"no_such_option": 1}, TypeError),
        ({"block_bytes": "8 KiB"}, TypeError),
    ]
    for options, error in wrongs:
        with pytest.raises(error):
            esker.explain_options(**options)
        with pytest.raises(error):
            esker.open(tmp_path / "db", **options)


def test_databases_that_are_none(tmp_path: pathlib.Path) -> None:
    with pytest.raises(esker.NotFoundError) as missing:
        esker.open(tmp_path / "none", create_if_missing=False)
    assert isinstance(missing.value, FileNotFoundError)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(esker.IOError) as failed:
        esker.open(tmp_path / "file" / "db")
    assert failed.value.errno is not None and failed.value.path is not None
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes.txt").write_bytes(b"")
    with pytest.raises(esker.InvalidArgumentError):
        esker.open(tmp_path / "foreign")


def test_damage_is_named_and_repaired(directory: pathlib.Path) -> None:
    with esker.open(directory) as db:
        db.update((b"%05d" % number, random.randbytes(100)) for number in range(5000))
        db.flush()
    table = next(path for path in directory.iterdir() if path.suffix == ".table")
    content = bytearray(table.read_bytes())
    content[1000:1100] = bytes(100)
    table.write_bytes(content)
    with pytest.raises(esker.CorruptionError) as damage:
        with esker.open(directory) as db:
            db.verify()
    assert damage.value.path == str(table) and damage.value.offset is not None
    assert damage.value.damage and damage.value.damage[0] == str(damage.value)
    # Also where it does not open: the table is found all the same.
    with pytest.raises(esker.CorruptionError) as damage:
        esker.verify(directory)
    current = directory / "CURRENT"
    named, manifests = current.read_bytes(), [*directory.glob("MANIFEST-*")]
    contents = [manifest.read_bytes() for manifest in manifests]
    for path in [current, *manifests]:
        path.write_bytes(b"damaged")
    with pytest.raises(esker.CorruptionError) as damage:
        esker.verify(directory)
    assert damage.value.damage and any(str(table) in text for text in damage.value.damage)
    assert len(damage.value.damage) > 1
    current.write_bytes(named)
    for manifest, before in zip(manifests, contents):
        manifest.write_bytes(before)
    with pytest.raises(esker.NotFoundError) as nothing:
        esker.verify(directory / "nowhere")
    assert nothing.value.damage is None
    report = esker.repair(directory)
    assert not report.healthy and report.problems and report.lost_entries
    with esker.open(directory) as db:
        assert 0 < len(db) < 5000
    esker.destroy(directory)


def test_the_database_is_closed_while_threads_use_it(directory: pathlib.Path) -> None:
    db = esker.open(directory)
    db.update((b"%04d" % number, b"v") for number in range(2000))
    started = threading.Barrier(5)
    failures: list[BaseException] = []

    def use(work: Callable[[], object]) -> None:
        started.wait()
        try:
            while True:
                work()
        except (esker.ClosedError, esker.ReadOnlyError):
            pass
        except BaseException as failure:
            failures.append(failure)

    work: list[Callable[[], object]] = [
        lambda: list(db.scan()),
        lambda: db.put(b"k", b"v"),
        lambda: db.get(b"0001"),
        lambda: db.snapshot().close(),
    ]
    threads = [threading.Thread(target=use, args=(each,)) for each in work]
    for thread in threads:
        thread.start()
    started.wait()
    db.close()
    for thread in threads:
        thread.join()
    assert not failures
    esker.open(directory).close()


def test_one_iterator_in_many_threads(db: esker.Database) -> None:
    db.update((b"%05d" % number, b"") for number in range(5000))
    scan = db.scan_keys()
    parts: list[list[bytes]] = [[] for _ in range(4)]
    threads = [threading.Thread(target=part.extend, args=(scan,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(key for part in parts for key in part) == [b"%05d" % number for number in range(5000)]


def in_child(body: Callable[[], object]) -> str:
    """What `body` returns, or the exception that it raises, in a forked process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = repr(body())
        except BaseException as error:
            result = type(error).__name__
        os.write(writing, result.encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        result = pipe.read().decode()
    assert os.waitpid(child, 0)[1] == 0
    return result


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_a_fork_the_child_gets_errors(directory: pathlib.Path, tmp_path: pathlib.Path) -> None:
    db = esker.open(directory)
    db[b"a"] = b"1"
    names, scan, cursor, snapshot = db.keyspace("names"), db.scan(), db.cursor(), db.snapshot()
    batch, transaction = db.batch(), db.transaction()
    batch.put(b"b", b"2")
    transaction.put(b"c", b"3")
    calls: list[Callable[[], object]] = [
        lambda: db[b"a"],
        lambda: db.put(b"a", b"2"),
        lambda: names.put(b"a", b"2"),
        lambda: next(scan),
        cursor.seek_to_first,
        lambda: snapshot[b"a"],
        batch.commit,
        transaction.commit,
        db.flush,
        lambda: db.keyspace("new"),
    ]
    for call in calls:
        assert in_child(call) == "ForkedError"

    def drop_everything() -> str:
        nonlocal db, names, scan, cursor, snapshot, batch, transaction
        db.close()
        del db, names, scan, cursor, snapshot, batch, transaction
        calls.clear()
        gc.collect()
        return "dropped"

    assert in_child(drop_everything) == "'dropped'"
    assert in_child(lambda: esker.open(directory)) == "ForkedError"

    def another() -> bytes:
        with esker.open(tmp_path / "of the child") as other:
            other[b"x"] = b"child"
            return other[b"x"]

    # Threads of the parent wait in queues that all databases share.
    assert in_child(another) == "ForkedError"
    assert in_child(lambda: esker.repair(directory)) == "ForkedError"
    assert in_child(lambda: esker.verify(directory)) == "ForkedError"
    # Nothing of that has touched the parent's.
    assert next(scan) == (b"a", b"1") and db[b"a"] == b"1"
    batch.commit()
    db.flush()
    assert dict(db) == {b"a": b"1", b"b": b"2"}
    with pytest.raises(esker.LockedError):
        esker.open(directory)
    db.close()
    # Where all are closed, a child may open what it likes.
    assert in_child(another) == repr(b"child")
    with esker.open(directory) as again:
        assert dict(again) == {b"a": b"1", b"b": b"2"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_a_fork_the_child_gets_errors_from_plyvel_too(tmp_path: pathlib.Path) -> None:
    path, other = str(tmp_path / "db"), str(tmp_path / "of the child")
    db = plyvel.DB(path, create_if_missing=True)
    db.put(b"a", b"1")
    prefixed, batch, snapshot = db.prefixed_db(b"a"), db.write_batch(), db.snapshot()
    iterator, raw = db.iterator(), db.raw_iterator()
    batch.put(b"b", b"2")
    calls: list[Callable[[], object]] = [
        lambda: db.get(b"a"),
        lambda: prefixed.put(b"", b"2"),
        lambda: snapshot.get(b"a"),
        lambda: next(iterator),
        raw.seek_to_first,
        batch.write,
        db.snapshot,
        lambda: plyvel.DB(path),
        lambda: plyvel.DB(other, create_if_missing=True),
        lambda: plyvel.repair_db(path),
        lambda: plyvel.destroy_db(other),
    ]
    for call in calls:
        assert in_child(call) == "ForkedError"
    ends: list[Callable[[], object]] = [iterator.close, raw.close, snapshot.close, db.close]
    for end in ends:
        assert in_child(end) == "None"
    assert next(iterator) == (b"a", b"1")
    batch.write()
    db.close()
    assert in_child(lambda: plyvel.DB(other, create_if_missing=True).close()) == "None"
    with plyvel.DB(path) as again:
        assert list(again) == [(b"a", b"1"), (b"b", b"2")]


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_ends_by_itself(db: esker.Database) -> None:
    db[b"a"] = b"1"
    process = multiprocessing.get_context("fork").Process(target=lambda: None)
    process.start()
    process.join()
    assert process.exitcode == 0 and db[b"a"] == b"1"


PROGRAM = """
import sys, threading
import esker, esker.plyvel
directory = sys.argv[1]
db = esker.open(directory)
total = esker.AssociativeOperator("total", lambda older, newer: b"%d" % (int(older) + int(newer)))
sums = db.keyspace("sums", merge_operator=total)
for step in range(3000):
    sums.merge(b"%d" % (step % 5), b"1")
sums.put(b"without log", b"0", wal=False)
old = esker.plyvel.DB(directory + "-plyvel", create_if_missing=True)
old.put(b"k", b"v")
keep = [db.scan(), db.cursor(), db.snapshot(), db.batch(), db.transaction(), old.iterator()]
next(keep[0], None)
keep.append(keep)
"""

ENDS = {
    "at its end": "",
    "by an exception": "raise SystemExit(0)",
    "with a daemon thread at work": """
def work():
    try:
        while True:
            sums.merge(b"x", b"1")
            list(sums.scan())
    except esker.Error:
        pass  # it was closed
threading.Thread(target=work, daemon=True).start()
""",
    "with modules that are gone": "sys.modules.clear()",
    "in the middle of a scan": "for pair in sums.scan(): sys.exit(0)",
    "with an object that uses it later": """
class Late:
    def __del__(self):
        try:
            sums.put(b"late", b"1")
        except Exception:
            pass
late = Late()
late.self = late
""",
}


@pytest.mark.parametrize("end", ENDS)
def test_the_interpreter_ends_with_open_databases(directory: pathlib.Path, end: str) -> None:
    program = PROGRAM + ENDS[end]
    ended = subprocess.run(
        [sys.executable, "-c", program, str(directory)], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr and "panicked" not in ended.stderr, ended.stderr
    total = esker.AssociativeOperator("total", lambda older, newer: b"%d" % (int(older) + int(newer)))
    with esker.open(directory) as db:
        sums = db.keyspace("sums", merge_operator=total)
        assert [sums[b"%d" % key] for key in range(5)] == [b"600"] * 5
        # It was closed, not only dropped.
        assert sums[b"without log"] == b"0"
    with plyvel.DB(f"{directory}-plyvel") as old:
        assert old.get(b"k") == b"v"


def test_the_interpreter_lock_is_released(db: esker.Database) -> None:
    """A thread that waits in the engine does not stop the others."""
    entered, may_go_on = threading.Event(), threading.Event()

    class Waiting(esker.MergeOperator):
        name = "waiting"

        def full_merge(self, key: bytes, existing: Any, operands: list[bytes]) -> bytes:
            entered.set()
            assert may_go_on.wait(300)
            return operands[-1]

    words = db.keyspace("words", merge_operator=Waiting())
    words.merge(b"k", b"1")
    found: list[Any] = []
    reader = threading.Thread(target=lambda: found.append(words[b"k"]))
    reader.start()
    assert entered.wait(300)
    # Here the other thread is in the engine, and this one runs Python and calls it too.
    db[b"x"] = b"1"
    assert db[b"x"] == b"1" and not found
    may_go_on.set()
    reader.join()
    assert found == [b"1"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_waits_for_no_lock_of_a_thread_that_is_gone(directory: pathlib.Path) -> None:
    """Another thread is in a call of each object when the process is forked."""
    entered, leave = threading.Semaphore(0), threading.Event()

    class Slow(esker.MergeOperator):
        name = "slow"

        def full_merge(self, key: bytes, existing: Optional[bytes], operands: list[bytes]) -> Optional[bytes]:
            entered.release()
            leave.wait()
            return operands[-1]

    with esker.open(directory) as db:
        words = db.keyspace("words", merge_operator=Slow())
        words.merge(b"k", b"v")
        scan, cursor, transaction = words.scan(), words.cursor(), db.transaction()
        part = transaction.keyspace(words)
        part_scan = iter(part)
        calls: list[Callable[[], object]] = [
            lambda: next(scan),
            cursor.seek_to_first,
            lambda: next(part_scan),
        ]
        threads = [threading.Thread(target=call) for call in calls]
        for thread in threads:
            thread.start()
        for _ in threads:
            entered.acquire()

        def in_time(body: Callable[[], object]) -> Callable[[], object]:
            def limited() -> object:
                # A child that waits is ended, which the parent sees.
                signal.alarm(60)
                return body()

            return limited

        def exit_by(handle: Any) -> Callable[[], object]:
            def leave_the_block() -> None:
                with handle:
                    sys.exit(3)

            return leave_the_block

        try:
            for close in (scan.close, cursor.close, transaction.rollback):
                assert in_child(in_time(close)) == "None"
            batch = db.batch()
            for handle in (scan, cursor, transaction, batch, db.snapshot(), db):
                assert in_child(in_time(exit_by(handle))) == "SystemExit"
            others: list[Callable[[], object]] = [
                lambda: next(part_scan),
                lambda: transaction.finished,
                transaction.commit,
                lambda: transaction.__exit__(None, None, None),
                lambda: batch.__exit__(None, None, None),
            ]
            for call in others:
                assert in_child(in_time(call)) == "ForkedError"
        finally:
            leave.set()
            for thread in threads:
                thread.join()


def test_a_closed_database_does_not_replace_an_exception(directory: pathlib.Path) -> None:
    with plyvel.DB(str(directory), create_if_missing=True) as old:
        olds = [old.write_batch(transaction=transaction) for transaction in (False, True)]
    db = esker.open(directory)
    handles: list[Any] = [db.batch(), db.transaction(), db.scan(), db.cursor(), db.snapshot(), *olds]
    db.close()
    for handle in handles:
        exit_of = type(handle).__exit__
        exit_of(handle, LookupError, LookupError(), None)
    for handle in (handles[0], handles[1], *olds):
        with pytest.raises(esker.ClosedError):
            type(handle).__exit__(handle, None, None, None)


def test_a_second_close_waits_for_the_first(directory: pathlib.Path) -> None:
    is_closing, entered, leave = False, threading.Event(), threading.Event()

    def compare(a: bytes, b: bytes) -> int:
        if is_closing:
            entered.set()
            leave.wait()
        return (a > b) - (a < b)

    order = esker.Comparator("slow", compare)
    db = esker.open(directory, comparators=[order])
    words = db.keyspace("words", comparator=order)
    for number in range(100):
        words.put(b"%02d" % (number * 37 % 100), b"", wal=False)
    is_closing = True
    first = threading.Thread(target=db.close)
    first.start()
    entered.wait()

    def let_go() -> None:
        # Where the second close did not wait, it is over long before this is.
        with esker.open(directory.with_name("other")) as other:
            other[b"k"] = b"v"
        leave.set()

    other = threading.Thread(target=let_go)
    other.start()
    db.close()
    assert leave.is_set()
    with esker.open(directory, comparators=[order]) as again:
        assert len(again.keyspaces["words"]) == 100
    first.join()
    other.join()
