// Package cosmosdb is a keyspace of Esker as the database of programs that are made with the Cosmos
// SDK, CometBFT or Tendermint. The packages cosmos-db, cometbft-db and tm-db each have an interface DB
// of nearly the same methods, whose results are interfaces of the same package; the type parameters
// are these two:
//
//	import db "github.com/cometbft/cometbft-db"
//
//	var database db.DB
//	database, err := cosmosdb.Open[db.Batch, db.Iterator](path)
//
// The package itself imports none of them.
package cosmosdb

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"esker"
)

var (
	// ErrKeyEmpty is what a key, or the bound of a range, of no bytes is refused with.
	ErrKeyEmpty = errors.New("key cannot be empty")
	// ErrValueNil is what a value of nil is refused with; a value of no bytes is one.
	ErrValueNil = errors.New("value cannot be nil")
	// ErrBatchClosed is what calls of a batch return that was written or closed.
	ErrBatchClosed = errors.New("batch has been written or closed")
)

// keyspace is the one that Open opens.
const keyspace = "default"

// bytewise is the name of the order of bytes.
const bytewise = "bytewise"

// DB is a database of cosmos-db, cometbft-db or tm-db. Any number of goroutines may use it.
type DB[B, I any] struct {
	db   *esker.DB
	keys *esker.Keyspace
	// close ends what Open has opened, once.
	close func() error
}

// fits says whether the two types are what the database can return.
func fits[B, I any]() error {
	if _, ok := any((*Batch)(nil)).(B); !ok {
		return invalid("the first type parameter is no interface that cosmosdb.Batch has")
	}
	if _, ok := any((*Iterator)(nil)).(I); !ok {
		return invalid("the second type parameter is no interface that cosmosdb.Iterator has")
	}
	return nil
}

func invalid(what string) error {
	return &esker.Error{Code: esker.ErrInvalidArgument, Message: "invalid argument: " + what}
}

// Open opens the database in a directory, or creates it. Errors are those of [esker.Open], and
// [esker.ErrInvalidArgument] if the type parameters are others than those of the package's comment.
func Open[B, I any](path string, options ...esker.Option) (*DB[B, I], error) {
	if err := fits[B, I](); err != nil {
		return nil, err
	}
	db, err := esker.Open(path, options...)
	if err != nil {
		return nil, err
	}
	keys, err := db.Keyspace(keyspace)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	end := func() error { return errors.Join(keys.Close(), db.Close()) }
	return &DB[B, I]{db: db, keys: keys, close: sync.OnceValue(end)}, nil
}

// Of is a database in a keyspace of one that is open, and stays open when the new one is closed.
// [esker.ErrInvalidArgument] as of [Open], and if the keyspace is in another order than that of bytes.
func Of[B, I any](keys *esker.Keyspace) (*DB[B, I], error) {
	if err := fits[B, I](); err != nil {
		return nil, err
	}
	comparator, err := keys.Comparator()
	if err != nil {
		return nil, err
	}
	if comparator != bytewise {
		return nil, invalid("a keyspace in the order " + comparator + "; the keys of such a database are in the order of bytes")
	}
	return &DB[B, I]{db: keys.DB(), keys: keys, close: func() error { return nil }}, nil
}

// Close closes the database. A second Close does nothing.
func (d *DB[B, I]) Close() error { return d.close() }

// Get is the value of a key, or nil.
func (d *DB[B, I]) Get(key []byte) ([]byte, error) {
	if len(key) == 0 {
		return nil, ErrKeyEmpty
	}
	return d.keys.Get(key)
}

// Has says whether a key has a value.
func (d *DB[B, I]) Has(key []byte) (bool, error) {
	if len(key) == 0 {
		return false, ErrKeyEmpty
	}
	return d.keys.Has(key)
}

func checked(key, value []byte) error {
	if len(key) == 0 {
		return ErrKeyEmpty
	}
	if value == nil {
		return ErrValueNil
	}
	return nil
}

func (d *DB[B, I]) set(key, value []byte, options ...esker.WriteOption) error {
	if err := checked(key, value); err != nil {
		return err
	}
	return d.keys.Put(key, value, options...)
}

// Set sets the value of a key.
func (d *DB[B, I]) Set(key, value []byte) error { return d.set(key, value) }

// SetSync sets the value of a key, and returns when that is on the device.
func (d *DB[B, I]) SetSync(key, value []byte) error { return d.set(key, value, esker.Sync()) }

func (d *DB[B, I]) delete(key []byte, options ...esker.WriteOption) error {
	if len(key) == 0 {
		return ErrKeyEmpty
	}
	return d.keys.Delete(key, options...)
}

// Delete deletes a key, which need not exist.
func (d *DB[B, I]) Delete(key []byte) error { return d.delete(key) }

// DeleteSync deletes a key, and returns when that is on the device.
func (d *DB[B, I]) DeleteSync(key []byte) error { return d.delete(key, esker.Sync()) }

// NewBatch makes an empty batch.
func (d *DB[B, I]) NewBatch() B {
	batch, err := d.db.Batch()
	made := &Batch{keys: d.keys, batch: batch, err: err}
	// Open has seen that it fits.
	return any(made).(B)
}

// NewBatchWithSize is NewBatch: a batch grows by itself.
func (d *DB[B, I]) NewBatchWithSize(int) B { return d.NewBatch() }

// Iterator is at the first key of a range, as of this moment: from start on, or from the first key of
// all if it is nil, and below end, or to the last key of all if that is nil. Writes may go on
// meanwhile.
func (d *DB[B, I]) Iterator(start, end []byte) (I, error) { return d.iterator(start, end, false) }

// ReverseIterator is at the last key of a range, and goes to the first one.
func (d *DB[B, I]) ReverseIterator(start, end []byte) (I, error) { return d.iterator(start, end, true) }

func (d *DB[B, I]) iterator(start, end []byte, reverse bool) (found I, err error) {
	if (start != nil && len(start) == 0) || (end != nil && len(end) == 0) {
		return found, ErrKeyEmpty
	}
	r := esker.Range{Start: start, End: end}
	if isEmpty(start, end) {
		// Of no keys, at a place that there is.
		r = esker.Range{Start: end, End: end}
	}
	pairs, err := d.keys.Scan(esker.ScanOptions{Range: r, Reverse: reverse}).Iterator()
	if err != nil {
		return found, err
	}
	i := &Iterator{pairs: pairs, start: bytes.Clone(start), end: bytes.Clone(end)}
	i.valid = pairs.Next()
	return any(i).(I), nil
}

// isEmpty says whether a range has no keys.
func isEmpty(start, end []byte) bool { return end != nil && bytes.Compare(start, end) >= 0 }

// Compact compacts a range into one run.
func (d *DB[B, I]) Compact(start, end []byte) error {
	if isEmpty(start, end) {
		return nil
	}
	return d.keys.Compact(esker.Range{Start: start, End: end})
}

// Print prints statistics and all pairs, as a help in the search for mistakes.
func (d *DB[B, I]) Print() error {
	stats, err := d.db.Stats()
	if err != nil {
		return err
	}
	fmt.Println(stats)
	scan := d.keys.All()
	for key, value := range scan.All() {
		fmt.Printf("[%X]:\t[%X]\n", key, value)
	}
	return scan.Err()
}

// Stats are the properties of the engine, by their names; none of a database that is closed.
func (d *DB[B, I]) Stats() map[string]string {
	properties, err := d.db.Properties()
	if err != nil {
		return map[string]string{}
	}
	return properties
}
