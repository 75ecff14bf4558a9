"""Esker: an embedded, ordered, crash-safe key-value engine.

It is made for data that is written far more often than it is read back: counters, aggregates,
sessions, event state.

>>> import esker, tempfile
>>> with esker.open(tempfile.mkdtemp()) as db:
...     db[b"ada"] = b"1815"
...     hits = db.keyspace("hits", merge_operator="uint64add")
...     hits.merge(b"/index.html", (1).to_bytes(8, "little"))
...     list(db.items()), int.from_bytes(hits[b"/index.html"], "little")
([(b'ada', b'1815')], 1)

Keys and values are bytes; arguments may be any contiguous buffer. Calls of one object from any
number of threads are safe, and other Python threads go on while the engine works.
"""

from __future__ import annotations

import atexit
import collections.abc
import os
from typing import Any, Iterable

from . import _errors
from ._errors import *  # noqa: F403
from ._esker import (
    Batch,
    Changes,
    Cursor,
    Database,
    Follower,
    Keyspace,
    KeyspaceBatch,
    KeyspaceTransaction,
    KeyspaceView,
    Scan,
    Snapshot,
    Transaction,
    TransactionScan,
    Watch,
    __version__,
    _close_all,
    _destroy,
    _explain_options,
    _open,
    _open_follower,
    _release_unused_memory,
    _repair,
    _unused_memory_bytes,
    _verify,
)
from ._views import (
    AssociativeOperator,
    Change,
    Comparator,
    CompactionFilter,
    FilterPolicy,
    FollowerLag,
    Health,
    Keyspaces,
    KeyspaceSettings,
    MergeOperator,
    RepairReport,
)

__all__ = [
    "AssociativeOperator",
    "Batch",
    "Change",
    "Changes",
    "CompactionFilter",
    "Comparator",
    "Cursor",
    "Database",
    "FilterPolicy",
    "Follower",
    "FollowerLag",
    "Health",
    "Keyspace",
    "KeyspaceBatch",
    "KeyspaceSettings",
    "KeyspaceTransaction",
    "KeyspaceView",
    "Keyspaces",
    "MergeOperator",
    "RepairReport",
    "Scan",
    "Snapshot",
    "Transaction",
    "TransactionScan",
    "Watch",
    "__version__",
    "destroy",
    "explain_options",
    "open",
    "open_follower",
    "release_unused_memory",
    "repair",
    "unused_memory_bytes",
    "verify",
]
__all__ += _errors.__all__


def open(path: str | bytes | os.PathLike[Any], *, read_only: bool = False, **options: Any) -> Database:
    """Opens the database in the directory `path`, and creates it if it is missing.

    A database that is opened with `read_only` takes no lock, sees what was acknowledged before the
    call, and refuses writes. Options, all of them optional: `create_if_missing`, `error_if_exists`, `profile`
    ("balanced", "counters", "read-heavy", "large-values"), `memory_budget_bytes`,
    `write_buffer_bytes`, `block_cache_bytes`, `block_bytes`, `filter_bits_per_key`,
    `target_file_bytes`, `min_blob_size`, `wal_segment_bytes`, `background_threads`,
    `compaction_bytes_per_second`, `compression` and `upper_compression` ("none", "lz4"),
    `wal_mode` ("mapped", "plain"), `read_mode` ("auto", "mmap", "mmap-checked", "pread"),
    `latency_histograms`, `keep_changes` for `Database.changes` (a number of bytes of the log, a
    `timedelta`, or "as-before"), `comparators`, the orders of keys that its keyspaces have,
    `event_listener`, a function of the name of an event and a text, `filter_policy`, an object like
    `FilterPolicy`, and, for tests, `clock`, a function that returns an aware `datetime`.
    `Database.explain` says what they are, and what they cost.

    >>> import esker, tempfile
    >>> with esker.open(tempfile.mkdtemp(), memory_budget_bytes=64 << 20) as db:
    ...     db[b"ada"] = b"1815"
    """
    return _open(path, read_only, options or None)


def open_follower(path: str | bytes | os.PathLike[Any], **options: Any) -> Follower:
    """Opens a database that exists for reading behind its writer, in another process or in this one.

    `follower.db` is the database as of the last `follower.catch_up()`. It takes no lock, and refuses
    writes. The options are those of `open`. As a mapping `follower.db` is the keyspace `default`; until
    the writer has made that, and the follower has caught up, its calls raise `NotFoundError`.

    >>> import esker, tempfile
    >>> directory = tempfile.mkdtemp()
    >>> with esker.open(directory) as writer, esker.open_follower(directory) as follower:
    ...     writer[b"ada"] = b"1815"
    ...     _ = follower.catch_up()
    ...     follower.db[b"ada"]
    b'1815'
    """
    return _open_follower(path, options or None)


def explain_options(**options: Any) -> str:
    """Every option that a database opened with these would have, with its value, origin and trade-off.

    The options are those of `open`. What `open` would refuse is raised.

    >>> import esker
    >>> print(esker.explain_options(memory_budget_bytes=64 << 20))
    create_if_missing = true (default): ...
    write_buffer_bytes = 16 MiB (from the memory budget): ...
    """
    return _explain_options(options or None)


def destroy(path: str | bytes | os.PathLike[Any]) -> None:
    """Removes every file of a database that nobody has open. The directory stays.

    >>> import esker, tempfile
    >>> directory = tempfile.mkdtemp()
    >>> esker.open(directory).close()
    >>> esker.destroy(directory)
    """
    _destroy(path)


def repair(path: str | bytes | os.PathLike[Any], *, comparators: Iterable[Any] = ()) -> RepairReport:
    """Makes a damaged database open with what can be read, and says what is lost.

    `comparators` are the orders of keys that its keyspaces have, as for `open`.

    >>> import esker, tempfile
    >>> directory = tempfile.mkdtemp()
    >>> esker.open(directory).close()
    >>> esker.repair(directory).healthy
    True
    """
    return RepairReport(*_repair(path, comparators))


def verify(path: str | bytes | os.PathLike[Any], *, comparators: Iterable[Any] = ()) -> int:
    """Reads and checks everything that a database has stored, and returns the number of entries in tables.

    Takes no lock and writes nothing: another process may have the database open. It may be one that
    does not open: then every part is gone over on its own. The first damage is raised, mostly as
    `CorruptionError`; its attribute `damage` lists all. `comparators` are as for `open`.

    >>> import esker, tempfile
    >>> directory = tempfile.mkdtemp()
    >>> with esker.open(directory) as db:
    ...     db[b"ada"] = b"1815"
    ...     db.flush()
    ...     esker.verify(directory)
    1
    """
    return _verify(path, comparators)


def release_unused_memory() -> None:
    """Gives the memory that closed databases have left for the next one back to the system.

    While a database is open, that happens by itself once no open database has been written to for a
    second.

    >>> import esker
    >>> esker.release_unused_memory()
    >>> esker.unused_memory_bytes()
    0
    """
    _release_unused_memory()


def unused_memory_bytes() -> int:
    """Bytes that no memtable uses, kept for the next one, or for the next database."""
    return _unused_memory_bytes()


_mapping: Any = collections.abc.Mapping
_mapping.register(KeyspaceView)
_mapping = collections.abc.MutableMapping
_mapping.register(Keyspace)
# While threads can still run: see `_close_all`.
atexit.register(_close_all)
