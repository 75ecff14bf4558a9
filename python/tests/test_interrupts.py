"""Exceptions that end programs, raised in comparators and merge operators."""

from __future__ import annotations

import pathlib
import signal
import sys
from typing import Any, Callable, Optional

import pytest

import esker


class Armed:
    """Raises once for each exception that it is armed with."""

    def __init__(self) -> None:
        self.exceptions: list[type[BaseException]] = []

    def fire(self) -> None:
        if self.exceptions:
            raise self.exceptions.pop()


def raises_if_fired(armed: Armed, exception: type[BaseException], call: Callable[[], Any]) -> bool:
    """Makes a call, which raises what was raised in it, if that was. Whether it was."""
    armed.exceptions.append(exception)
    try:
        call()
    except exception:
        assert not armed.exceptions
        return True
    assert armed.exceptions, "an exception was lost"
    armed.exceptions.clear()
    return False


@pytest.mark.parametrize("exception", [KeyboardInterrupt, SystemExit, MemoryError, RecursionError])
def test_an_interrupted_comparator_puts_no_key_out_of_place(
    directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch, exception: type[BaseException]
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    armed = Armed()

    def backward(a: bytes, b: bytes) -> int:
        armed.fire()
        return (a < b) - (a > b)

    order = esker.Comparator("backward", backward)
    with esker.open(directory, comparators=[order]) as db:
        words = db.keyspace("words", comparator=order)
        fired = 0
        for number in range(100):
            key = b"%02d" % (number * 37 % 100)
            calls: list[Callable[[], Any]] = [
                lambda: words.put(key, key),
                lambda: words.get(key),
                lambda: words.first(),
                lambda: list(words.scan_keys(b"70", b"30")),
            ]
            fired += sum(raises_if_fired(armed, exception, call) for call in calls)
        assert fired > 100
        assert list(words) == [b"%02d" % number for number in reversed(range(100))]
        assert all(words[b"%02d" % number] == b"%02d" % number for number in range(100))
        db.compact()
        assert list(words) == [b"%02d" % number for number in reversed(range(100))]
    assert not told


def test_a_comparator_that_always_ends_the_program(directory: pathlib.Path) -> None:
    is_broken = False

    def compare(a: bytes, b: bytes) -> int:
        if is_broken:
            raise SystemExit(7)
        return (a > b) - (a < b)

    order = esker.Comparator("sometimes", compare)
    with esker.open(directory, comparators=[order]) as db:
        words = db.keyspace("words", comparator=order)
        for key in (b"a", b"b", b"c"):
            words[key] = b""
        is_broken = True
        with pytest.raises(SystemExit) as ended:
            list(words)
        assert ended.value.code == 7
        is_broken = False
        assert list(words) == [b"a", b"b", b"c"]


def test_an_interrupted_merge_is_made_again(db: esker.Database) -> None:
    armed = Armed()

    class Total(esker.MergeOperator):
        name = "total"

        def full_merge(self, key: bytes, existing: Optional[bytes], operands: list[bytes]) -> bytes:
            armed.fire()
            return b"%d" % sum(map(int, [existing or b"0", *operands]))

        def partial_merge(self, key: bytes, older: bytes, newer: bytes) -> bytes:
            armed.fire()
            return b"%d" % (int(older) + int(newer))

        def check_operand(self, operand: bytes) -> None:
            armed.fire()

    sums = db.keyspace("sums", merge_operator=Total())
    fired, merged = 0, 0
    for _ in range(60):
        merged += 1
        fired += raises_if_fired(armed, KeyboardInterrupt, lambda: sums.merge(b"k", b"1"))
        fired += raises_if_fired(armed, KeyboardInterrupt, lambda: sums.get(b"k"))
        fired += raises_if_fired(armed, SystemExit, lambda: list(sums.items()))
        fired += raises_if_fired(armed, KeyboardInterrupt, lambda: db.cursor().seek_to_first())
        assert sums[b"k"] == b"%d" % merged
    assert fired > 100 and db.health().failed_merges == 0

    # A scan goes on where it was interrupted.
    for key in (b"a", b"b", b"c"):
        sums.merge(key, b"1")
    scan, keys, interrupts = sums.scan(), [], 0
    while True:
        armed.exceptions[:] = [KeyboardInterrupt]
        try:
            keys.append(next(scan)[0])
        except KeyboardInterrupt:
            interrupts += 1
        except StopIteration:
            break
    assert keys == [b"a", b"b", b"c", b"k"] and interrupts > 1


def test_a_signal_in_a_callback(db: esker.Database) -> None:
    pressed = [True]

    def longer(older: bytes, newer: bytes) -> bytes:
        if pressed:
            pressed.pop()
            signal.raise_signal(signal.SIGINT)
        return max(older, newer, key=len)

    words = db.keyspace("words", merge_operator=esker.AssociativeOperator("longer", longer))
    # A process in the background of a shell ignores the signal from the start.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            words.merge(b"k", b"one")
            words.merge(b"k", b"three")
            words.get(b"k")
    finally:
        signal.signal(signal.SIGINT, before)
    assert words[b"k"] == b"three"


def test_a_callback_in_a_callback_is_interrupted(directory: pathlib.Path) -> None:
    """What interrupts the inner call ends the outer one."""
    armed = Armed()

    def compare(a: bytes, b: bytes) -> int:
        armed.fire()
        return (a > b) - (a < b)

    class Reader(esker.MergeOperator):
        name = "reader"

        def full_merge(self, key: bytes, existing: Optional[bytes], operands: list[bytes]) -> bytes:
            armed.exceptions.append(KeyboardInterrupt)
            try:
                read = words[b"b"]
            except KeyboardInterrupt:
                assert not armed.exceptions
                return b"interrupted"
            return read

    order = esker.Comparator("upward", compare)
    with esker.open(directory, comparators=[order]) as db:
        words = db.keyspace("words", comparator=order)
        words.update({b"a": b"1", b"b": b"2", b"c": b"3"})
        db.flush()
        found = db.keyspace("found", merge_operator=Reader())
        found.merge(b"k", b"")
        # The operator has handled it.
        assert found[b"k"] == b"interrupted"
