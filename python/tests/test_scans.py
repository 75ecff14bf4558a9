"""Iteration both ways, with bounds and prefix."""

from __future__ import annotations

import random
from typing import Any, Optional

import pytest

import esker
import esker.plyvel

KEYS = [b"a", b"a1", b"a2", b"aa", b"b", b"b\xff", b"b\xff\x01", b"c", b"\xff", b"\xff\xff"]


@pytest.fixture
def filled(db: esker.Database) -> esker.Database:
    db.update((key, b"value of " + key) for key in KEYS)
    return db


def expected(start: Optional[bytes], stop: Optional[bytes], include_start: bool, include_stop: bool) -> list[bytes]:
    def inside(key: bytes) -> bool:
        above = start is None or key > start or (include_start and key == start)
        below = stop is None or key < stop or (include_stop and key == stop)
        return above and below

    return [key for key in sorted(KEYS) if inside(key)]


def test_every_range_in_both_directions(filled: esker.Database) -> None:
    ends = [None, b"", b"a", b"a11", b"b", b"c", b"\xff", b"\xff\xff\xff"]
    for start in ends:
        for stop in ends:
            for flags in range(4):
                first, last = bool(flags & 1), bool(flags & 2)
                keys = expected(start, stop, first, last)
                assert list(filled.scan_keys(start, stop, include_start=first, include_stop=last)) == keys
                backward = filled.scan_keys(start, stop, reverse=True, include_start=first, include_stop=last)
                assert list(backward) == keys[::-1]
                assert filled.count(start, stop, include_start=first, include_stop=last) == len(keys)
                pairs = [(key, b"value of " + key) for key in keys]
                assert list(filled.scan(start, stop, include_start=first, include_stop=last)) == pairs
                values = filled.scan_values(start, stop, include_start=first, include_stop=last)
                assert list(values) == [value for _, value in pairs]


def test_every_prefix(filled: esker.Database) -> None:
    for prefix in [b"", b"a", b"b\xff", b"\xff", b"\xff\xff", b"d"]:
        keys = [key for key in sorted(KEYS) if key.startswith(prefix)]
        assert list(filled.scan_keys(prefix=prefix)) == keys
        assert list(filled.scan_keys(prefix=prefix, reverse=True)) == keys[::-1]
    with pytest.raises(TypeError):
        filled.scan(b"a", prefix=b"a")


def test_a_scan_sees_the_moment_it_was_made(filled: esker.Database) -> None:
    scan = filled.scan_keys()
    assert next(scan) == b"a"
    filled.clear()
    filled[b"z"] = b""
    assert list(scan) == sorted(KEYS)[1:]
    assert list(filled) == [b"z"]


def test_a_scan_reads_many_entries(db: esker.Database) -> None:
    pairs = [(b"%06d" % number, bytes([number % 251]) * (number % 700)) for number in range(5000)]
    db.update(pairs)
    db.flush()
    assert list(db.scan()) == pairs
    assert list(db.scan(reverse=True)) == pairs[::-1]


def test_a_closed_scan_says_so(filled: esker.Database) -> None:
    with filled.scan() as scan:
        next(scan)
    with pytest.raises(esker.ClosedError):
        next(scan)
    scan.close()


def test_a_cursor_goes_anywhere(filled: esker.Database) -> None:
    cursor = filled.cursor()
    assert not cursor.valid and cursor.key() is None and cursor.value() is None and cursor.item() is None
    cursor.next()
    cursor.prev()
    assert not cursor.valid
    cursor.seek(b"a3")
    assert cursor.valid and cursor.key() == b"aa"
    cursor.prev()
    assert cursor.item() == (b"a2", b"value of a2")
    cursor.seek_for_prev(b"a3")
    assert cursor.key() == b"a2"
    cursor.seek_to_last()
    assert cursor.key() == b"\xff\xff"
    cursor.next()
    assert not cursor.valid
    cursor.seek_to_first()
    assert cursor.key() == b"a"
    cursor.close()
    with pytest.raises(esker.ClosedError):
        cursor.key()


class Model:
    """A position between two keys of a list, as an iterator of plyvel has one."""

    def __init__(self, keys: list[bytes]) -> None:
        self.keys, self.at = keys, 0

    def step(self, forward: bool) -> Optional[bytes]:
        if forward and self.at < len(self.keys):
            self.at += 1
            return self.keys[self.at - 1]
        if not forward and self.at > 0:
            self.at -= 1
            return self.keys[self.at]
        return None


@pytest.mark.parametrize("seed", range(6))
def test_an_iterator_of_plyvel_walks_as_its_model(directory: Any, seed: int) -> None:
    chance = random.Random(seed)
    keys = sorted(b"%03d" % number for number in chance.sample(range(1000), 300))
    with esker.plyvel.DB(str(directory), create_if_missing=True) as db:
        for key in keys:
            db.put(key, key)
        for _ in range(30):
            reverse = chance.random() < 0.5
            start = b"%03d" % chance.randrange(1000) if chance.random() < 0.7 else None
            stop = b"%03d" % chance.randrange(1000) if chance.random() < 0.7 else None
            include_start, include_stop = chance.random() < 0.5, chance.random() < 0.5
            inside = [
                key
                for key in keys
                if (start is None or key > start or (include_start and key == start))
                and (stop is None or key < stop or (include_stop and key == stop))
            ]
            iterator = db.iterator(
                reverse=reverse,
                start=start,
                stop=stop,
                include_start=include_start,
                include_stop=include_stop,
                include_value=False,
            )
            model = Model(inside)
            model.at = len(inside) if reverse else 0
            for _ in range(100):
                action = chance.randrange(12)
                if action == 0:
                    iterator.seek_to_start()
                    model.at = 0
                elif action == 1:
                    iterator.seek_to_stop()
                    model.at = len(inside)
                elif action == 2:
                    target = b"%03d" % chance.randrange(1000)
                    iterator.seek(target)
                    model.at = sum(1 for key in inside if key < target)
                    if include_stop and stop is not None and target > stop:
                        # A target outside counts as the end, which the range includes here.
                        model.at = sum(1 for key in inside if key < stop)
                else:
                    # Mostly in one direction, so that entries are read ahead.
                    for _ in range(chance.randrange(12)):
                        back = action > 8
                        forward = reverse if back else not reverse
                        try:
                            found = iterator.prev() if back else next(iterator)
                        except StopIteration:
                            found = None
                        assert found == model.step(forward)


class Poisoned(esker.MergeOperator):
    """Takes any operand but one."""

    name = "poisoned"

    def full_merge(self, key: bytes, existing: Optional[bytes], operands: list[bytes]) -> Optional[bytes]:
        if operands[-1] == b"poison":
            raise LookupError("poisoned")
        return operands[-1]


def test_a_scan_reads_nothing_outside_of_its_range(db: esker.Database) -> None:
    words = db.keyspace("words", merge_operator=Poisoned())
    for number in range(10):
        words.merge(b"k%d" % number, b"poison" if number in (2, 7) else b"v")
    inside = [b"k3", b"k4", b"k5", b"k6"]
    for is_flushed in (False, True):
        for start, include_start in ((b"k3", True), (b"k2", False), (b"k2x", True)):
            for stop, include_stop in ((b"k7", False), (b"k6", True), (b"k6x", True)):
                ends: dict[str, Any] = {"include_start": include_start, "include_stop": include_stop}
                assert [key for key, _ in words.scan(start, stop, **ends)] == inside
                assert [key for key, _ in words.scan(start, stop, reverse=True, **ends)] == inside[::-1]
                assert list(words.scan_keys(start, stop, **ends)) == inside
        assert list(words.scan(prefix=b"k4")) == [(b"k4", b"v")]
        if not is_flushed:
            db.flush()
    with pytest.raises(esker.MergeError):
        list(words.scan(b"k2"))
    # It goes on behind a key inside, and ends before one outside.
    scan, found = words.scan(b"k1", b"k7"), []
    while True:
        try:
            found.append(next(scan)[0])
        except esker.MergeError:
            found.append(b"failed")
        except StopIteration:
            break
    assert found == [b"k1", b"failed", *inside]


def test_a_scan_in_a_transaction_goes_on_behind_an_error(db: esker.Database) -> None:
    words = db.keyspace("words", merge_operator=Poisoned())
    for number in range(12):
        words.merge(b"k%02d" % number, b"poison" if number in (2, 3, 7, 11) else b"v")
    expected = [b"failed" if number in (2, 3, 7, 11) else b"k%02d" % number for number in range(12)]
    for reverse in (False, True):
        with db.transaction() as transaction:
            scan, found = transaction.keyspace(words).scan(reverse=reverse), []
            for _ in range(len(expected)):
                try:
                    found.append(next(scan)[0])
                except esker.MergeError:
                    found.append(b"failed")
            assert found == (expected[::-1] if reverse else expected)
            assert next(scan, None) is None and next(scan, None) is None
