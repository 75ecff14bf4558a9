"""Merge operators: the built-in ones, and Python objects, called from threads of the engine."""

from __future__ import annotations

import gc
import pathlib
import threading
from typing import Optional

import pytest

import esker


def number(value: int) -> bytes:
    return value.to_bytes(8, "little")


def test_built_in_operators(db: esker.Database) -> None:
    counts = db.keyspace("counts", merge_operator="uint64add")
    counts.merge(b"k", number(1))
    assert counts.merge_and_get(b"k", number(2)) == number(3)
    words = db.keyspace("words", merge_operator="stringappend:2c")
    for word in (b"a", b"b", b"c"):
        words.merge(b"k", word)
    assert words[b"k"] == b"a,b,c"
    with pytest.raises(esker.InvalidArgumentError):
        counts.merge(b"k", b"three")
    with pytest.raises(ValueError, match="uint64add"):
        db.keyspace("x", merge_operator="no such")
    with pytest.raises(esker.InvalidArgumentError):
        db.keyspace("plain").merge(b"k", b"1")


class Longest(esker.MergeOperator):
    """Keeps the longest value; refuses some, and deletes at an empty operand."""

    name = "longest"

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def full_merge(self, key: bytes, existing: Optional[bytes], operands: list[bytes]) -> Optional[bytes]:
        assert isinstance(key, bytes) and all(isinstance(operand, bytes) for operand in operands)
        self.threads.add(threading.get_ident())
        if b"poison" in operands:
            raise LookupError("poisoned")
        if operands[-1] == b"":
            return None
        return max([existing or b"", *operands], key=len)

    def check_operand(self, operand: bytes) -> None:
        if operand == b"never":
            raise ValueError("it is never taken")


def test_an_operator_in_python(db: esker.Database, directory: pathlib.Path) -> None:
    operator = Longest()
    words = db.keyspace("words", merge_operator=operator)
    for word in (b"to", b"three", b"one"):
        words.merge(b"k", word)
    assert words[b"k"] == b"three"
    db.flush()
    words.merge(b"k", b"fifteen")
    db.compact()
    assert words[b"k"] == b"fifteen"
    words.merge(b"k", b"")
    assert b"k" not in words
    with pytest.raises(esker.InvalidArgumentError, match="never taken") as refused:
        words.merge(b"k", b"never")
    assert isinstance(refused.value.__cause__, ValueError)
    # By the thread of the engine too.
    assert len(operator.threads) >= 1
    db.close()
    with esker.open(directory) as again:
        words = again.keyspace("words")
        words.merge(b"m", b"x")
        with pytest.raises(esker.MissingMergeOperatorError) as missing:
            words[b"m"]
        assert missing.value.operator == "longest"
    with esker.open(directory) as again:
        assert again.keyspace("words", merge_operator=Longest())[b"m"] == b"x"


def test_what_an_operator_raises_is_the_cause(db: esker.Database) -> None:
    words = db.keyspace("words", merge_operator=Longest())
    words.merge(b"good", b"1")
    words.merge(b"bad", b"poison")
    with pytest.raises(esker.MergeError, match="poisoned") as failed:
        words[b"bad"]
    assert isinstance(failed.value.__cause__, LookupError)
    assert (failed.value.keyspace, failed.value.key, failed.value.operator) == ("words", "bad", "longest")
    assert words[b"good"] == b"1"
    # A flush and a compaction keep the operands; other keys go on.
    db.flush()
    db.compact()
    with pytest.raises(esker.MergeError):
        words[b"bad"]
    assert db.health().failed_merges >= 2 and db.health().writable
    # A scan tells of it, and goes on behind the key.
    scan = words.scan()
    with pytest.raises(esker.MergeError):
        next(scan)
    assert next(scan) == (b"good", b"1")
    words[b"bad"] = b"healed"
    assert words[b"bad"] == b"healed"


@pytest.mark.parametrize("wrong", ["text", 7, object(), [b"a"]])
def test_a_result_of_a_wrong_type_is_an_error(db: esker.Database, wrong: object) -> None:
    operator = esker.AssociativeOperator("wrong", lambda older, newer: wrong)  # type: ignore[arg-type, return-value]
    words = db.keyspace("words", merge_operator=operator)
    words.merge(b"k", b"1")
    words.merge(b"k", b"2")
    with pytest.raises(esker.MergeError) as failed:
        words[b"k"]
    assert isinstance(failed.value.__cause__, TypeError)


def test_objects_that_are_no_operators(db: esker.Database) -> None:
    class NoName:
        def full_merge(self, key: bytes, existing: Optional[bytes], operands: list[bytes]) -> None: ...

    class NoMerge:
        name = "no merge"

    class NotCallable(NoName):
        name = "x"
        partial_merge = 7

    for wrong in (NoName(), NoMerge(), NotCallable(), 7, b"max"):
        with pytest.raises(TypeError):
            db.keyspace("k", merge_operator=wrong)  # type: ignore[arg-type]


def test_an_operator_may_read_and_not_write(db: esker.Database) -> None:
    results: list[object] = []

    class Curious(Longest):
        name = "curious"

        def full_merge(self, key: bytes, existing: Optional[bytes], operands: list[bytes]) -> Optional[bytes]:
            results.append(db.get(b"plain"))
            for call in (lambda: db.put(b"x", b""), db.snapshot, db.flush, db.close, lambda: list(db)):
                try:
                    results.append(call())
                except esker.InCallbackError as error:
                    results.append(type(error))
            with pytest.raises(esker.InCallbackError):
                words.rename("other")
            return operands[-1]

    db[b"plain"] = b"1"
    words = db.keyspace("words", merge_operator=Curious())
    words.merge(b"k", b"2")
    assert words[b"k"] == b"2"
    assert results[0] == b"1" and esker.InCallbackError in results
    assert not db.closed and b"x" not in db


def test_an_operator_uses_the_iterator_that_has_called_it(db: esker.Database) -> None:
    seen: list[BaseException] = []

    class Tangled(Longest):
        name = "tangled"

        def full_merge(self, key: bytes, existing: Optional[bytes], operands: list[bytes]) -> Optional[bytes]:
            try:
                next(scan)
            except esker.Error as error:
                seen.append(error)
            return operands[-1]

    words = db.keyspace("words", merge_operator=Tangled())
    words.merge(b"k", b"1")
    scan = words.scan()
    assert next(scan) == (b"k", b"1")
    assert isinstance(seen[0], esker.InCallbackError)


def test_operators_and_readers_in_many_threads(db: esker.Database) -> None:
    """Threads that hold the interpreter, and threads of the engine that want it."""
    total = esker.AssociativeOperator("total", lambda older, newer: b"%d" % (int(older) + int(newer)))
    sums = db.keyspace("sums", merge_operator=total)
    failures: list[BaseException] = []

    def run(work: object) -> threading.Thread:
        def guarded() -> None:
            try:
                work()  # type: ignore[operator]
            except BaseException as failure:
                failures.append(failure)

        thread = threading.Thread(target=guarded)
        thread.start()
        return thread

    def write() -> None:
        for step in range(1500):
            sums.merge(b"%d" % (step % 7), b"1")

    def read() -> None:
        for _ in range(60):
            for _, value in sums.scan(reverse=True):
                int(value)
            sums.get(b"3")
            gc.collect(0)

    def work() -> None:
        for _ in range(10):
            db.flush()
            db.compact()

    threads = [run(write), run(write), run(read), run(read), run(work)]
    for thread in threads:
        thread.join()
    assert not failures
    assert sum(int(value) for value in sums.values()) == 3000


def test_a_database_and_its_operator_refer_to_each_other(directory: pathlib.Path) -> None:
    db = esker.open(directory)
    operator = Longest()
    operator.db = db  # type: ignore[attr-defined]
    db.keyspace("words", merge_operator=operator).merge(b"k", b"1")
    db.close()
    del db, operator
    gc.collect()
    with esker.open(directory) as again:
        assert again.keyspace_names() == ["words"]
