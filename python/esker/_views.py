"""What is written in Python around the extension module."""

from __future__ import annotations

import collections.abc
import datetime
from typing import TYPE_CHECKING, Any, Iterator, Mapping, NamedTuple, Optional, Union

if TYPE_CHECKING:
    from ._esker import Database, Keyspace, KeyspaceView


class KeysView(collections.abc.KeysView[bytes]):
    """The keys of a keyspace, in their order."""

    _mapping: KeyspaceView

    def __iter__(self) -> Iterator[bytes]:
        return self._mapping.scan_keys()

    def __reversed__(self) -> Iterator[bytes]:
        return self._mapping.scan_keys(reverse=True)


class ValuesView(collections.abc.ValuesView[bytes]):
    """The values of a keyspace, in the order of their keys."""

    _mapping: KeyspaceView

    def __iter__(self) -> Iterator[bytes]:
        return self._mapping.scan_values()

    def __reversed__(self) -> Iterator[bytes]:
        return self._mapping.scan_values(reverse=True)

    def __contains__(self, value: object) -> bool:
        return any(value == found for found in self)


class ItemsView(collections.abc.ItemsView[bytes, bytes]):
    """The entries of a keyspace, in the order of their keys."""

    _mapping: KeyspaceView

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return self._mapping.scan()

    def __reversed__(self) -> Iterator[tuple[bytes, bytes]]:
        return self._mapping.scan(reverse=True)


class Keyspaces(Mapping[str, "Keyspace"]):
    """The keyspaces of a database by their names.

    >>> import esker, tempfile
    >>> with esker.open(tempfile.mkdtemp()) as db:
    ...     hits = db.keyspace("hits")
    ...     names = list(db.keyspaces)
    ...     del db.keyspaces["hits"]
    ...     names, "hits" in db.keyspaces
    (['hits'], False)
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def __getitem__(self, name: str) -> Keyspace:
        if name not in self:
            raise KeyError(name)
        return self._database.keyspace(name, create=False)

    def __delitem__(self, name: str) -> None:
        """Drops a keyspace, durably."""
        if name not in self:
            raise KeyError(name)
        self._database.drop_keyspace(name)

    def __contains__(self, name: object) -> bool:
        return name in self._database.keyspace_names()

    def __iter__(self) -> Iterator[str]:
        return iter(self._database.keyspace_names())

    def __len__(self) -> int:
        return len(self._database.keyspace_names())


class Change(NamedTuple):
    """One operation as it was committed: what `Changes` yields lists of.

    `kind` is "put", "delete", "merge", "delete_range", "load" (pairs were ingested: read the
    keyspace), "drop_keyspace", "alter_keyspace" (it was renamed, or has another merge operator or
    time to live), or "other", which a later version may have.
    """

    #: Its place in the order of writes. Numbers ascend, with gaps.
    sequence: int
    #: The name that the keyspace had then; where it was renamed, the new one.
    keyspace: str
    #: What was done.
    kind: str
    #: The key of a put, a delete or a merge.
    key: Optional[bytes] = None
    #: The value of a put, the operand of a merge.
    value: Optional[bytes] = None
    #: When the key expires, if it does; `datetime.max` if that is later.
    expires: Optional[datetime.datetime] = None
    #: The operand was combined with no value.
    is_first: bool = False
    #: Where the range of a delete begins; at the first key, if it is `None`.
    start: Optional[bytes] = None
    #: Where it ends.
    stop: Optional[bytes] = None
    #: Whether `start` belongs to the range.
    include_start: bool = True
    #: Whether `stop` does.
    include_stop: bool = False
    #: The number of the keyspace, which no other keyspace of the database ever has.
    keyspace_id: int = 0
    #: The name that a keyspace had before it was altered.
    former_name: Optional[str] = None
    #: The merge operator of a keyspace that was altered, if it has one.
    merge_operator: Optional[str] = None
    #: Whether entries of a keyspace that was altered can expire: `False`, `True`, or a `timedelta`
    #: after which they do by default.
    ttl: Union[bool, datetime.timedelta, None] = None


class KeyspaceSettings(NamedTuple):
    """What a keyspace was at one place in the order of writes: `Changes.keyspace_settings`."""

    #: Its name.
    name: str
    #: The name of the order of its keys.
    comparator: str
    #: The name of its merge operator, if it had one.
    merge_operator: Optional[str]
    #: Whether entries could expire: `False`, `True`, or a `timedelta` after which they did by
    #: default.
    ttl: Union[bool, datetime.timedelta]


class Health(NamedTuple):
    """Whether a database can be written, and what is wrong if not."""

    #: Whether writes are accepted.
    writable: bool
    #: What went wrong last, while it has not been overcome.
    problem: Optional[str]
    #: Why writes are delayed or stopped.
    stall_reason: Optional[str]
    #: How many reads found a merge that failed.
    failed_merges: int


class FollowerLag(NamedTuple):
    """How far a follower is behind what its writer has written."""

    #: Batches in the log that the follower has not read.
    batches: int
    #: The bytes of log that they take.
    log_bytes: int
    #: The number of the last write in them; if there are none, of the last write that the follower has.
    sequence: int


class RepairReport(NamedTuple):
    """What a repair has found."""

    #: Whether there was nothing to repair.
    healthy: bool
    #: Whether entries are lost, or may be.
    lost_entries: bool
    #: The number of entries that the repaired database has in tables.
    entries: int
    #: What to know about the result.
    warnings: list[str]
    #: The damaged files, each with its damage.
    problems: list[str]
    #: Where the damaged files are kept.
    lost_directory: Optional[str]


class MergeOperator:
    """A merge operator in Python, to be derived from.

    Both merges must be deterministic and agree with each other. They are called in any thread, at
    any time, any number of times, while the engine holds locks: they should be short, wait for
    nothing, and read at most single keys of the database. What they raise makes reads of the key
    fail with `MergeError`.

    >>> import esker, tempfile
    >>> class Longest(esker.MergeOperator):
    ...     name = "longest"
    ...     def full_merge(self, key, existing, operands):
    ...         return max([existing or b"", *operands], key=len)
    >>> with esker.open(tempfile.mkdtemp()) as db:
    ...     words = db.keyspace("words", merge_operator=Longest())
    ...     for word in [b"to", b"three", b"one"]:
    ...         words.merge(b"word", word)
    ...     words[b"word"]
    b'three'
    """

    #: Stored with the keyspace. Change it when the meaning of stored operands changes.
    name: str

    def full_merge(self, key: bytes, existing: Optional[bytes], operands: list[bytes]) -> Optional[bytes]:
        """The value after all `operands`, oldest first; `None` deletes the key."""
        raise NotImplementedError

    #: May be a method `(key, older, newer)` that makes one operand of two, or returns `None` where
    #: it cannot.
    partial_merge: Any = None

    #: May be a method `(operand)` that raises where `full_merge` could never take the operand.
    check_operand: Any = None


class AssociativeOperator(MergeOperator):
    """The merge operator of an associative function of two values.

    >>> import esker, tempfile
    >>> longest = esker.AssociativeOperator("longest", lambda older, newer: max(older, newer, key=len))
    >>> with esker.open(tempfile.mkdtemp()) as db:
    ...     words = db.keyspace("words", merge_operator=longest)
    ...     words.merge(b"word", b"two")
    ...     words.merge(b"word", b"three")
    ...     words[b"word"]
    b'three'
    """

    def __init__(self, name: str, function: collections.abc.Callable[[bytes, bytes], bytes]) -> None:
        self.name = name
        self._function = function

    def full_merge(self, key: bytes, existing: Optional[bytes], operands: list[bytes]) -> Optional[bytes]:
        """Combines all operands, one after the other."""
        value = existing
        for operand in operands:
            value = operand if value is None else self._function(value, operand)
        return value

    def partial_merge(self, key: bytes, older: bytes, newer: bytes) -> bytes:
        """Combines two operands."""
        return self._function(older, newer)


class Comparator:
    """An order of keys in Python: a function of two keys, below, at or above zero.

    It must be a total order, and always the same. Keys that it calls equal are different keys, in
    the order of their bytes. It is called for each comparison of keys, in any thread, as merge
    operators are: a keyspace with one is many times slower. What it raises is reported by
    `sys.unraisablehook`, and the two keys are ordered by their bytes.

    >>> import esker, tempfile
    >>> by_length = esker.Comparator("by-length", lambda a, b: len(a) - len(b))
    >>> with esker.open(tempfile.mkdtemp(), comparators=[by_length]) as db:
    ...     words = db.keyspace("words", comparator=by_length)
    ...     words.update({b"pear": b"", b"fig": b"", b"banana": b""})
    ...     list(words)
    [b'fig', b'pear', b'banana']
    """

    def __init__(self, name: str, compare: collections.abc.Callable[[bytes, bytes], int]) -> None:
        #: Stored with the keyspace. Another order needs another name.
        self.name = name
        #: The function.
        self.compare = compare


class CompactionFilter:
    """A filter of values in Python, which compaction asks: a function of a key and its value.

    It returns `True` to keep the value, `False` to remove the key, or the bytes that replace the
    value. It is called only for values of puts that no snapshot sees, in any thread, at any time or
    never, as merge operators are. What it raises is reported by `sys.unraisablehook`, and the value
    stays.

    >>> import esker, tempfile
    >>> no_drafts = esker.CompactionFilter("no drafts", lambda key, value: value != b"draft")
    >>> with esker.open(tempfile.mkdtemp()) as db:
    ...     pages = db.keyspace("pages", compaction_filter=no_drafts)
    ...     pages.update({b"a": b"draft", b"b": b"text"})
    ...     db.compact()
    ...     list(pages)
    [b'b']
    """

    def __init__(self, name: str, decide: collections.abc.Callable[[bytes, bytes], Union[bool, bytes]]) -> None:
        #: For messages.
        self.name = name
        #: The function.
        self.decide = decide


class FilterPolicy:
    """What says that a table need not be searched, in Python, to be derived from.

    It is asked beside the filters of the engine, in any thread, as merge operators are. What it
    raises is reported by `sys.unraisablehook`, and the table has no filter, or is searched.

    >>> import esker, tempfile
    >>> class Lengths(esker.FilterPolicy):
    ...     name = "lengths"
    ...     def create_filter(self, keys):
    ...         return bytes(sorted({min(len(key), 255) for key in keys}))
    ...     def key_may_match(self, key, filter):
    ...         return min(len(key), 255) in filter
    >>> with esker.open(tempfile.mkdtemp(), filter_policy=Lengths()) as db:
    ...     db[b"ada"] = b"1815"
    ...     db.flush()
    ...     db[b"ada"], db.get(b"bobby")
    (b'1815', None)
    """

    #: Stored with each table that has a filter: another policy needs another name.
    name: str

    def create_filter(self, keys: list[bytes]) -> Optional[bytes]:
        """The filter of a table with these keys; `None` for no filter."""
        raise NotImplementedError

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        """Whether a table with this filter may have the key. `True` where it is not known."""
        raise NotImplementedError
