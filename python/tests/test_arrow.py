"""Entries as tables of Arrow."""

from __future__ import annotations

import gc
import pathlib
from typing import Any

import pytest

import esker

pyarrow = pytest.importorskip("pyarrow", minversion="14")


def test_a_range_becomes_a_table(db: esker.Database) -> None:
    pairs = [(b"%05d" % number, bytes([number % 256]) * (number % 50)) for number in range(3000)]
    db.update(pairs)
    table = db.scan_to_arrow()
    assert table.column_names == ["key", "value"] and table.num_rows == 3000
    assert list(zip(table["key"].to_pylist(), table["value"].to_pylist())) == pairs
    table.validate(full=True)
    part = db.scan_to_arrow(b"00100", b"00200", reverse=True)
    assert part["key"].to_pylist() == [b"%05d" % number for number in reversed(range(100, 200))]
    assert db.scan_to_arrow(prefix=b"000")["value"].to_pylist() == [value for key, value in pairs if key < b"00100"]
    with db.snapshot() as snapshot:
        db.clear()
        assert snapshot.scan_to_arrow().num_rows == 3000
    empty = db.scan_to_arrow()
    assert empty.num_rows == 0 and empty.schema == table.schema


def test_a_table_outlives_its_database(directory: pathlib.Path) -> None:
    db = esker.open(directory)
    db[b"k"] = b"v"
    table = db.scan_to_arrow()
    column = table["value"]
    db.close()
    del db, table
    gc.collect()
    assert column.to_pylist() == [b"v"]


def test_large_ranges_are_several_batches(db: esker.Database) -> None:
    db.update((b"%d" % number, bytes(20 << 20)) for number in range(7))
    table = db.scan_to_arrow()
    assert table.num_rows == 7 and table["value"].num_chunks > 1
    assert sum(len(value) for value in table["value"].to_pylist()) == 7 * (20 << 20)


def test_what_nobody_imports_is_freed(db: esker.Database) -> None:
    db[b"k"] = b"v"
    batch = pyarrow.record_batch
    exported: list[Any] = []

    def keep(exporter: Any) -> Any:
        exported.append(exporter)
        return batch(exporter)

    pyarrow.record_batch = keep
    try:
        db.scan_to_arrow()
    finally:
        pyarrow.record_batch = batch
    for _ in range(10):
        schema, array = exported[0].__arrow_c_array__()
        del schema, array
    assert batch(exported[0]).num_rows == 1


def test_numpy_reads_the_columns(db: esker.Database) -> None:
    numpy = pytest.importorskip("numpy")
    db.update((b"%d" % number, number.to_bytes(8, "little")) for number in range(10))
    table = db.scan_to_arrow().combine_chunks()
    _, _, data = table["value"].chunk(0).buffers()
    assert numpy.frombuffer(data, dtype="<u8").tolist() == list(range(10))
    buffer = numpy.zeros(1, dtype="<u8")
    assert db.get_into(b"7", buffer) == 8 and buffer[0] == 7
