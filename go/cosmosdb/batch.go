package cosmosdb

import "esker"

// Batch is writes that are made in one atomic step. Close it; one goroutine at a time may use it.
type Batch struct {
	keys  *esker.Keyspace
	batch *esker.Batch
	// err is why there is none.
	err  error
	size int
}

// usable is an error if nothing can be added or written.
func (b *Batch) usable() error {
	if b.err == nil && b.batch == nil {
		return ErrBatchClosed
	}
	return b.err
}

// Set adds a put.
func (b *Batch) Set(key, value []byte) error {
	if err := checked(key, value); err != nil {
		return err
	}
	if err := b.usable(); err != nil {
		return err
	}
	b.size += len(key) + len(value)
	return b.batch.Put(b.keys, key, value)
}

// Delete adds a delete.
func (b *Batch) Delete(key []byte) error {
	if len(key) == 0 {
		return ErrKeyEmpty
	}
	if err := b.usable(); err != nil {
		return err
	}
	b.size += len(key)
	return b.batch.Delete(b.keys, key)
}

func (b *Batch) write(options ...esker.WriteOption) error {
	if err := b.usable(); err != nil {
		return err
	}
	if err := b.batch.Commit(options...); err != nil {
		return err
	}
	return b.Close()
}

// Write writes all, and closes the batch.
func (b *Batch) Write() error { return b.write() }

// WriteSync writes all, closes the batch, and returns when all is on the device.
func (b *Batch) WriteSync() error { return b.write(esker.Sync()) }

// GetByteSize is the number of bytes of all keys and values.
func (b *Batch) GetByteSize() (int, error) {
	if err := b.usable(); err != nil {
		return 0, err
	}
	return b.size, nil
}

// Close forgets what was not written. A second Close does nothing.
func (b *Batch) Close() error {
	batch := b.batch
	b.batch = nil
	if batch == nil {
		return nil
	}
	return batch.Close()
}
