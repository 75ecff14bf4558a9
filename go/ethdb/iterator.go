package ethdb

import (
	"bytes"

	"esker"

	"github.com/ethereum/go-ethereum/ethdb"
)

// iterator yields pairs as of the moment at which it was made.
type iterator struct {
	pairs *esker.Iterator
	err   error
}

// NewIterator yields the keys that begin with a prefix, from the one with a start behind the prefix
// on. An error of its beginning is that of the iterator.
func (d *Database) NewIterator(prefix, start []byte) ethdb.Iterator {
	r := esker.Prefix(prefix)
	r.Start = append(bytes.Clone(prefix), start...)
	pairs, err := d.keys.Scan(esker.ScanOptions{Range: r}).Iterator()
	return &iterator{pairs, err}
}

func (i *iterator) Next() bool { return i.pairs.Next() }

func (i *iterator) Error() error {
	if i.err == nil && i.pairs != nil {
		return i.pairs.Err()
	}
	return i.err
}

func (i *iterator) Key() []byte { return i.pairs.Key() }

func (i *iterator) Value() []byte { return i.pairs.Value() }

func (i *iterator) Release() {
	if i.pairs == nil {
		return
	}
	// An error remains, also of what is released.
	i.err = i.pairs.Err()
	_ = i.pairs.Close()
	i.pairs = nil
}
