// Package esker is the embedded key-value engine Esker for Go, over its C interface: ordered
// keyspaces, batches, transactions, snapshots, merge operators, times to live and a change feed.
//
// A [DB] is an open directory, a [Keyspace] an ordered map in it from bytes to bytes:
//
//	db, err := esker.Open("data")
//	names, err := db.Keyspace("names")
//	err = names.Put([]byte("ada"), []byte("1815"))
//	year, err := names.Get([]byte("ada"))
//
// # Bytes
//
// Keys and values are any bytes. A slice that is passed is read until the call returns, and not
// kept; a slice that is returned is the caller's. A value of nil is none, an empty value is not nil.
//
// # Errors
//
// Errors of the engine are of type [*Error], and match their [Code] with [errors.Is]:
//
//	if errors.Is(err, esker.ErrConflict) { ... }
//
// # Goroutines and the end of objects
//
// Every object may be used by any goroutine. Of one [Batch], [Cursor], [Iterator], [Transaction]
// or [Changes] one call at a time is possible; another one fails with [ErrBusy].
//
// Objects have a Close. Calls of one that was closed, or whose database was, fail with [ErrClosed].
// What is not closed ends with the garbage collection, at a time that nothing says: a database that
// was not closed keeps its directory locked until then.
package esker
