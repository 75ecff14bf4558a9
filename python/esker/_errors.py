"""The exceptions of Esker.

Every exception of the engine is an `Error`. Attributes say what the message says: `path`, `offset`,
`keyspace`, `key` and others, each `None` where it does not apply.
"""

import builtins
from typing import List, Optional

__all__ = [
    "AlreadyExistsError",
    "ClosedError",
    "ConflictError",
    "CorruptionError",
    "Error",
    "ForkedError",
    "GoneError",
    "IOError",
    "InCallbackError",
    "InvalidArgumentError",
    "IteratorInvalidError",
    "KeyspaceDroppedError",
    "LockedError",
    "MergeError",
    "MissingComparatorError",
    "MissingMergeOperatorError",
    "NotFoundError",
    "ReadOnlyError",
    "StalledError",
    "UnsupportedError",
    "WriteStalledError",
]


class Error(Exception):
    """What all errors of the engine are."""

    #: Whether the same call may succeed later, without a change by the caller.
    retryable: bool = False
    #: The file or directory that the error is about.
    path: Optional[str] = None
    #: The place in the file, in bytes.
    offset: Optional[int] = None
    #: The name of the keyspace.
    keyspace: Optional[str] = None
    #: The key, in escaped form.
    key: Optional[str] = None
    #: What helps, where that is known.
    hint: Optional[str] = None
    #: Where a verification raised it: all that is damaged, each with its place.
    damage: Optional[List[str]] = None


class IOError(Error, builtins.OSError):
    """The operating system refused an operation on a file. `errno` and `path` say which."""


class NotFoundError(IOError, FileNotFoundError):
    """There is no database, keyspace or file of that name."""


class AlreadyExistsError(Error, FileExistsError):
    """The database exists, and was not to."""


class LockedError(IOError):
    """Another handle, in this or another process, has the database open for writing."""

    #: The process that has it open, where that is known.
    holder: Optional[int] = None


class CorruptionError(Error):
    """Stored bytes are not what was written. `path` and `offset` say where."""


class InvalidArgumentError(Error, ValueError):
    """The engine cannot take an argument. Nothing was written."""


class ReadOnlyError(Error):
    """The database accepts no writes: it was opened so, or a failure of its log made it so."""


class ConflictError(Error):
    """Another writer wrote what a transaction read or writes. Run the transaction again."""


class MergeError(Error):
    """A merge operator could not combine the operands of a key.

    Where a Python callable raised in the thread of the call, its exception is the `__cause__`.
    """

    #: The name of the operator.
    operator: Optional[str] = None


class MissingMergeOperatorError(MergeError):
    """The keyspace has a merge operator that was not given when it was opened."""


class MissingComparatorError(Error):
    """A keyspace has an order of keys that was not given when the database was opened."""

    #: The name of the order.
    comparator: Optional[str] = None


class KeyspaceDroppedError(Error):
    """The keyspace was dropped."""


class WriteStalledError(Error):
    """A write with a timeout met stalled writes. Nothing was written."""


class StalledError(Error):
    """A reader met a writer that changes the files faster than they can be read."""


class GoneError(Error):
    """The changes are not kept any more."""

    #: The number of the first write whose changes are kept.
    oldest_write: Optional[int] = None


class InCallbackError(Error):
    """A merge operator made a call that may have to wait for its caller."""


class UnsupportedError(Error):
    """The files have a format that this version does not know."""


class IteratorInvalidError(Error):
    """A raw iterator of `esker.plyvel` is at no key."""


class ClosedError(Error, RuntimeError):
    """The object was closed, or its database was."""


class ForkedError(ClosedError):
    """The object belongs to the process that this one was forked from."""
