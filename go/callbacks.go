package esker

// #include "shim.h"
import "C"

import (
	"bytes"
	"fmt"
	"os"
	"runtime/cgo"
	"runtime/debug"
	"time"
	"unsafe"
)

// MergeOperator combines values with operands. It is called from any thread, with locks of the
// database held: it is short, waits for nothing, and calls of its own database only what
// doc/semantics.md allows. It says the same for the same arguments, for ever. The slices that it is
// given are its own.
//
// A panic in it is an error of it.
type MergeOperator interface {
	// Name is stored with the keyspace.
	Name() string
	// FullMerge combines a value with operands, oldest first, and returns the new one; nil says that
	// the key has none. The existing value is nil if there is none. After an error reads of the key
	// fail with ErrMergeFailed.
	FullMerge(key, existing []byte, operands [][]byte) ([]byte, error)
}

// PartialMerger is a [MergeOperator] that can make one operand of two.
type PartialMerger interface {
	// PartialMerge makes one operand of two, or says that it cannot.
	PartialMerge(key, older, newer []byte) (operand []byte, ok bool)
}

// OperandChecker is a [MergeOperator] that refuses operands at the write.
type OperandChecker interface {
	// CheckOperand returns an error for an operand that FullMerge could not take.
	CheckOperand(operand []byte) error
}

// Comparator is an order of keys. It is called from any thread, with locks held. A panic in it is
// reported on the standard error, and the two keys are ordered by their bytes.
type Comparator interface {
	// Name is stored when a keyspace is created with it.
	Name() string
	// Compare is below zero if a comes first, above zero if b does, and zero only if they are the
	// same bytes. It says the same for ever.
	Compare(a, b []byte) int
}

// Decision is what becomes of a value that is compacted.
type Decision int32

// The decisions of a [CompactionFilter].
const (
	// Keep keeps the value.
	Keep Decision = C.ESKER_FILTER_KEEP
	// Remove removes the key.
	Remove Decision = C.ESKER_FILTER_REMOVE
	// Replace takes another value.
	Replace Decision = C.ESKER_FILTER_REPLACE
)

// CompactionFilter decides about values while they are compacted. A panic in it is reported on the
// standard error, and keeps the value.
type CompactionFilter interface {
	// Name is for messages.
	Name() string
	// Filter decides about a value; with Replace it returns another.
	Filter(key, value []byte) (Decision, []byte)
}

// FilterPolicy makes filters of the keys of tables. A panic in it is reported on the standard error,
// and the table is searched.
type FilterPolicy interface {
	// Name is stored with each filter.
	Name() string
	// CreateFilter makes the filter of a table of its keys; nil for none.
	CreateFilter(keys [][]byte) []byte
	// KeyMayMatch says whether the table with a filter may hold a key. One that it denies is not
	// found.
	KeyMayMatch(key, filter []byte) bool
}

func argument(bytes C.esker_bytes) []byte { return lent(bytes.data, bytes.length) }

func arguments(bytes *C.esker_bytes, count C.size_t) [][]byte {
	copied := make([][]byte, int(count))
	for i, bytes := range unsafe.Slice(bytes, int(count)) {
		copied[i] = argument(bytes)
	}
	return copied
}

// contained calls a function of the program. What it panics with is an error: nothing may unwind the
// engine, which holds locks. For the same reason runtime.Goexit ends the process.
func contained(what string, f func() error) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		panicked := recover()
		if panicked == nil {
			fmt.Fprintf(os.Stderr, "esker: %s called runtime.Goexit, which cannot pass through the engine\n%s", what, debug.Stack())
			os.Exit(2)
		}
		err = fmt.Errorf("%s panicked: %v", what, panicked)
	}()
	err = f()
	returned = true
	return err
}

// reported is as contained, for what has no way to fail.
func reported(what string, f func()) {
	err := contained(what, func() error {
		f()
		return nil
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "esker: %v\n", err)
	}
}

// fail puts an error into an output. The error is one of the program, whose text is its code as well:
// a typed nil may panic there, which Sprint contains.
func fail(output *C.esker_output, err error) C.bool {
	// A text of C has no zero bytes.
	text := bytes.ReplaceAll([]byte(fmt.Sprint(err)), []byte{0}, []byte(`\0`))
	_ = withText("the reason", string(text), func(reason *C.char) error {
		C.esker_output_fail(output, reason)
		return nil
	})
	return false
}

// give puts bytes into an output.
func give(output *C.esker_output, bytes []byte) {
	C.go_output_set(output, data(bytes), length(bytes))
}

//export eskerGoDestroy
func eskerGoDestroy(state C.uintptr_t) { cgo.Handle(state).Delete() }

//export eskerGoFullMerge
func eskerGoFullMerge(state C.uintptr_t, key C.esker_bytes, existing, operands *C.esker_bytes, count C.size_t, output *C.esker_output) C.bool {
	var merged []byte
	err := contained("the merge operator", func() (err error) {
		var value []byte
		if existing != nil {
			value = argument(*existing)
		}
		operator := cgo.Handle(state).Value().(MergeOperator)
		merged, err = operator.FullMerge(argument(key), value, arguments(operands, count))
		return err
	})
	switch {
	case err != nil:
		return fail(output, err)
	case merged == nil:
		C.esker_output_delete(output)
	default:
		give(output, merged)
	}
	return true
}

//export eskerGoPartialMerge
func eskerGoPartialMerge(state C.uintptr_t, key, older, newer C.esker_bytes, output *C.esker_output) C.bool {
	var merged []byte
	done := false
	err := contained("the merge operator", func() error {
		operator := cgo.Handle(state).Value().(PartialMerger)
		merged, done = operator.PartialMerge(argument(key), argument(older), argument(newer))
		return nil
	})
	if err != nil {
		return fail(output, err)
	}
	if done {
		give(output, merged)
	}
	return C.bool(done)
}

//export eskerGoCheckOperand
func eskerGoCheckOperand(state C.uintptr_t, operand C.esker_bytes, output *C.esker_output) C.bool {
	err := contained("the merge operator", func() error {
		return cgo.Handle(state).Value().(OperandChecker).CheckOperand(argument(operand))
	})
	if err != nil {
		return fail(output, err)
	}
	return true
}

//export eskerGoCompare
func eskerGoCompare(state C.uintptr_t, a, b C.esker_bytes) C.int32_t {
	left, right := argument(a), argument(b)
	order := bytes.Compare(left, right)
	reported("the comparator", func() {
		order = cgo.Handle(state).Value().(Comparator).Compare(left, right)
	})
	return C.int32_t(max(-1, min(order, 1)))
}

//export eskerGoFilter
func eskerGoFilter(state C.uintptr_t, key, value C.esker_bytes, output *C.esker_output) C.int32_t {
	decision := Keep
	reported("the compaction filter", func() {
		filter := cgo.Handle(state).Value().(CompactionFilter)
		decided, replacement := filter.Filter(argument(key), argument(value))
		if decided == Replace {
			give(output, replacement)
		}
		decision = decided
	})
	return C.int32_t(decision)
}

//export eskerGoCreateFilter
func eskerGoCreateFilter(state C.uintptr_t, keys *C.esker_bytes, count C.size_t, output *C.esker_output) C.bool {
	var filter []byte
	reported("the filter policy", func() {
		filter = cgo.Handle(state).Value().(FilterPolicy).CreateFilter(arguments(keys, count))
	})
	if filter != nil {
		give(output, filter)
	}
	return C.bool(filter != nil)
}

//export eskerGoKeyMayMatch
func eskerGoKeyMayMatch(state C.uintptr_t, key, filter C.esker_bytes) C.bool {
	may := true
	reported("the filter policy", func() {
		may = cgo.Handle(state).Value().(FilterPolicy).KeyMayMatch(argument(key), argument(filter))
	})
	return C.bool(may)
}

//export eskerGoNow
func eskerGoNow(state C.uintptr_t) C.uint64_t {
	now := time.Now()
	reported("the clock", func() { now = cgo.Handle(state).Value().(func() time.Time)() })
	return unixMilliseconds(now)
}

//export eskerGoEvent
func eskerGoEvent(state C.uintptr_t, name, text *C.char) {
	reported("the event listener", func() {
		cgo.Handle(state).Value().(func(string, string))(C.GoString(name), C.GoString(text))
	})
}
