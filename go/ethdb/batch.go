package ethdb

import (
	"bytes"
	"errors"

	"esker"

	"github.com/ethereum/go-ethereum/ethdb"
)

type kind uint8

const (
	putKey kind = iota
	deleteKey
	deleteRange
)

// operation is a put, a delete, or a delete of the range from key to value.
type operation struct {
	kind       kind
	key, value []byte
}

// batch keeps its operations in Go: it can be replayed, and outlives the database.
type batch struct {
	d          *Database
	operations []operation
	size       int
}

// NewBatch makes an empty batch.
func (d *Database) NewBatch() ethdb.Batch { return &batch{d: d} }

// NewBatchWithSize makes an empty batch, with room for about so many bytes.
func (d *Database) NewBatchWithSize(size int) ethdb.Batch {
	// Keys and values of tries have about a hundred bytes.
	return &batch{d: d, operations: make([]operation, 0, max(0, min(size, 1<<20)/100))}
}

func (b *batch) add(kind kind, key, value []byte) error {
	b.operations = append(b.operations, operation{kind, bytes.Clone(key), bytes.Clone(value)})
	b.size += len(key) + len(value)
	return nil
}

func (b *batch) Put(key, value []byte) error { return b.add(putKey, key, value) }

func (b *batch) Delete(key []byte) error { return b.add(deleteKey, key, nil) }

func (b *batch) DeleteRange(start, end []byte) error { return b.add(deleteRange, start, end) }

func (b *batch) ValueSize() int { return b.size }

func (b *batch) Reset() {
	clear(b.operations)
	b.operations, b.size = b.operations[:0], 0
}

func (b *batch) Close() { b.Reset() }

// Write writes all operations in one atomic step. The batch keeps them.
func (b *batch) Write() error {
	written, err := b.d.db.Batch()
	if err != nil {
		return err
	}
	defer written.Close()
	for _, o := range b.operations {
		switch {
		case o.kind == putKey:
			err = written.Put(b.d.keys, o.key, o.value)
		case o.kind == deleteKey:
			err = written.Delete(b.d.keys, o.key)
		case !isEmpty(o.key, o.value):
			err = written.DeleteRange(b.d.keys, esker.Range{Start: o.key, End: o.value})
		}
		if err != nil {
			return err
		}
	}
	return written.Commit()
}

// Replay makes the operations on another writer.
func (b *batch) Replay(w ethdb.KeyValueWriter) error {
	for _, o := range b.operations {
		var err error
		switch o.kind {
		case putKey:
			err = w.Put(o.key, o.value)
		case deleteKey:
			err = w.Delete(o.key)
		case deleteRange:
			ranges, ok := w.(ethdb.KeyValueRangeDeleter)
			if !ok {
				return errors.New("esker: the batch deletes a range, which the writer cannot")
			}
			err = ranges.DeleteRange(o.key, o.value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
