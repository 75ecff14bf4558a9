"""Followers: databases that are read behind their writer."""

from __future__ import annotations

import gc
import os
import pathlib
import subprocess
import sys
import threading
import weakref
from typing import Any, Callable, Iterator

import pytest

import esker

WRITER = """
import sys
import esker

db = esker.open(sys.argv[1], write_buffer_bytes=1 << 20, keep_changes=1 << 20)
names = db.keyspace("names")
print("ready", flush=True)
for line in sys.stdin:
    exec(line)
    print(db.snapshot().sequence, flush=True)
"""


class Writer:
    """Another process that writes: it does what it is told, and says how far it is."""

    def __init__(self, directory: pathlib.Path) -> None:
        command = [sys.executable, "-c", WRITER, str(directory)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.answer() == "ready"

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def do(self, line: str) -> int:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return int(self.answer())

    def end(self, kill: bool = False) -> None:
        if kill:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def writer(directory: pathlib.Path) -> Iterator[Writer]:
    """Another process that has the database open."""
    writer = Writer(directory)
    yield writer
    writer.end(kill=True)


def test_another_process_writes(directory: pathlib.Path, writer: Writer) -> None:
    writer.do('names[b"a"] = b"1"')
    with esker.open_follower(directory, keep_changes=1 << 20) as follower:
        db = follower.db
        names = db.keyspaces["names"]
        watch, changes = names.watch(b""), db.changes()
        assert dict(names) == {b"a": b"1"} and len(list(changes)) == 1
        last = writer.do('names[b"b"] = b"2"')
        assert b"b" not in names
        lag = follower.lag()
        assert lag is not None and lag.log_bytes > 0 and lag == (1, lag.log_bytes, last)
        with db.snapshot() as before:
            assert follower.catch_up() == last
            assert follower.lag() == esker.FollowerLag(batches=0, log_bytes=0, sequence=last)
            assert names[b"b"] == b"2" and b"b" not in before.keyspace(names)
        assert watch.wait() and [change.key for batch in changes for change in batch] == [b"b"]

        # Through a flush and a compaction, other names, new keyspaces, and the death of the writer.
        writer.do('db.update((b"%06d" % number, bytes(100)) for number in range(20000))')
        writer.do("db.compact()")
        writer.do('names.rename("people")')
        last = writer.do('db.keyspace("later")[b"l"] = b"3"')
        assert follower.catch_up() == last == follower.catch_up()
        assert db.keyspace_names() == ["default", "later", "people"] and names.name == "people"
        assert len(db) == 20000 and db.keyspaces["later"][b"l"] == b"3"
        writer.end(kill=True)
        assert follower.catch_up() == last
        again = Writer(directory)
        again.do('db[b"again"] = b"4"')
        follower.catch_up()
        assert db[b"again"] == b"4"
        again.end()

        for write in (lambda: db.put(b"a", b""), lambda: db.keyspace("new"), db.flush):
            with pytest.raises(esker.ReadOnlyError):
                write()


def test_operators_of_the_program(directory: pathlib.Path) -> None:
    longest = esker.AssociativeOperator("longest", lambda older, newer: max(older, newer, key=len))
    with esker.open(directory) as writer, esker.open_follower(directory) as follower:
        words = writer.keyspace("words", merge_operator=longest)
        words.merge(b"w", b"three")
        follower.catch_up()
        followed = follower.db.keyspace("words", merge_operator=longest)
        words.merge(b"w", b"eleven")
        follower.catch_up()
        assert followed[b"w"] == b"eleven"


def test_what_cannot_be_followed(directory: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(esker.NotFoundError):
        esker.open_follower(directory)
    assert not directory.exists()
    for wrong in (None, 7, object()):
        with pytest.raises(TypeError):
            esker.open_follower(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no such option"):
        esker.open_follower(tmp_path, nonsense=1)
    with pytest.raises(TypeError):
        esker.open_follower(tmp_path, block_bytes="1")
    with pytest.raises(TypeError):
        esker.Follower()


def test_there_is_no_default_keyspace_yet(directory: pathlib.Path) -> None:
    def missing(db: esker.Database) -> None:
        calls: list[Callable[[], object]] = [lambda: db[b"a"], lambda: db.get(b"a"), lambda: list(db), lambda: db.id]
        calls += [lambda: db.put(b"a", b""), lambda: db.merge_operator]
        for call in calls:
            with pytest.raises(esker.NotFoundError, match="default"):
                call()
        assert (db.name, db.keyspace_names()) == ("default", ["names"])

    with esker.open(directory) as writer:
        writer.keyspace("names")
        with esker.open_follower(directory) as follower, esker.open(directory, read_only=True) as reader:
            missing(follower.db)
            missing(reader)
            with follower.db.snapshot() as before:
                writer[b"a"] = b"1"
                missing(follower.db)
                follower.catch_up()
                assert follower.db[b"a"] == b"1" and b"a" not in before
            with pytest.raises(esker.ReadOnlyError):
                follower.db[b"a"] = b"2"
            missing(reader)


def refused(calls: list[Callable[[], object]]) -> None:
    for call in calls:
        with pytest.raises(esker.ClosedError):
            call()


def test_closed_followers(directory: pathlib.Path) -> None:
    with esker.open(directory) as writer:
        writer[b"a"] = b"1"
        follower = esker.open_follower(directory)
        db, snapshot, scan = follower.db, follower.db.snapshot(), follower.db.scan()
        assert follower.db is db and not follower.closed
        with follower:
            assert db[b"a"] == b"1"
        assert follower.closed and db.closed and "closed" in repr(follower)
        refused([follower.catch_up, follower.lag, lambda: db[b"a"], lambda: snapshot[b"a"], lambda: next(scan)])
        follower.close()

        # The end of its database is that of the follower.
        follower = esker.open_follower(directory)
        follower.db.close()
        refused([follower.catch_up, follower.lag])
        assert follower.closed
        follower.close()

        # A database that outlives its follower's object, and an object that nobody refers to.
        follower = esker.open_follower(directory)
        db, gone = follower.db, weakref.ref(follower)
        del follower
        gc.collect()
        assert gone() is None and db[b"a"] == b"1"
        db.close()
        # It has held no lock.
        writer[b"a"] = b"2"


def test_a_close_beside_calls(directory: pathlib.Path) -> None:
    with esker.open(directory) as writer:
        writer[b"a"] = b"1"
        for _ in range(20):
            follower = esker.open_follower(directory)
            started = threading.Barrier(3)
            failures: list[BaseException] = []

            def use() -> None:
                started.wait()
                try:
                    while True:
                        follower.catch_up()
                except esker.ClosedError:
                    pass
                except BaseException as failure:
                    failures.append(failure)

            threads = [threading.Thread(target=use) for _ in range(2)]
            for thread in threads:
                thread.start()
            started.wait()
            writer[b"a"] = b"2"
            follower.close()
            for thread in threads:
                thread.join()
            assert failures == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_followers_after_a_fork(directory: pathlib.Path) -> None:
    esker.open(directory).close()
    with esker.open_follower(directory) as follower:
        calls: list[Any] = [follower.catch_up, follower.lag, lambda: esker.open_follower(directory), follower.close]
        child = os.fork()
        if child == 0:
            names = []
            for call in calls:
                try:
                    call()
                    names.append("")
                except BaseException as error:
                    names.append(type(error).__name__)
            os._exit(0 if names == ["ForkedError"] * 3 + [""] else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert follower.catch_up() >= 0
