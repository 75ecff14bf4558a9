"""Compaction filters, filter policies, clocks and listeners of a program's own."""

from __future__ import annotations

import datetime
import pathlib
import sys
import threading
from typing import Any, Callable, Optional

import pytest

import esker

UTC = datetime.timezone.utc
HOUR = datetime.timedelta(hours=1)


class Reported:
    """What is reported to `sys.unraisablehook`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.exceptions: list[Optional[BaseException]] = []
        monkeypatch.setattr(sys, "unraisablehook", lambda told: self.exceptions.append(told.exc_value))

    def kinds(self) -> set[str]:
        return {type(exception).__name__ for exception in self.exceptions}


class Clock:
    def __init__(self) -> None:
        self.time = datetime.datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime.datetime:
        return self.time


def test_a_compaction_filter(db: esker.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[bytes, bytes]] = []
    threads: set[int] = set()

    def decide(key: bytes, value: bytes) -> Any:
        seen.append((key, value))
        threads.add(threading.get_ident())
        if key == b"raise":
            raise ValueError("planned")
        return {b"remove": False, b"keep": True, b"short": b"s", b"empty": bytearray(), b"wrong": 7}[key]

    pages = db.keyspace("pages", compaction_filter=esker.CompactionFilter("pages", decide))
    keys = [b"empty", b"keep", b"raise", b"remove", b"short", b"wrong"]
    pages.update((key, b"value") for key in keys)
    reported = Reported(monkeypatch)
    db.compact()
    expected = {b"empty": b"", b"keep": b"value", b"raise": b"value", b"short": b"s", b"wrong": b"value"}
    assert dict(pages) == expected
    assert set(seen) == {(key, b"value") for key in keys}
    assert reported.kinds() == {"ValueError", "TypeError"}
    # It is not stored: the keyspace opens without it.
    assert dict(db.keyspaces["pages"]) == expected


def test_a_compaction_filter_and_its_database(db: esker.Database) -> None:
    """It may read single keys, and nothing else."""
    refused: list[str] = []

    def decide(key: bytes, value: bytes) -> bool:
        if key == b"a":
            assert pages.get(b"b") == b"2"
            calls: list[Callable[[], Any]] = [db.flush, db.compact, lambda: pages.put(b"c", b"3"), lambda: list(pages)]
            for call in calls:
                try:
                    call()
                except esker.InCallbackError as error:
                    refused.append(type(error).__name__)
        return True

    pages = db.keyspace("pages", compaction_filter=esker.CompactionFilter("reads", decide))
    pages.update({b"a": b"1", b"b": b"2"})
    db.compact()
    assert len(refused) >= 4 and dict(pages) == {b"a": b"1", b"b": b"2"}


@pytest.mark.parametrize("exception", [KeyboardInterrupt, SystemExit])
def test_what_ends_programs_in_a_filter(db: esker.Database, exception: type[BaseException]) -> None:
    """The filter is called again. The compaction may be in a thread of the engine, whose caller is none."""
    calls = 0

    def decide(key: bytes, value: bytes) -> bool:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise exception
        return False

    pages = db.keyspace("pages", compaction_filter=esker.CompactionFilter("ends", decide))
    pages[b"a"] = b"1"
    hook, sys.unraisablehook = sys.unraisablehook, lambda told: None
    try:
        db.compact()
    except exception:
        pass
    finally:
        sys.unraisablehook = hook
    db.compact()
    assert calls == 2 and dict(pages) == {}


class Lengths(esker.FilterPolicy):
    name = "lengths"

    def __init__(self) -> None:
        self.made = 0
        self.asked: list[bytes] = []
        self.fails: Optional[Exception] = None
        self.denies = False

    def create_filter(self, keys: list[bytes]) -> Optional[bytes]:
        self.made += 1
        if self.fails is not None:
            raise self.fails
        return bytes(sorted({len(key) for key in keys}))

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        self.asked.append(key)
        if self.fails is not None:
            raise self.fails
        return len(key) in filter and not self.denies


def test_a_filter_policy(directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = Lengths()
    with esker.open(directory, filter_policy=policy, filter_bits_per_key=0) as db:
        db.update({b"a": b"1", b"ccc": b"3"})
        db.flush()
        assert policy.made > 0
        assert db[b"a"] == b"1" and db.get(b"b") is None and db.get(b"bb") is None
        assert {b"a", b"b", b"bb"} <= set(policy.asked)
        # One that denies what is there is believed.
        policy.denies = True
        assert db.get(b"a") is None
        policy.denies = False
        # Where it fails the table is searched.
        reported = Reported(monkeypatch)
        policy.fails = ValueError("planned")
        assert db[b"a"] == b"1" and db[b"ccc"] == b"3"
        db[b"ee"] = b"5"
        db.flush()
        assert db[b"ee"] == b"5"
        assert reported.kinds() == {"ValueError"}
    with esker.open(directory) as db:
        assert db[b"a"] == b"1", "it is not needed to read"


def test_a_clock(directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    with esker.open(directory, clock=clock) as db:
        sessions = db.keyspace("sessions", ttl=True)
        sessions.put(b"a", b"1", ttl=HOUR)
        assert sessions.expires_at(b"a") == clock.time + HOUR
        clock.time += HOUR / 2
        assert sessions[b"a"] == b"1"
        clock.time += HOUR
        assert b"a" not in sessions

        # One that fails says what it said before.
        now = clock.time
        reported = Reported(monkeypatch)
        monkeypatch.setattr(Clock, "__call__", lambda self: 1 / 0)
        sessions.put(b"b", b"1", ttl=HOUR)
        assert sessions.expires_at(b"b") == now + HOUR
        monkeypatch.setattr(Clock, "__call__", lambda self: datetime.datetime(2040, 1, 1))
        sessions.put(b"c", b"1", ttl=HOUR)
        assert sessions.expires_at(b"c") == now + HOUR
        assert "ZeroDivisionError" in reported.kinds() and len(reported.kinds()) == 2


def test_an_event_listener(directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[tuple[str, str]] = []
    reported = Reported(monkeypatch)

    def listen(name: str, text: str) -> None:
        events.append((name, text))
        # It may do everything.
        if name == "flush completed":
            db.stats()
        if name == "ingest completed":
            raise ValueError("planned")

    with esker.open(directory, event_listener=listen) as db:
        db[b"a"] = b"1"
        db.flush()
        db.ingest([(b"b", b"2")])
        db.compact()
    names = {name for name, _ in events}
    assert {"flush completed", "compaction completed", "ingest completed", "table created"} <= names
    assert any(text.startswith("default: ") for name, text in events if name == "flush completed")
    assert reported.kinds() == {"ValueError"}


@pytest.mark.parametrize("option", ["clock", "event_listener", "filter_policy"])
@pytest.mark.parametrize("wrong", [7, "name", None, object()])
def test_wrong_arguments(directory: pathlib.Path, option: str, wrong: Any) -> None:
    with pytest.raises(TypeError, match=option):
        esker.open(directory, **{option: wrong})
    assert not directory.exists()


def test_wrong_filters(db: esker.Database) -> None:
    class Nameless:
        def decide(self, key: bytes, value: bytes) -> bool:
            return True

    class Numbered(Nameless):
        name = 7

    class Plain:
        name = "plain"
        decide = 7

    for wrong in (7, "name", object(), Nameless(), Numbered(), Plain()):
        with pytest.raises(TypeError, match="compaction_filter"):
            db.keyspace("pages", compaction_filter=wrong)  # type: ignore[arg-type]
    assert "pages" not in db.keyspaces


def test_their_objects_end_with_the_database(directory: pathlib.Path) -> None:
    import gc
    import weakref

    clock, policy = Clock(), Lengths()
    filter = esker.CompactionFilter("kept", lambda key, value: True)
    with esker.open(directory, clock=clock, filter_policy=policy) as db:
        db.keyspace("pages", compaction_filter=filter)[b"a"] = b"1"
        kept: list[weakref.ref[Any]] = [weakref.ref(clock), weakref.ref(policy)]
        del clock, policy, filter
        gc.collect()
        assert all(ref() is not None for ref in kept)
    del db
    gc.collect()
    assert [ref() for ref in kept] == [None, None]


def test_unused_memory(directory: pathlib.Path) -> None:
    with esker.open(directory, write_buffer_bytes=1 << 20) as db:
        db[b"a"] = b"1"
    del db
    while esker.unused_memory_bytes() > 0:
        esker.release_unused_memory()
