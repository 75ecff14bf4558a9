"""Keyspaces as mappings: everything that a dict does, against a dict."""

from __future__ import annotations

import collections.abc
import random

import pytest

import esker


def test_items_are_set_found_and_removed(db: esker.Database) -> None:
    db[b"ada"] = b"1815"
    assert db[b"ada"] == b"1815"
    assert b"ada" in db and b"bob" not in db
    with pytest.raises(KeyError) as missing:
        db[b"bob"]
    assert missing.value.args == (b"bob",)
    del db[b"ada"]
    assert db.get(b"ada") is None and db.get(b"ada", b"?") == b"?"
    with pytest.raises(KeyError):
        del db[b"ada"]
    db.delete(b"ada")


def test_it_is_a_mutable_mapping(db: esker.Database) -> None:
    assert isinstance(db, collections.abc.MutableMapping)
    assert isinstance(db.keyspace("k"), collections.abc.MutableMapping)
    with db.snapshot() as snapshot:
        assert isinstance(snapshot, collections.abc.Mapping)
        assert not isinstance(snapshot, collections.abc.MutableMapping)


def test_it_does_what_a_sorted_dict_does(db: esker.Database) -> None:
    chance = random.Random(7)
    names = db.keyspace("names")
    model: dict[bytes, bytes] = {}
    for step in range(3000):
        key = b"%d" % chance.randrange(60)
        value = b"%d" % step
        action = chance.randrange(9)
        if action < 3:
            names[key] = model[key] = value
        elif action == 3:
            assert names.pop(key, None) == model.pop(key, None)
        elif action == 4:
            assert names.setdefault(key, value) == model.setdefault(key, value)
        elif action == 5 and model:
            least = min(model)
            assert names.popitem() == (least, model.pop(least))
        elif action == 6:
            pairs = {b"%d" % chance.randrange(60): value for _ in range(3)}
            names.update(pairs)
            model.update(pairs)
        elif action == 7:
            assert names.get(key) == model.get(key)
        else:
            low, high = sorted((key, b"%d" % chance.randrange(60)))
            if step % 10 == 0:
                del names[low:high]
                model = {key: value for key, value in model.items() if not low <= key < high}
            else:
                assert list(names[low:high]) == [pair for pair in sorted(model.items()) if low <= pair[0] < high]
        if step % 500 == 0:
            db.flush()
    expected = sorted(model.items())
    assert list(names.items()) == expected
    assert list(names) == list(names.keys()) == [key for key, _ in expected]
    assert list(names.values()) == [value for _, value in expected]
    assert list(reversed(names)) == [key for key, _ in reversed(expected)]
    assert list(reversed(names.items())) == expected[::-1]
    assert dict(names) == model and len(names) == len(model) and bool(names) == bool(model)
    assert names.keys() & {b"1", b"x"} == model.keys() & {b"1", b"x"}
    names.clear()
    assert len(names) == 0 and not names


def test_update_is_one_write(db: esker.Database) -> None:
    def pairs() -> collections.abc.Iterator[tuple[bytes, bytes]]:
        yield b"a", b"1"
        raise LookupError("in the middle")

    with pytest.raises(LookupError, match="in the middle"):
        db.update(pairs())
    assert len(db) == 0
    with pytest.raises(TypeError):
        db.update({b"a": 1})
    assert len(db) == 0
    db.update([(b"a", b"1"), (b"b", b"2")], sync=True)
    assert len(db) == 2


def test_pop_on_an_empty_keyspace(db: esker.Database) -> None:
    assert db.pop_first() is None
    with pytest.raises(KeyError):
        db.popitem()
    with pytest.raises(KeyError):
        db.pop(b"a")
    with pytest.raises(TypeError):
        db.pop(b"a", 1, 2)  # type: ignore[call-overload]


def test_conditional_writes(db: esker.Database) -> None:
    assert db.put_if_absent(b"k", b"1") is None
    assert db.put_if_absent(b"k", b"2") == b"1"
    assert not db.compare_and_swap(b"k", b"2", b"3")
    assert db.compare_and_swap(b"k", b"1", b"3") and db[b"k"] == b"3"
    assert db.compare_and_swap(b"k", b"3", None) and b"k" not in db
    assert db.compare_and_swap(b"k", None, b"") and db[b"k"] == b""


def test_several_keys_at_once(db: esker.Database) -> None:
    db.update({b"a": b"1", b"c": b"3"})
    assert db.get_many([b"a", b"b", b"c"]) == [b"1", None, b"3"]
    assert db.get_many(iter([])) == []
    assert db.first() == (b"a", b"1") and db.last() == (b"c", b"3")
    assert db.count() == 2 and db.count(b"b") == 1 and db.count(prefix=b"a") == 1


def test_a_keyspace_by_name(db: esker.Database) -> None:
    hits = db.keyspace("hits", merge_operator="uint64add")
    assert (hits.name, hits.merge_operator, hits.expires, hits.default_ttl) == ("hits", "uint64add", False, None)
    assert list(db.keyspaces) == ["hits"] and "hits" in db.keyspaces and len(db.keyspaces) == 1
    assert db.keyspaces["hits"].merge_operator == "uint64add"
    with pytest.raises(KeyError):
        db.keyspaces["no"]
    with pytest.raises(esker.NotFoundError):
        db.keyspace("no", create=False)
    hits.merge(b"k", (2).to_bytes(8, "little"))
    del db.keyspaces["hits"]
    with pytest.raises(KeyError):
        del db.keyspaces["hits"]
    with pytest.raises(esker.KeyspaceDroppedError) as dropped:
        hits.put(b"k", b"1")
    assert dropped.value.keyspace == "hits"


def test_the_default_keyspace_is_made_by_its_first_use(db: esker.Database) -> None:
    assert db.keyspace_names() == []
    assert db.name == "default"
    db.get(b"k")
    assert db.keyspace_names() == ["default"]


def test_a_load_of_sorted_pairs(db: esker.Database) -> None:
    assert db.ingest((b"%04d" % number, b"") for number in range(1000)) == 1000
    assert len(db) == 1000
    with pytest.raises(esker.InvalidArgumentError):
        db.ingest([(b"b", b""), (b"a", b"")])


def test_sizes_and_compaction(db: esker.Database) -> None:
    db.update((b"%04d" % number, bytes(100)) for number in range(1000))
    db.flush()
    assert db.approximate_size() > db.approximate_size(b"0500") > 0
    db.delete_range(prefix=b"0")
    db.compact_range()
    db.compact()
    db.wait_idle()
    assert len(db) == 0 and db.verify() == 0
