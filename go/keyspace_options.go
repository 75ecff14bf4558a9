package esker

// #include "shim.h"
import "C"

import (
	"runtime/cgo"
	"time"
)

// KeyspaceOption changes how a keyspace is created and opened.
type KeyspaceOption func(*C.esker_keyspace_options) error

func keyspaceOption(set func(*C.esker_keyspace_options) C.esker_code) KeyspaceOption {
	return func(options *C.esker_keyspace_options) error {
		return call(func() C.esker_code { return set(options) })
	}
}

// The merge operators of the engine, for [BuiltInMerge]. StringAppend is one for each delimiter.
const (
	MergeUint64Add = "uint64add"
	MergeInt64Add  = "int64add"
	MergeMax       = "max"
	MergeMin       = "min"
	MergePut       = "put"
	MergeBytesXor  = "bytesxor"
	MergeBitOr     = "bitor"
)

// MergeStringAppend is the name of the operator that appends operands with a delimiter.
func MergeStringAppend(delimiter []byte) string {
	const digits = "0123456789abcdef"
	name := []byte("stringappend:")
	for _, b := range delimiter {
		name = append(name, digits[b>>4], digits[b&15])
	}
	return string(name)
}

// BuiltInMerge takes a merge operator of the engine.
func BuiltInMerge(name string) KeyspaceOption {
	return func(options *C.esker_keyspace_options) error {
		return withText("the name of an operator", name, func(name *C.char) error {
			return call(func() C.esker_code {
				return C.esker_keyspace_options_set_built_in_operator(options, name)
			})
		})
	}
}

// WithMergeOperator takes a merge operator of the program, whose name is stored with the keyspace.
func WithMergeOperator(operator MergeOperator) KeyspaceOption {
	return func(options *C.esker_keyspace_options) error {
		if operator == nil {
			return invalid("no merge operator")
		}
		_, partial := operator.(PartialMerger)
		_, checks := operator.(OperandChecker)
		return withText("the name of an operator", operator.Name(), func(name *C.char) error {
			state := C.uintptr_t(cgo.NewHandle(operator))
			return call(func() C.esker_code {
				return C.go_set_merge_operator(options, name, state, C.bool(partial), C.bool(checks))
			})
		})
	}
}

// OrderedBy takes an order of the keys, under a name that is stored when the keyspace is created.
// Later opens of the database need it by [WithComparator].
func OrderedBy(comparator Comparator) KeyspaceOption {
	return func(options *C.esker_keyspace_options) error {
		if comparator == nil {
			return invalid("no comparator")
		}
		return withText("the name of a comparator", comparator.Name(), func(name *C.char) error {
			state := C.uintptr_t(cgo.NewHandle(comparator))
			return call(func() C.esker_code { return C.go_set_comparator(options, name, state) })
		})
	}
}

// ReverseOrder takes the reverse of the order of bytes: the greatest key comes first.
func ReverseOrder() KeyspaceOption {
	return keyspaceOption(func(o *C.esker_keyspace_options) C.esker_code {
		return C.esker_keyspace_options_set_reverse_order(o)
	})
}

// Expires gives the keyspace times to live; the default is that of writes that bring none, or 0 if
// those never expire.
func Expires(byDefault time.Duration) KeyspaceOption {
	return func(options *C.esker_keyspace_options) error {
		var ms C.uint64_t
		if byDefault != 0 {
			var err error
			if ms, err = milliseconds(byDefault); err != nil {
				return err
			}
		}
		return call(func() C.esker_code {
			return C.esker_keyspace_options_set_ttl(options, true, ms)
		})
	}
}

// CompactionStyle is how a keyspace is compacted.
type CompactionStyle int32

// The styles of compaction.
const (
	// LazyLeveling has a few overlapping runs above one sorted run.
	LazyLeveling CompactionStyle = C.ESKER_COMPACTION_LAZY_LEVELING
	// Leveled has levels, each of one sorted run.
	Leveled CompactionStyle = C.ESKER_COMPACTION_LEVELED
	// Tiered has runs of similar size.
	Tiered CompactionStyle = C.ESKER_COMPACTION_TIERED
	// FIFO drops the oldest tables: see [KeepAtMost].
	FIFO CompactionStyle = C.ESKER_COMPACTION_FIFO
)

// Compacted says how the keyspace is compacted.
func Compacted(style CompactionStyle) KeyspaceOption {
	return keyspaceOption(func(o *C.esker_keyspace_options) C.esker_code {
		return C.esker_keyspace_options_set_compaction_style(o, C.int32_t(style))
	})
}

// KeepAtMost keeps at most so many bytes of tables: the oldest ones are dropped with all that is in
// them.
func KeepAtMost(bytes uint64) KeyspaceOption {
	return keyspaceOption(func(o *C.esker_keyspace_options) C.esker_code {
		return C.esker_keyspace_options_set_fifo(o, C.uint64_t(bytes))
	})
}

// WithCompactionFilter asks a filter about each value that is compacted.
func WithCompactionFilter(filter CompactionFilter) KeyspaceOption {
	return func(options *C.esker_keyspace_options) error {
		if filter == nil {
			return invalid("no compaction filter")
		}
		return withText("the name of a filter", filter.Name(), func(name *C.char) error {
			state := C.uintptr_t(cgo.NewHandle(filter))
			return call(func() C.esker_code { return C.go_set_compaction_filter(options, name, state) })
		})
	}
}

// DropsValuesInCompaction says whether compaction drops values by these options for other reasons than
// that they were deleted, overwritten or have expired: a compaction filter, or [FIFO]. When it does
// depends on how a database was compacted, so that two databases with the same writes differ.
func DropsValuesInCompaction(options ...KeyspaceOption) (bool, error) {
	var drops C.bool
	err := withKeyspaceOptions(options, func(options *C.esker_keyspace_options) error {
		return call(func() C.esker_code { return C.esker_keyspace_options_drops_values_in_compaction(options, &drops) })
	})
	return bool(drops), err
}

// withKeyspaceOptions calls a function with options for C, which it copies.
func withKeyspaceOptions(options []KeyspaceOption, f func(*C.esker_keyspace_options) error) error {
	var c *C.esker_keyspace_options
	if err := call(func() C.esker_code { return C.esker_keyspace_options_create(&c) }); err != nil {
		return err
	}
	defer C.esker_keyspace_options_destroy(c)
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
