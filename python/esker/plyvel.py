"""plyvel's interface over Esker: `import esker.plyvel as plyvel` is the whole migration.

Names, arguments and meaning are those of plyvel 1.5. A database is the keyspace `default` of one
of Esker. It does not read the files of LevelDB: `esker import --from leveldb` copies them.

>>> import esker.plyvel as plyvel, tempfile
>>> with plyvel.DB(tempfile.mkdtemp(), create_if_missing=True) as db:
...     with db.write_batch() as batch:
...         batch.put(b"ada", b"1815")
...         batch.put(b"eve", b"1820")
...     list(db.iterator(reverse=True, include_value=False))
[b'eve', b'ada']

doc/python.md says what is different.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Union

from ._errors import CorruptionError, Error, IOError, IteratorInvalidError
from ._esker import DB, Iterator, PrefixedDB, RawIterator, WriteBatch, __version__, _plyvel_destroy, _plyvel_repair
from ._esker import PlyvelSnapshot as Snapshot

__all__ = [
    "CorruptionError",
    "DB",
    "Error",
    "IOError",
    "Iterator",
    "IteratorInvalidError",
    "PrefixedDB",
    "RawIterator",
    "Snapshot",
    "WriteBatch",
    "__leveldb_version__",
    "__version__",
    "destroy_db",
    "repair_db",
]

#: The version of LevelDB whose interface this is. There is no LevelDB behind it.
__leveldb_version__ = "1.23"


def _options(
    *,
    paranoid_checks: Optional[bool] = None,
    write_buffer_size: Optional[int] = None,
    max_open_files: Optional[int] = None,
    lru_cache_size: Optional[int] = None,
    block_size: Optional[int] = None,
    block_restart_interval: Optional[int] = None,
    max_file_size: Optional[int] = None,
    compression: Union[str, bytes, None] = "snappy",
    bloom_filter_bits: int = 0,
    comparator: Optional[Callable[[bytes, bytes], int]] = None,
    comparator_name: Optional[bytes] = None,
) -> dict[str, Any]:
    """The options of a call, with their defaults."""
    return dict(locals())


def repair_db(name: Union[str, bytes], **options: Any) -> None:
    """Makes a damaged database open with what can be read."""
    _plyvel_repair(name, _options(**options))


def destroy_db(name: Union[str, bytes]) -> None:
    """Removes a database, and its directory if nothing else is in it."""
    _plyvel_destroy(name)
