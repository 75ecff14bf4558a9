package esker

// #include "shim.h"
import "C"

import (
	"runtime/cgo"
	"time"
)

// Option changes how a database is opened. What each does, and its price, is in the documentation
// of the engine's Options, under the same name.
type Option func(*C.esker_options) error

func option(set func(*C.esker_options) C.esker_code) Option {
	return func(options *C.esker_options) error {
		return call(func() C.esker_code { return set(options) })
	}
}

// size is a number of bytes for C: what is below zero is no number.
func size(bytes int, set func(*C.esker_options, C.size_t) C.esker_code) Option {
	return func(options *C.esker_options) error {
		if bytes < 0 {
			return invalid("a number below zero")
		}
		return call(func() C.esker_code { return set(options, C.size_t(bytes)) })
	}
}

// CreateIfMissing says whether a missing database is created. Default: true.
func CreateIfMissing(yes bool) Option {
	return option(func(o *C.esker_options) C.esker_code {
		return C.esker_options_set_create_if_missing(o, C.bool(yes))
	})
}

// ErrorIfExists says whether a database that is there is refused, with ErrAlreadyExists.
func ErrorIfExists(yes bool) Option {
	return option(func(o *C.esker_options) C.esker_code {
		return C.esker_options_set_error_if_exists(o, C.bool(yes))
	})
}

// Profile sets several options for a kind of use: "counters", "balanced", "read-heavy" or
// "large-values".
func Profile(name string) Option {
	return func(options *C.esker_options) error {
		return withText("a profile", name, func(name *C.char) error {
			return call(func() C.esker_code { return C.esker_options_set_profile(options, name) })
		})
	}
}

// MemoryBudget is the most bytes of memtables, caches, indexes and filters together.
func MemoryBudget(bytes int) Option {
	return size(bytes, func(o *C.esker_options, n C.size_t) C.esker_code {
		return C.esker_options_set_memory_budget_bytes(o, n)
	})
}

// WriteBuffer is the bytes of a memtable before it is flushed.
func WriteBuffer(bytes int) Option {
	return size(bytes, func(o *C.esker_options, n C.size_t) C.esker_code {
		return C.esker_options_set_write_buffer_bytes(o, n)
	})
}

// BlockCache is the bytes of the cache of decompressed blocks.
func BlockCache(bytes int) Option {
	return size(bytes, func(o *C.esker_options, n C.size_t) C.esker_code {
		return C.esker_options_set_block_cache_bytes(o, n)
	})
}

// BlockSize is the bytes of a block of a table.
func BlockSize(bytes int) Option {
	return size(bytes, func(o *C.esker_options, n C.size_t) C.esker_code {
		return C.esker_options_set_block_bytes(o, n)
	})
}

// Compression is how blocks are compressed.
type Compression int32

// The compressions.
const (
	NoCompression   Compression = C.ESKER_COMPRESSION_NONE
	LZ4Compression  Compression = C.ESKER_COMPRESSION_LZ4
	ZstdCompression Compression = C.ESKER_COMPRESSION_ZSTD
)

// IsAvailable says whether the library was built with the compression.
func (c Compression) IsAvailable() (bool, error) {
	var available C.bool
	err := call(func() C.esker_code { return C.esker_compression_is_available(C.int32_t(c), &available) })
	return bool(available), err
}

// CompressLastRun is the compression of the last run.
func CompressLastRun(compression Compression) Option {
	return option(func(o *C.esker_options) C.esker_code {
		return C.esker_options_set_compression(o, C.int32_t(compression))
	})
}

// CompressUpperRuns is the compression of the runs above the last.
func CompressUpperRuns(compression Compression) Option {
	return option(func(o *C.esker_options) C.esker_code {
		return C.esker_options_set_upper_compression(o, C.int32_t(compression))
	})
}

// FilterBitsPerKey is the bits of the filter of a table for each key; 0 for none.
func FilterBitsPerKey(bits uint32) Option {
	return option(func(o *C.esker_options) C.esker_code {
		return C.esker_options_set_filter_bits_per_key(o, C.uint32_t(bits))
	})
}

// TargetFileSize is the bytes of a table, about.
func TargetFileSize(bytes uint64) Option {
	return option(func(o *C.esker_options) C.esker_code {
		return C.esker_options_set_target_file_bytes(o, C.uint64_t(bytes))
	})
}

// MinBlobSize is the length from which values are stored in blob files.
func MinBlobSize(bytes int) Option {
	return size(bytes, func(o *C.esker_options, n C.size_t) C.esker_code {
		return C.esker_options_set_min_blob_size(o, n)
	})
}

// WALSegmentSize is the bytes of a segment of the log.
func WALSegmentSize(bytes uint64) Option {
	return option(func(o *C.esker_options) C.esker_code {
		return C.esker_options_set_wal_segment_bytes(o, C.uint64_t(bytes))
	})
}

// MappedWAL says whether the log is written through a mapping, the default, or with write.
func MappedWAL(yes bool) Option {
	mode := C.int32_t(C.ESKER_WAL_PLAIN)
	if yes {
		mode = C.ESKER_WAL_MAPPED
	}
	return option(func(o *C.esker_options) C.esker_code { return C.esker_options_set_wal_mode(o, mode) })
}

// ReadMode is how tables are read.
type ReadMode int32

// The ways to read tables.
const (
	// ReadAuto reads through a mapping where the tables fit in memory.
	ReadAuto ReadMode = C.ESKER_READ_AUTO
	// ReadMapped reads through a mapping.
	ReadMapped ReadMode = C.ESKER_READ_MMAP
	// ReadPread reads with pread.
	ReadPread ReadMode = C.ESKER_READ_PREAD
	// ReadMappedChecked reads through a mapping, and checks every read.
	ReadMappedChecked ReadMode = C.ESKER_READ_MMAP_CHECKED
)

// ReadTables says how tables are read.
func ReadTables(mode ReadMode) Option {
	return option(func(o *C.esker_options) C.esker_code {
		return C.esker_options_set_read_mode(o, C.int32_t(mode))
	})
}

// BackgroundThreads is the number of threads that flush and compact; 0 makes writes do it.
func BackgroundThreads(threads int) Option {
	return size(threads, func(o *C.esker_options, n C.size_t) C.esker_code {
		return C.esker_options_set_background_threads(o, n)
	})
}

// CompactionBytesPerSecond is the most bytes that compactions write in a second; 0 for no limit.
func CompactionBytesPerSecond(bytes uint64) Option {
	return option(func(o *C.esker_options) C.esker_code {
		return C.esker_options_set_compaction_bytes_per_second(o, C.uint64_t(bytes))
	})
}

// LatencyHistograms says whether the time that calls take is measured.
func LatencyHistograms(yes bool) Option {
	return option(func(o *C.esker_options) C.esker_code {
		return C.esker_options_set_latency_histograms(o, C.bool(yes))
	})
}

// KeepChangesBytes keeps the changes in the last so many bytes of the log, for [DB.Changes].
func KeepChangesBytes(bytes uint64) Option {
	return option(func(o *C.esker_options) C.esker_code {
		return C.esker_options_set_keep_changes_bytes(o, C.uint64_t(bytes))
	})
}

// KeepChangesFor keeps the changes of the last so much time.
func KeepChangesFor(duration time.Duration) Option {
	return func(options *C.esker_options) error {
		ms, err := milliseconds(duration)
		if err != nil {
			return err
		}
		return call(func() C.esker_code { return C.esker_options_set_keep_changes_time(options, ms) })
	}
}

// KeepChangesAsBefore keeps the changes that are kept, all of them, as long as the database is open, and
// none where none are: for a program that opens the database of another one for a moment. Opened
// without any of the three, it would end the changes of the other.
func KeepChangesAsBefore() Option {
	return option(func(o *C.esker_options) C.esker_code {
		return C.esker_options_set_keep_changes_as_before(o)
	})
}

// WithComparator supplies an order for the keyspaces that were created with one of its name. It is
// given once for each.
func WithComparator(comparator Comparator) Option {
	return func(options *C.esker_options) error {
		if comparator == nil {
			return invalid("no comparator")
		}
		return withText("the name of a comparator", comparator.Name(), func(name *C.char) error {
			state := C.uintptr_t(cgo.NewHandle(comparator))
			return call(func() C.esker_code { return C.go_add_comparator(options, name, state) })
		})
	}
}

// WithFilterPolicy asks a policy, beside the engine's own filter, whether a get has to search a
// table.
func WithFilterPolicy(policy FilterPolicy) Option {
	return func(options *C.esker_options) error {
		if policy == nil {
			return invalid("no filter policy")
		}
		return withText("the name of a filter policy", policy.Name(), func(name *C.char) error {
			state := C.uintptr_t(cgo.NewHandle(policy))
			return call(func() C.esker_code { return C.go_set_filter_policy(options, name, state) })
		})
	}
}

// WithClock takes the time from a function, which is called from any thread. For tests.
func WithClock(now func() time.Time) Option {
	return func(options *C.esker_options) error {
		if now == nil {
			return invalid("no clock")
		}
		state := C.uintptr_t(cgo.NewHandle(now))
		return call(func() C.esker_code { return C.go_set_clock(options, state) })
	}
}

// WithEventListener tells a function about flushes, compactions, stalls and failures: the name of
// what has happened, as "flush completed", and a text about it. It is called in a thread of its own.
func WithEventListener(listener func(name, text string)) Option {
	return func(options *C.esker_options) error {
		if listener == nil {
			return invalid("no listener")
		}
		state := C.uintptr_t(cgo.NewHandle(listener))
		return call(func() C.esker_code { return C.go_set_event_listener(options, state) })
	}
}

// ValidateOptions refuses what cannot work: the message names the option, its value and its limits.
// Every open begins with this.
func ValidateOptions(options ...Option) error {
	return withOptions(options, func(options *C.esker_options) error {
		return call(func() C.esker_code { return C.esker_options_validate(options) })
	})
}

// ExplainOptions is every value that a database opened with these options would have, its origin and
// its trade-off, as a text.
func ExplainOptions(options ...Option) (text string, err error) {
	err = withOptions(options, func(options *C.esker_options) error {
		var explained *C.char
		err := call(func() C.esker_code { return C.esker_options_explain(options, &explained) })
		text = takeText(explained)
		return err
	})
	return text, err
}

// withOptions calls a function with options for C, which it copies.
func withOptions(options []Option, f func(*C.esker_options) error) error {
	var c *C.esker_options
	if err := call(func() C.esker_code { return C.esker_options_create(&c) }); err != nil {
		return err
	}
	defer C.esker_options_destroy(c)
	for _, set := range options {
		if set == nil {
			return invalid("an option that is nil")
		}
		if err := set(c); err != nil {
			return err
		}
	}
	return f(c)
}
