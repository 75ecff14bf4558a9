"""Orders of keys of a program's own."""

from __future__ import annotations

import pathlib
import random
import sys
import threading
from typing import Any

import pytest

import esker
import esker.plyvel

BY_LENGTH = esker.Comparator("by-length", lambda a, b: len(a) - len(b))


def by_length(key: bytes) -> tuple[int, bytes]:
    return len(key), key


def test_a_keyspace_in_an_order_of_its_own(directory: pathlib.Path) -> None:
    chance = random.Random(11)
    keys = [bytes(chance.choices(b"abc", k=chance.randrange(9))) for _ in range(600)]
    with esker.open(directory, comparators=[BY_LENGTH]) as db:
        words = db.keyspace("words", comparator=BY_LENGTH)
        assert words.comparator == "by-length" and db.keyspace("plain").comparator == "bytewise"
        for key in keys:
            words[key] = key
            if chance.random() < 0.02:
                db.flush()
        expected = sorted(set(keys), key=by_length)
        assert list(words) == expected and list(reversed(words)) == expected[::-1]
        for _ in range(50):
            start, stop = chance.choice(keys), chance.choice(keys)
            inside = [key for key in expected if by_length(start) <= by_length(key) < by_length(stop)]
            assert list(words.scan_keys(start, stop)) == inside
            assert list(words.scan_keys(start, stop, reverse=True)) == inside[::-1]
            assert words.count(start, stop) == len(inside)
        with db.transaction() as transaction:
            assert list(transaction.keyspace(words)) == expected
        with pytest.raises(esker.InvalidArgumentError, match="prefix"):
            words.scan(prefix=b"a")
        with pytest.raises(esker.InvalidArgumentError, match="prefix"):
            words.delete_range(prefix=b"a")
        db.compact()
    # It is stored by its name, and has to be given at each open.
    with pytest.raises(esker.MissingComparatorError) as missing:
        esker.open(directory)
    assert (missing.value.keyspace, missing.value.comparator) == ("words", "by-length")
    with esker.open(directory, comparators=[BY_LENGTH]) as db:
        assert list(db.keyspaces["words"]) == expected


def test_the_reverse_order(db: esker.Database) -> None:
    latest = db.keyspace("latest", comparator="reverse-bytewise")
    latest.update({b"a1": b"", b"a2": b"", b"b1": b""})
    assert list(latest) == [b"b1", b"a2", b"a1"] and latest.first() == (b"b1", b"")
    assert list(latest.scan_keys(prefix=b"a")) == [b"a2", b"a1"]
    assert list(latest.scan_keys(b"a2", b"a1")) == [b"a2"] and list(latest.scan_keys(b"a1", b"a2")) == []
    with db.batch() as batch:
        batch.keyspace(latest).delete_range(prefix=b"a")
    assert list(latest) == [b"b1"]
    for wrong in ("upwards", ""):
        with pytest.raises(ValueError):
            db.keyspace("x", comparator=wrong)
    for wrong_type in (7, object(), b"reverse-bytewise"):
        with pytest.raises(TypeError):
            db.keyspace("x", comparator=wrong_type)  # type: ignore[arg-type]
    with pytest.raises(esker.InvalidArgumentError):
        db.keyspace("latest", comparator=BY_LENGTH)


def test_an_order_that_raises_harms_its_keyspace_only(
    directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)

    def compare(a: bytes, b: bytes) -> int:
        raise LookupError("no order")

    broken = esker.Comparator("broken", compare)
    with esker.open(directory, comparators=[broken]) as db:
        words = db.keyspace("words", comparator=broken)
        for number in range(50):
            words[b"%02d" % number] = b""
        assert len(list(words)) == 50
        db[b"k"] = b"v"
        db.compact()
        assert db[b"k"] == b"v"
    assert told and all(isinstance(each.exc_value, LookupError) for each in told)


def test_comparators_of_plyvel(directory: pathlib.Path) -> None:
    def backward(a: bytes, b: bytes) -> int:
        return (a < b) - (a > b)

    arguments: dict[str, Any] = {"comparator": backward, "comparator_name": b"backward"}
    with esker.plyvel.DB(str(directory), create_if_missing=True, **arguments) as db:
        for number in range(100):
            db.put(b"%02d" % number, b"")
        assert list(db.iterator(include_value=False)) == [b"%02d" % number for number in reversed(range(100))]
        inside = list(db.iterator(start=b"50", stop=b"40", include_value=False))
        assert inside == [b"%02d" % number for number in range(50, 40, -1)]
        iterator = db.iterator(start=b"50", stop=b"40", include_value=False, reverse=True)
        assert next(iterator) == b"41" and iterator.prev() == b"41"
        iterator.seek(b"99")
        assert iterator.prev() == b"50"
    wrongs: list[dict[str, Any]] = [{}, {"comparator": backward, "comparator_name": b"other"}]
    for wrong in wrongs:
        with pytest.raises(esker.plyvel.Error):
            esker.plyvel.DB(str(directory), **wrong)
    with pytest.raises(ValueError):
        esker.plyvel.DB(str(directory), comparator=backward, comparator_name=b"\xff")
    esker.plyvel.repair_db(str(directory), **arguments)
    with esker.plyvel.DB(str(directory), **arguments) as db:
        assert len(list(db)) == 100


def test_comparators_in_many_threads(directory: pathlib.Path) -> None:
    """The engine compares in its threads, and in those of the program."""
    with esker.open(directory, comparators=[BY_LENGTH], write_buffer_bytes=64 << 10) as db:
        words = db.keyspace("words", comparator=BY_LENGTH)
        failures: list[BaseException] = []

        def write(seed: int) -> None:
            try:
                chance = random.Random(seed)
                for _ in range(400):
                    words[chance.randbytes(chance.randrange(12))] = bytes(200)
                    if chance.random() < 0.05:
                        assert list(words.scan_keys()) is not None
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=write, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        db.flush()
        for thread in threads:
            thread.join()
        db.compact()
        assert not failures
        keys = list(words)
        assert keys == sorted(keys, key=by_length)


def test_a_database_with_an_order_is_repaired(directory: pathlib.Path) -> None:
    keys = [b"ccc", b"bb", b"a", b"dddd"]
    with esker.open(directory, comparators=[BY_LENGTH]) as db:
        words = db.keyspace("words", comparator=BY_LENGTH)
        for key in keys:
            words[key] = b""
        db.flush()
    manifest = next(directory.glob("MANIFEST*"))
    manifest.write_bytes(manifest.read_bytes()[:20])
    report = esker.repair(directory, comparators=[BY_LENGTH])
    assert not report.healthy
    with esker.open(directory, comparators=[BY_LENGTH]) as db:
        assert list(db.keyspaces["words"]) == sorted(keys, key=by_length)
    with pytest.raises(TypeError):
        esker.repair(directory, comparators=[7])
    with pytest.raises(esker.MissingComparatorError):
        esker.verify(directory)
    assert esker.verify(directory, comparators=[BY_LENGTH]) == report.entries
