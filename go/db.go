package esker

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
)

// DB is an open database. Close it; any goroutine may use it.
type DB struct {
	handle dbHandle
	closed atomic.Bool
	net    runtime.Cleanup
}

// A handle of the library is a number, not an address: one that has ended is told from all others.
type dbHandle struct{ c *C.esker_db }

func newDB(open func(**C.esker_db) C.esker_code) (*DB, error) {
	var handle dbHandle
	if err := call(func() C.esker_code { return open(&handle.c) }); err != nil {
		return nil, err
	}
	db := &DB{handle: handle}
	// Closing takes time, which other cleanups do not wait for.
	db.net = runtime.AddCleanup(db, func(handle dbHandle) { go C.esker_db_close(handle.c) }, handle)
	return db, nil
}

func open(path string, options []Option, how func(*C.char, *C.esker_options, **C.esker_db) C.esker_code) (*DB, error) {
	var db *DB
	err := withOptions(options, func(options *C.esker_options) error {
		return withText("the path", path, func(path *C.char) (err error) {
			db, err = newDB(func(db **C.esker_db) C.esker_code { return how(path, options, db) })
			return err
		})
	})
	return db, err
}

// Open opens the database in a directory, or creates it. Nobody else may have it open for writing:
// ErrLocked.
func Open(path string, options ...Option) (*DB, error) {
	return open(path, options, func(path *C.char, options *C.esker_options, db **C.esker_db) C.esker_code {
		return C.esker_db_open(path, options, db)
	})
}

// OpenReadOnly opens a database for reading, beside a writer or not: it sees what was acknowledged
// before.
func OpenReadOnly(path string, options ...Option) (*DB, error) {
	return open(path, options, func(path *C.char, options *C.esker_options, db **C.esker_db) C.esker_code {
		return C.esker_db_open_read_only(path, options, db)
	})
}

// Close flushes what was written without log, ends waits of [Changes] and [Watch], and releases the
// lock. All objects of the database fail with ErrClosed from then on; calls under way end as they
// would have. A second Close fails with ErrClosed.
func (db *DB) Close() error {
	if db == nil || db.handle.c == nil {
		return newError(ErrWrongHandle, "no database")
	}
	if db.closed.Swap(true) {
		return closed("the database")
	}
	db.net.Stop()
	err := call(func() C.esker_code { return C.esker_db_close(db.handle.c) })
	runtime.KeepAlive(db)
	return err
}

// usable is an error if the database is none, or closed.
func (db *DB) usable() error {
	if db == nil || db.handle.c == nil {
		return newError(ErrWrongHandle, "no database")
	}
	if db.closed.Load() {
		return closed("the database")
	}
	return nil
}

// run makes a call of the database, which is not collected meanwhile.
func (db *DB) run(f func() C.esker_code) error {
	if err := db.usable(); err != nil {
		return err
	}
	err := call(f)
	runtime.KeepAlive(db)
	return err
}

// ended makes the error of a call of a part of the database that of a closed one, if it was closed
// under way: the parts of the library read on, and refuse writes and waits.
func (db *DB) ended(err error) error {
	if errors.Is(err, ErrReadOnly) && db.closed.Load() {
		return closed("the database")
	}
	return err
}

// Path is the directory.
func (db *DB) Path() (string, error) {
	return db.text(func(text **C.char) C.esker_code { return C.esker_db_path(db.handle.c, text) })
}

// text is a text that a call returns.
func (db *DB) text(f func(**C.char) C.esker_code) (string, error) {
	var text *C.char
	if err := db.run(func() C.esker_code { return f(&text) }); err != nil {
		return "", err
	}
	return takeText(text), nil
}

// Keyspace opens a keyspace, or creates it with these options. Built-in merge operators need not be
// named again; others, and comparators, do.
func (db *DB) Keyspace(name string, options ...KeyspaceOption) (*Keyspace, error) {
	var opened *Keyspace
	err := withKeyspaceOptions(options, func(options *C.esker_keyspace_options) error {
		return withText("the name of a keyspace", name, func(name *C.char) (err error) {
			opened, err = db.newKeyspace(func(keyspace **C.esker_keyspace) C.esker_code {
				return C.esker_db_keyspace(db.handle.c, name, options, keyspace)
			})
			return err
		})
	})
	return opened, err
}

// ExistingKeyspace opens a keyspace that exists: ErrNotFound if it does not.
func (db *DB) ExistingKeyspace(name string) (*Keyspace, error) {
	var opened *Keyspace
	err := withText("the name of a keyspace", name, func(name *C.char) (err error) {
		opened, err = db.newKeyspace(func(keyspace **C.esker_keyspace) C.esker_code {
			return C.esker_db_existing_keyspace(db.handle.c, name, keyspace)
		})
		return err
	})
	return opened, err
}

// DropKeyspace removes a keyspace with all that is in it.
func (db *DB) DropKeyspace(name string) error {
	return withText("the name of a keyspace", name, func(name *C.char) error {
		return db.run(func() C.esker_code { return C.esker_db_drop_keyspace(db.handle.c, name) })
	})
}

// Keyspaces are the names of all keyspaces, ascending.
func (db *DB) Keyspaces() ([]string, error) {
	texts, err := db.pairs(func(pairs *C.go_pairs) C.esker_code {
		return C.go_db_keyspaces(db.handle.c, pairs)
	})
	names := make([]string, len(texts))
	for i, text := range texts {
		names[i] = string(text.key)
	}
	return names, err
}

// pairs is what a call has collected. A call that fails may have collected some before.
func (db *DB) pairs(f func(*C.go_pairs) C.esker_code) ([]pair, error) {
	var pairs C.go_pairs
	err := db.run(func() C.esker_code { return f(&pairs) })
	return takePairs(&pairs), err
}

// Transact begins a transaction, calls a function with it, and commits it. After a conflict, and
// where writes are stalled, it begins again, until the context ends: its error then. An error of the
// function rolls the transaction back, and is returned; so does a panic, which goes on. The function
// neither commits nor keeps the transaction.
func (db *DB) Transact(ctx context.Context, f func(*Transaction) error, options ...WriteOption) error {
	if f == nil || ctx == nil {
		return invalid("no function, or no context")
	}
	o, err := newWriteOptions(options)
	if err != nil {
		return err
	}
	// A commit cannot be interrupted: it is given up, and the transaction run again.
	inPieces := ctx.Done() != nil && o.stall == waitForever
	if inPieces {
		options = append(options[:len(options):len(options)], Stall(slice))
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		ofCommit, err := db.transactOnce(f, options)
		if !ofCommit || (!errors.Is(err, ErrConflict) && !(inPieces && errors.Is(err, ErrWriteStalled))) {
			return err
		}
	}
}

// transactOnce runs the transaction. The result, or its error, may be that of the commit.
func (db *DB) transactOnce(f func(*Transaction) error, options []WriteOption) (ofCommit bool, err error) {
	transaction, err := db.Transaction()
	if err != nil {
		return false, err
	}
	// After the commit it has nothing left to do.
	defer transaction.Rollback()
	if err := f(transaction); err != nil {
		return false, err
	}
	return true, transaction.Commit(options...)
}
