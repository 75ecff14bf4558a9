"""What plyvel's own tests do not look at."""

from __future__ import annotations

import pathlib
from typing import Callable

import pytest

import esker
import esker.plyvel as plyvel


def test_it_is_the_default_keyspace(directory: pathlib.Path) -> None:
    with plyvel.DB(str(directory), create_if_missing=True) as db:
        db.put(b"k", b"v")
    with esker.open(directory) as modern:
        assert modern[b"k"] == b"v"
        modern[b"m"] = b"w"
    with plyvel.DB(str(directory)) as db:
        assert list(db) == [(b"k", b"v"), (b"m", b"w")]


def test_errors_have_their_classes(directory: pathlib.Path) -> None:
    with pytest.raises(plyvel.IOError):
        plyvel.DB(str(directory))
    with plyvel.DB(str(directory), create_if_missing=True):
        with pytest.raises(plyvel.IOError):
            plyvel.DB(str(directory))
    with pytest.raises(plyvel.Error):
        plyvel.DB(str(directory), error_if_exists=True)
    with pytest.raises(TypeError):
        plyvel.DB(str(directory), no_such_option=1)  # type: ignore[call-arg]
    with pytest.raises(OverflowError):
        plyvel.DB(str(directory), write_buffer_size=-1)
    assert issubclass(plyvel.IOError, OSError) and issubclass(plyvel.IteratorInvalidError, plyvel.Error)


def test_destroying(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "db"
    plyvel.destroy_db(str(path))
    with plyvel.DB(str(path), create_if_missing=True) as db:
        db.put(b"k", b"v")
        with pytest.raises(plyvel.IOError):
            plyvel.destroy_db(str(path))
    (path / "notes").write_bytes(b"")
    plyvel.destroy_db(str(path))
    assert [child.name for child in path.iterdir()] == ["notes"]
    # What is without a database is left as it is, but for an empty directory.
    plyvel.destroy_db(str(path))
    plyvel.destroy_db(str(path / "notes"))
    assert (path / "notes").is_file()
    (tmp_path / "empty").mkdir()
    plyvel.destroy_db(str(tmp_path / "empty"))
    assert not (tmp_path / "empty").exists()
    with pytest.raises(plyvel.IOError):
        plyvel.repair_db(str(path))


def test_a_directory_of_leveldb_is_refused_and_stays_as_it_is(directory: pathlib.Path) -> None:
    directory.mkdir(exist_ok=True)
    files = {"CURRENT": b"MANIFEST-000002\n", "MANIFEST-000002": b"x", "000003.log": b"x", "000005.ldb": b"x"}
    for name, content in files.items():
        (directory / name).write_bytes(content)
    words = f"esker import --db NEW_DIRECTORY --from leveldb {directory}"
    calls: list[Callable[[], object]] = [
        lambda: plyvel.DB(str(directory), create_if_missing=True),
        lambda: plyvel.repair_db(str(directory)),
        lambda: plyvel.destroy_db(str(directory)),
        lambda: esker.open(directory, read_only=True),
        lambda: esker.open_follower(directory),
        lambda: esker.verify(directory),
    ]
    for call in calls:
        with pytest.raises(esker.Error, match="was written by LevelDB") as told:
            call()
        assert words in str(told.value)
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == files


def test_a_batch_can_be_written_again_and_appended_to_itself(directory: pathlib.Path) -> None:
    with plyvel.DB(str(directory), create_if_missing=True) as db:
        prefixed = db.prefixed_db(b"p-")
        batch = prefixed.write_batch()
        batch.put(b"a", bytearray(b"1"))
        batch.append(batch)
        batch.delete(b"b")
        db.put(b"p-b", b"2")
        batch.write()
        db.put(b"p-b", b"2")
        batch.write()
        assert list(db) == [(b"p-a", b"1")]
        assert prefixed.prefixed_db(b"x").prefix == b"p-x"
        assert prefixed.prefixed_db(b"x").db is db


def test_the_size_of_a_batch_is_that_of_leveldb(directory: pathlib.Path) -> None:
    with plyvel.DB(str(directory), create_if_missing=True) as db:
        batch, other = db.write_batch(), db.prefixed_db(b"p").write_batch()
        sizes = [batch.approximate_size()]
        batch.put(b"a", b"b")
        sizes.append(batch.approximate_size())
        batch.delete(b"")
        sizes.append(batch.approximate_size())
        batch.put(b"k", bytes(200))
        sizes.append(batch.approximate_size())
        other.put(bytes(127), bytes(128))
        sizes.append(other.approximate_size())
        batch.append(other)
        sizes.append(batch.approximate_size())
        batch.clear()
        # What plyvel 1.5.1 says.
        assert [*sizes, batch.approximate_size()] == [12, 17, 19, 224, 273, 485, 12]


def test_the_excluded_and_included_ends_of_a_reverse_iterator(directory: pathlib.Path) -> None:
    """plyvel leaves the included start out where it is the only key."""
    with plyvel.DB(str(directory), create_if_missing=True) as db:
        for key in (b"1", b"2", b"3"):
            db.put(key, b"")
        assert list(db.iterator(start=b"2", stop=b"3", reverse=True, include_value=False)) == [b"2"]


def test_a_raw_iterator_is_freed_and_says_so(directory: pathlib.Path) -> None:
    with plyvel.DB(str(directory), create_if_missing=True) as db:
        db.put(b"k", b"v")
        iterator = db.raw_iterator()
        for call in (iterator.key, iterator.value, iterator.item, iterator.next, iterator.prev):
            with pytest.raises(plyvel.IteratorInvalidError):
                call()
        iterator.seek_to_last()
        assert iterator.item() == (b"k", b"v")
    with pytest.raises(RuntimeError):
        iterator.item()


def test_properties(directory: pathlib.Path) -> None:
    with plyvel.DB(str(directory), create_if_missing=True) as db:
        db.put(b"k", b"v")
        db.compact_range()
        assert db.get_property(b"leveldb.num-files-at-level0") == b"1"
        for wrong in (b"leveldb.num-files-at-level9", b"leveldb.num-files-at-level", b"leveldb.num-files-at-level+1", b"\xff", b""):
            assert db.get_property(wrong) is None
        assert int(db.get_property(b"leveldb.approximate-memory-usage") or b"-1") >= 0
        assert db.get_property(b"esker.flushes") is not None or db.get_property(b"esker.wal.bytes") is not None


def test_files_are_those_of_its_own_keyspace(directory: pathlib.Path) -> None:
    with esker.open(directory) as modern:
        modern[b"k"] = modern.keyspace("other")[b"k"] = b"v"
        modern.flush()
    with plyvel.DB(str(directory)) as db:
        assert [db.get_property(b"leveldb.num-files-at-level%d" % level) for level in (0, 1, 6)] == [b"1", b"0", b"0"]


def test_flags_are_taken_by_their_truth(directory: pathlib.Path) -> None:
    with pytest.raises(plyvel.IOError):
        plyvel.DB(str(directory), create_if_missing=None)
    with plyvel.DB(str(directory), create_if_missing=1, error_if_exists=0, paranoid_checks=1) as db:
        db.put(b"a", b"1", sync=1)
        db.put(b"b", b"2", sync=None)
        db.delete(b"c", sync=1)
        assert list(db.iterator(reverse=1, include_value=0)) == [b"b", b"a"]
        assert list(db.iterator(include_key=None, reverse=None)) == [b"1", b"2"]
        assert list(db.iterator(start=b"a", stop=b"b", include_start=0, include_stop=1)) == [(b"b", b"2")]
        assert db.get(b"a", verify_checksums=1, fill_cache=None) == b"1"
        with pytest.raises(LookupError):
            with db.write_batch(transaction=1, sync=1) as batch:
                batch.put(b"d", b"4")
                raise LookupError
        with pytest.raises(LookupError):
            with db.write_batch(transaction=None) as batch:
                batch.put(b"e", b"5")
                raise LookupError
        assert list(db.snapshot().iterator(include_value=0)) == [b"a", b"b", b"e"]
        prefixed = db.prefixed_db(b"p")
        prefixed.put(b"x", b"", sync=1)
        assert list(prefixed.iterator(include_value=0, reverse=1)) == [b"x"]


def test_a_database_that_was_not_to_exist(directory: pathlib.Path) -> None:
    plyvel.DB(str(directory), create_if_missing=True, error_if_exists=True).close()
    with pytest.raises(plyvel.Error) as refused:
        plyvel.DB(str(directory), error_if_exists=True)
    assert str(refused.value) == f"Invalid argument: {directory}: exists (error_if_exists is true)"
    assert isinstance(refused.value, esker.AlreadyExistsError) and not isinstance(refused.value, plyvel.IOError)
    with pytest.raises(esker.AlreadyExistsError, match="exists already") as typed:
        esker.open(directory, error_if_exists=True)
    assert isinstance(typed.value, FileExistsError)
    with plyvel.DB(str(directory), error_if_exists=False) as db:
        assert list(db) == []


def test_sizes_of_ranges_in_any_form(directory: pathlib.Path) -> None:
    with plyvel.DB(str(directory), create_if_missing=True) as db:
        db.put(b"a", bytes(1000))
        sizes = db.approximate_sizes((b"a", b"b"), [b"a", b"b"], iter([b"a", b"b"]))
        assert len(set(sizes)) == 1 and sizes[0] == db.approximate_size(b"a", b"b")
        wrongs: list[tuple[object, type[Exception]]] = [
            ((b"a",), ValueError),
            ((b"a", b"b", b"c"), ValueError),
            ((b"a", 1), TypeError),
            (b"ab", TypeError),
            (7, TypeError),
        ]
        for wrong, error in wrongs:
            with pytest.raises(error):
                db.approximate_sizes(wrong)  # type: ignore[arg-type]
