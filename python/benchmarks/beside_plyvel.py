"""The cost of each call beside plyvel, over the same data.

    pip install esker plyvel
    python beside_plyvel.py [--entries N] [--rounds N] [--value-bytes N] [--json FILE]

Each operation is run in rounds by plyvel, by esker.plyvel and by esker in turn, the first of them
another one each round, so that what the machine does meanwhile happens to all. The table has the
median of the rounds in nanoseconds for each call or entry, and the median of the ratios of each
round: above 1, Esker is that many times as fast. Both have the defaults of plyvel: a write buffer of
4 MiB, a cache of 8 MiB, compression, no sync.

What needs a comparator in Python comes behind the rest: once there is one in the process, Esker
releases the interpreter for the shortest calls too. A range is compacted from end to end: without
one, plyvel compacts what is around the empty key, and that is nothing.
"""

from __future__ import annotations

import argparse
import gc
import json
import pathlib
import platform
import random
import shutil
import statistics
import tempfile
import time
from typing import Any, Callable, Iterator, Optional

import plyvel

import esker
import esker.plyvel

BUFFER, CACHE = 4 << 20, 8 << 20
Work = Callable[[], int]


def consume(iterator: Iterator[Any], limit: Optional[int] = None) -> int:
    """How many items there were."""
    count = 0
    for _ in iterator:
        count += 1
        if count == limit:
            break
    return count


def compare(left: bytes, right: bytes) -> int:
    """A comparator in Python."""
    return (left > right) - (left < right)


class OldStyle:
    """plyvel's interface: plyvel itself, or esker.plyvel."""

    def __init__(self, module: Any, directory: str) -> None:
        self.module = module
        self.directory = directory
        self.db = self.open(directory)
        self.ordered: Any = None

    def open(self, directory: str, **options: Any) -> Any:
        """A database with the options of all."""
        return self.module.DB(directory, create_if_missing=True, write_buffer_size=BUFFER, lru_cache_size=CACHE, **options)

    def operations(self, keys: list[bytes], some: list[bytes], absent: list[bytes], value: bytes) -> dict[str, Work]:
        db = self.db

        def each(call: Callable[[bytes], object], chosen: list[bytes]) -> int:
            for key in chosen:
                call(key)
            return len(chosen)

        def put() -> int:
            for key in some:
                db.put(key, value)
            return len(some)

        def batch() -> int:
            with db.write_batch() as writes:
                for key in some:
                    writes.put(key, value)
            return len(some)

        def raw() -> int:
            iterator, count = db.raw_iterator(), 0
            iterator.seek_to_first()
            while iterator.valid():
                iterator.key()
                iterator.value()
                iterator.next()
                count += 1
            return count

        def back_and_forth() -> int:
            iterator, count = db.iterator(include_value=False), 0
            for key in some[:2000]:
                iterator.seek(key)
                next(iterator, None)
                iterator.prev()
                count += 1
            return count

        def in_snapshot() -> int:
            with db.snapshot() as snapshot:
                return each(snapshot.get, some)

        def put_and_delete() -> int:
            for key in absent[:5000]:
                db.put(key, value)
                db.delete(key)
            return 5000

        def put_and_delete_in_a_batch() -> int:
            with db.write_batch() as writes:
                for key in absent[:5000]:
                    writes.put(key, value)
                    writes.delete(key)
            return 5000

        def open_and_close() -> int:
            for _ in range(5):
                self.open(self.directory + ".small").close()
            return 5

        def compact() -> int:
            db.compact_range(start=b"\x00", stop=b"\xff")
            return 1

        return {
            "put": put,
            "put, in a batch": batch,
            "put with a sync": lambda: each(lambda key: db.put(key, value, sync=True), some[:100]),
            "put and delete": put_and_delete,
            "put and delete, in a batch": put_and_delete_in_a_batch,
            "get": lambda: each(db.get, some),
            "get of an absent key": lambda: each(db.get, absent),
            "get in a snapshot": in_snapshot,
            "delete of an absent key": lambda: each(db.delete, absent[:1000]),
            "approximate_size": lambda: each(lambda key: db.approximate_size(key, b"l"), some[:1000]),
            "get_property": lambda: each(lambda _: db.get_property(b"leveldb.num-files-at-level0"), some[:1000]),
            "open and close": open_and_close,
            "compact_range": compact,
            "scan, an entry": lambda: consume(db.iterator()),
            "scan of a prefixed database, an entry": lambda: consume(db.prefixed_db(b"k").iterator()),
            "scan backward, an entry": lambda: consume(db.iterator(reverse=True)),
            "scan of keys, a key": lambda: consume(db.iterator(include_value=False)),
            "scan of ten, an entry": lambda: sum(consume(db.iterator(start=key), 10) for key in some[:1000]),
            "seek and first entry": lambda: sum(consume(db.iterator(start=key), 1) for key in some[:2000]),
            "seek, next and prev": back_and_forth,
            "raw iterator, an entry": raw,
            "snapshot": lambda: each(lambda _: db.snapshot().close(), some[:2000]),
            "get, prefixed": lambda: each(db.prefixed_db(b"k").get, [key[1:] for key in some]),
        }

    def with_a_comparator(self, some: list[bytes], value: bytes) -> dict[str, Work]:
        """The operations that need a database with a comparator in Python, and one beside it."""

        def in_one(work: Callable[[Any], object]) -> Work:
            def run() -> int:
                chosen = some[:1000]
                for key in chosen:
                    work(key)
                return len(chosen)

            return run

        if self.ordered is None:
            self.ordered = self.open(self.directory + ".ordered", comparator=compare, comparator_name=b"a comparator")
        db, ordered = self.db, self.ordered
        return {
            "put, a comparator in Python": in_one(lambda key: ordered.put(key, value)),
            "get, a comparator in Python": in_one(ordered.get),
            "snapshot, a comparator in Python": in_one(lambda _: ordered.snapshot().close()),
            "snapshot, beside a comparator in Python": in_one(lambda _: db.snapshot().close()),
        }

    def settle(self) -> None:
        self.db.compact_range(start=b"\x00", stop=b"\xff")

    def close(self) -> None:
        self.db.close()
        if self.ordered is not None:
            self.ordered.close()


class NewStyle:
    """Esker's own interface, where it has the same operation."""

    def __init__(self, directory: str) -> None:
        self.db = esker.open(directory, write_buffer_bytes=BUFFER, block_cache_bytes=CACHE, compression="lz4")
        self.keyspace = self.db.keyspace("default")

    def operations(self, keys: list[bytes], some: list[bytes], absent: list[bytes], value: bytes) -> dict[str, Work]:
        db, keyspace = self.db, self.keyspace

        def put() -> int:
            for key in some:
                keyspace[key] = value
            return len(some)

        def batch() -> int:
            with db.batch() as writes:
                for key in some:
                    writes.put(key, value)
            return len(some)

        def each(call: Callable[[bytes], object], chosen: list[bytes]) -> int:
            for key in chosen:
                call(key)
            return len(chosen)

        return {
            "put": put,
            "put, in a batch": batch,
            "get": lambda: each(keyspace.get, some),
            "get of an absent key": lambda: each(keyspace.get, absent),
            "delete of an absent key": lambda: each(keyspace.delete, absent[:1000]),
            "scan, an entry": lambda: consume(keyspace.scan()),
            "scan backward, an entry": lambda: consume(keyspace.scan(reverse=True)),
            "scan of keys, a key": lambda: consume(keyspace.scan_keys()),
            "scan of ten, an entry": lambda: sum(consume(keyspace.scan(key), 10) for key in some[:1000]),
            "seek and first entry": lambda: sum(consume(keyspace.scan(key), 1) for key in some[:2000]),
            "snapshot": lambda: each(lambda _: db.snapshot().close(), some[:2000]),
        }

    def with_a_comparator(self, some: list[bytes], value: bytes) -> dict[str, Work]:
        """None of its own."""
        return {}

    def settle(self) -> None:
        self.db.compact()

    def close(self) -> None:
        self.db.close()


def measure(work: Work) -> float:
    """Nanoseconds for each call or entry."""
    gc.collect()
    gc.disable()
    start = time.perf_counter_ns()
    count = work()
    taken = time.perf_counter_ns() - start
    gc.enable()
    return taken / max(count, 1)


def run(entries: int, rounds: int, value_bytes: int) -> list[dict[str, Any]]:
    """The rows of the table."""
    chance = random.Random(42)
    keys = [b"k%015d" % number for number in range(entries)]
    value = chance.randbytes(value_bytes // 2) + bytes(value_bytes - value_bytes // 2)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="beside-plyvel-"))
    sides: dict[str, Any] = {
        "plyvel": OldStyle(plyvel, str(scratch / "plyvel")),
        "esker.plyvel": OldStyle(esker.plyvel, str(scratch / "esker.plyvel")),
        "esker": NewStyle(str(scratch / "esker")),
    }
    shuffled = chance.sample(keys, len(keys))
    times: dict[str, dict[str, list[float]]] = {}
    try:
        for side in sides.values():
            side.operations(keys, shuffled, [], value)["put"]()
            side.settle()
        for with_a_comparator in (False, True):
            for index in range(rounds):
                some = chance.choices(keys, k=min(entries, 20_000))
                absent = [key + b"x" for key in some]
                work = {
                    name: side.with_a_comparator(some, value)
                    if with_a_comparator
                    else side.operations(keys, some, absent, value)
                    for name, side in sides.items()
                }
                order = list(sides)
                order = order[index % len(order) :] + order[: index % len(order)]
                for operation in work["plyvel"]:
                    for name in order:
                        if operation in work[name]:
                            taken = measure(work[name][operation])
                            times.setdefault(operation, {}).setdefault(name, []).append(taken)
    finally:
        for side in sides.values():
            side.close()
        shutil.rmtree(scratch)
    rows = []
    for operation, sides_of in times.items():
        row: dict[str, Any] = {"operation": operation}
        for name, taken in sides_of.items():
            row[name] = statistics.median(taken)
            if name != "plyvel":
                ratios = [theirs / ours for theirs, ours in zip(sides_of["plyvel"], taken)]
                row[f"{name} ratio"] = statistics.median(ratios)
                row[f"{name} ratios"] = [min(ratios), max(ratios)]
        rows.append(row)
    return rows


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--entries", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    rows = run(arguments.entries, arguments.rounds, arguments.value_bytes)
    versions = f"CPython {platform.python_version()}, plyvel {plyvel.__version__}, esker {esker.__version__}"
    print(f"{arguments.entries} entries, values of {arguments.value_bytes} bytes, {arguments.rounds} rounds; {versions}\n")
    print("| ns for each | plyvel | esker.plyvel | ratio | least, most | esker | ratio |")
    print("| --- | ---: | ---: | ---: | --- | ---: | ---: |")
    for row in rows:
        old, new = row["esker.plyvel"], row.get("esker")
        own = f"{new:.0f} | {row['esker ratio']:.2f}" if new is not None else "|"
        least, most = row["esker.plyvel ratios"]
        ratios = f"{row['esker.plyvel ratio']:.2f} | {least:.2f}, {most:.2f}"
        print(f"| {row['operation']} | {row['plyvel']:.0f} | {old:.0f} | {ratios} | {own} |")
    slower = [row["operation"] for row in rows if row["esker.plyvel ratio"] < 1]
    print(f"\nSlower than plyvel: {', '.join(slower) or 'nothing'}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"versions": versions, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
