// Package ethdb is a keyspace of Esker as the key-value store of go-ethereum: its package ethdb has
// the interfaces, and the meaning of the calls.
package ethdb

import (
	"bytes"
	"errors"
	"sync"

	"esker"

	"github.com/ethereum/go-ethereum/ethdb"
)

// ErrNotFound is what Get returns for a key that has no value.
var ErrNotFound = errors.New("esker: not found")

// keyspace is the one that New opens.
const keyspace = "default"

// bytewise is the name of the order of bytes.
const bytewise = "bytewise"

// Database is a key-value store of go-ethereum.
type Database struct {
	db   *esker.DB
	keys *esker.Keyspace
	// close ends what New has opened, once.
	close func() error
}

var _ ethdb.KeyValueStore = (*Database)(nil)

// New opens the database in a directory, or creates it. Errors are those of [esker.Open].
func New(path string, options ...esker.Option) (*Database, error) {
	db, err := esker.Open(path, options...)
	if err != nil {
		return nil, err
	}
	keys, err := db.Keyspace(keyspace)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	end := func() error { return errors.Join(keys.Close(), db.Close()) }
	return &Database{db: db, keys: keys, close: sync.OnceValue(end)}, nil
}

// Of is a store in a keyspace of a database that is open, and stays open when the store is closed.
// [esker.ErrInvalidArgument] if the keyspace is in another order than that of bytes.
func Of(keys *esker.Keyspace) (*Database, error) {
	comparator, err := keys.Comparator()
	if err != nil {
		return nil, err
	}
	if comparator != bytewise {
		message := "invalid argument: a keyspace in the order " + comparator + "; the keys of a store are in the order of bytes"
		return nil, &esker.Error{Code: esker.ErrInvalidArgument, Message: message}
	}
	return &Database{db: keys.DB(), keys: keys, close: func() error { return nil }}, nil
}

// Close closes the database. A second Close does nothing.
func (d *Database) Close() error { return d.close() }

// Has says whether a key has a value.
func (d *Database) Has(key []byte) (bool, error) { return d.keys.Has(key) }

// Get is the value of a key, or ErrNotFound.
func (d *Database) Get(key []byte) ([]byte, error) {
	value, err := d.keys.Get(key)
	if err == nil && value == nil {
		err = ErrNotFound
	}
	return value, err
}

// Put sets the value of a key.
func (d *Database) Put(key, value []byte) error { return d.keys.Put(key, value) }

// Delete deletes a key, which need not exist.
func (d *Database) Delete(key []byte) error { return d.keys.Delete(key) }

// isEmpty says whether a range has no keys.
func isEmpty(start, end []byte) bool { return end != nil && bytes.Compare(start, end) >= 0 }

// usable is an error if the store was closed.
func (d *Database) usable() error {
	_, err := d.keys.CompareKeys(nil, nil)
	return err
}

// DeleteRange deletes the keys from start on and below end, in one atomic step.
func (d *Database) DeleteRange(start, end []byte) error {
	if isEmpty(start, end) {
		return d.usable()
	}
	return d.keys.DeleteRange(esker.Range{Start: start, End: end})
}

// Stat is statistics as a text.
func (d *Database) Stat() (string, error) { return d.db.Stats() }

// SyncKeyValue brings everything written so far to the device.
func (d *Database) SyncKeyValue() error { return d.db.Sync() }

// Compact compacts a range into one run.
func (d *Database) Compact(start, limit []byte) error {
	if isEmpty(start, limit) {
		return d.usable()
	}
	return d.keys.Compact(esker.Range{Start: start, End: limit})
}
