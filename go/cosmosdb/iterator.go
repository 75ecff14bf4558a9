package cosmosdb

import "esker"

// Iterator is at a pair of a range, or at its end, where it stays. Close it; one goroutine at a time
// may use it.
type Iterator struct {
	pairs      *esker.Iterator
	start, end []byte
	valid      bool
	// closed is what Error returns behind Close.
	closed error
}

// Domain is the range: its first key, and the one behind its last.
func (i *Iterator) Domain() (start, end []byte) { return i.start, i.end }

// Valid says whether the iterator is at a pair. It is at none behind an error: [Iterator.Error].
func (i *Iterator) Valid() bool { return i.valid }

func (i *Iterator) mustBeValid() {
	if !i.valid {
		panic("esker: the iterator is at no pair; ask Valid first")
	}
}

// Next moves to the next pair. It panics at the end, as the interface demands.
func (i *Iterator) Next() {
	i.mustBeValid()
	i.valid = i.pairs.Next()
}

// Key is the key, which belongs to the caller. It panics at the end.
func (i *Iterator) Key() []byte {
	i.mustBeValid()
	return i.pairs.Key()
}

// Value is the value, which belongs to the caller. It panics at the end.
func (i *Iterator) Value() []byte {
	i.mustBeValid()
	return i.pairs.Value()
}

// Error is what has ended the iterator before its end, or nil.
func (i *Iterator) Error() error {
	if i.pairs == nil {
		return i.closed
	}
	return i.pairs.Err()
}

// Close releases the iterator, which is at no pair from here on. A second Close does nothing.
func (i *Iterator) Close() error {
	if i.pairs == nil {
		return nil
	}
	i.closed = i.pairs.Err()
	err := i.pairs.Close()
	i.pairs, i.valid = nil, false
	return err
}
