package esker

// #include "shim.h"
import "C"

import "errors"

// Flush writes everything acknowledged before the call to tables, durably.
func (db *DB) Flush() error {
	return db.run(func() C.esker_code { return C.esker_db_flush(db.handle.c) })
}

// Compact flushes everything, and compacts each keyspace into one run.
func (db *DB) Compact() error {
	return db.run(func() C.esker_code { return C.esker_db_compact(db.handle.c) })
}

// WaitIdle returns when an idle database would have nothing left to do.
func (db *DB) WaitIdle() error {
	return db.run(func() C.esker_code { return C.esker_db_wait_idle(db.handle.c) })
}

// Sync brings everything logged so far to the device.
func (db *DB) Sync() error {
	return db.run(func() C.esker_code { return C.esker_db_sync(db.handle.c) })
}

// Checkpoint makes a copy in a new or empty directory that opens as a database, by hard links where
// those work.
func (db *DB) Checkpoint(directory string) error { return db.checkpoint(directory, false) }

// CheckpointCopy is as Checkpoint, with copies of all files.
func (db *DB) CheckpointCopy(directory string) error { return db.checkpoint(directory, true) }

func (db *DB) checkpoint(directory string, copies bool) error {
	return withText("the path", directory, func(directory *C.char) error {
		return db.run(func() C.esker_code {
			return C.esker_db_checkpoint(db.handle.c, directory, C.bool(copies))
		})
	})
}

// Verify reads everything and checks it. The error is the first damage; a [DamageError] has all of it.
func (db *DB) Verify() error {
	texts, err := db.pairs(func(pairs *C.go_pairs) C.esker_code {
		return C.go_db_verify(db.handle.c, pairs)
	})
	return withDamage(texts, err)
}

// VerifyDirectory is as [DB.Verify], of the database in a directory, without a lock and without a
// write: a writer may be at work beside it. Of one that does not open, every part is gone over on its
// own. Comparators are needed as for [Open].
func VerifyDirectory(path string, options ...Option) error {
	return withOptions(options, func(options *C.esker_options) error {
		return withText("the path", path, func(path *C.char) error {
			var pairs C.go_pairs
			err := call(func() C.esker_code { return C.go_db_verify_directory(path, options, &pairs) })
			return withDamage(takePairs(&pairs), err)
		})
	})
}

// withDamage is an error, with the texts of all damage where there are some.
func withDamage(texts []pair, err error) error {
	if err == nil || len(texts) == 0 {
		return err
	}
	damage := &DamageError{first: err}
	for _, text := range texts {
		damage.Damage = append(damage.Damage, string(text.value))
	}
	return damage
}

// DamageError is what [DB.Verify] or [VerifyDirectory] has found.
type DamageError struct {
	// Damage is all that is damaged, as texts that say where.
	Damage []string
	first  error
}

// Error is the first damage.
func (e *DamageError) Error() string { return e.first.Error() }

// Unwrap is the error of the engine.
func (e *DamageError) Unwrap() error { return e.first }

// Stats is statistics as a text for people.
func (db *DB) Stats() (string, error) {
	return db.text(func(text **C.char) C.esker_code { return C.esker_db_stats(db.handle.c, text) })
}

// Explain is every option with its value and its origin, as a text.
func (db *DB) Explain() (string, error) {
	return db.text(func(text **C.char) C.esker_code { return C.esker_db_explain(db.handle.c, text) })
}

// Metrics is all metrics in the text format of Prometheus.
func (db *DB) Metrics() (string, error) {
	return db.text(func(text **C.char) C.esker_code { return C.esker_db_metrics(db.handle.c, text) })
}

// Property is a property by name, as "esker.health.writable", and whether there is one of that name.
func (db *DB) Property(name string) (value string, found bool, err error) {
	err = withText("the name of a property", name, func(name *C.char) error {
		var text *C.char
		err := db.run(func() C.esker_code { return C.esker_db_property(db.handle.c, name, &text) })
		found = text != nil
		value = takeText(text)
		return err
	})
	return value, found, err
}

// Properties are all properties by their names.
func (db *DB) Properties() (map[string]string, error) {
	texts, err := db.pairs(func(pairs *C.go_pairs) C.esker_code {
		return C.go_db_properties(db.handle.c, pairs)
	})
	properties := make(map[string]string, len(texts))
	for _, text := range texts {
		properties[string(text.key)] = string(text.value)
	}
	return properties, err
}

// Writable says whether writes are accepted.
func (db *DB) Writable() (bool, error) {
	value, found, err := db.Property("esker.health.writable")
	if err == nil && !found {
		err = errors.New("esker: the library has no property esker.health.writable")
	}
	return value == "true", err
}

// Repair makes a damaged database that is not open one that opens, with what can be read. The report
// is a text that names what is lost.
func Repair(path string, options ...Option) (report string, err error) {
	err = withOptions(options, func(options *C.esker_options) error {
		return withText("the path", path, func(path *C.char) error {
			var text *C.char
			err := call(func() C.esker_code { return C.esker_db_repair(path, options, &text) })
			report = takeText(text)
			return err
		})
	})
	return report, err
}

// Destroy removes the database in a directory that is not open, with all that is in it; the directory
// stays.
func Destroy(path string, options ...Option) error {
	return withOptions(options, func(options *C.esker_options) error {
		return withText("the path", path, func(path *C.char) error {
			return call(func() C.esker_code { return C.esker_db_destroy(path, options) })
		})
	})
}

// ReleaseUnusedMemory gives the memory that closed databases have left for the next one back to the
// system. While a database is open, that happens by itself once no open database has been written to
// for a second.
func ReleaseUnusedMemory() error {
	return call(func() C.esker_code { return C.esker_release_unused_memory() })
}

// UnusedMemoryBytes is the memory that is kept for the next memtable, or for the next database.
func UnusedMemoryBytes() (uint64, error) {
	var bytes C.size_t
	err := call(func() C.esker_code { return C.esker_unused_memory_bytes(&bytes) })
	return uint64(bytes), err
}
