package esker

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"encoding/binary"
	"math"
	"strings"
	"time"
	"unsafe"
)

// data is the first byte of a slice for C, nil for a nil slice only.
func data(bytes []byte) C.go_data {
	return (C.go_data)((*C.uchar)(unsafe.SliceData(bytes)))
}

func length[T any](slice []T) C.size_t { return C.size_t(len(slice)) }

// take is a copy of what a call has returned in memory of its own, which is freed: nil for none.
func take(bytes *C.char, length C.size_t) []byte {
	if bytes == nil {
		return nil
	}
	taken := lent(unsafe.Pointer(bytes), length)
	C.esker_free(unsafe.Pointer(bytes))
	return taken
}

// lent is a copy of bytes of the library, and never nil.
func lent(bytes unsafe.Pointer, length C.size_t) []byte {
	copied := make([]byte, int(length))
	if length > 0 {
		copy(copied, unsafe.Slice((*byte)(bytes), int(length)))
	}
	return copied
}

// takeText is a returned text, which is freed.
func takeText(text *C.char) string {
	if text == nil {
		return ""
	}
	taken := C.GoString(text)
	C.esker_free(unsafe.Pointer(text))
	return taken
}

// withText calls a function with a text for C, which has no zero bytes.
func withText(what, text string, f func(*C.char) error) error {
	if strings.IndexByte(text, 0) >= 0 {
		return invalid(what + " has a zero byte")
	}
	c := C.CString(text)
	defer C.free(unsafe.Pointer(c))
	return f(c)
}

// milliseconds rounds up, as the engine does.
func milliseconds(duration time.Duration) (C.uint64_t, error) {
	if duration <= 0 {
		return 0, invalid("a time to live of " + duration.String() + "; it must be above zero")
	}
	whole := duration / time.Millisecond
	if duration%time.Millisecond > 0 {
		whole++
	}
	return C.uint64_t(whole), nil
}

// unixMilliseconds is a time for C. What is before 1970 has expired as much as 1970 has.
func unixMilliseconds(at time.Time) C.uint64_t {
	return C.uint64_t(max(at.UnixMilli(), 0))
}

// until is when something expires, for C: the zero time is never.
func until(at time.Time) C.uint64_t {
	if at.IsZero() {
		return C.ESKER_NEVER
	}
	return unixMilliseconds(at)
}

// expiry is a time of C: the zero time is never.
func expiry(ms C.uint64_t) time.Time {
	if ms > math.MaxInt64 {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms))
}

// duration is a number of milliseconds, or the longest time there is.
func duration(ms C.uint64_t) time.Duration {
	return time.Duration(min(uint64(ms), uint64(math.MaxInt64)/uint64(time.Millisecond))) * time.Millisecond
}

// pair is a key with its value, both the caller's.
type pair struct{ key, value []byte }

// takePairs copies pairs, and frees them.
func takePairs(pairs *C.go_pairs) []pair {
	defer C.go_pairs_free(pairs)
	if pairs.count == 0 {
		return nil
	}
	// One copy for all; none of the slices can grow into another.
	all := lent(unsafe.Pointer(pairs.data), pairs.length)
	taken := make([]pair, int(pairs.count))
	next := func(length int) []byte {
		part := all[:length:length]
		all = all[length:]
		return part
	}
	for i := range taken {
		lengths := next(8)
		key, value := binary.NativeEndian.Uint32(lengths), binary.NativeEndian.Uint32(lengths[4:])
		taken[i] = pair{next(int(key)), next(int(value))}
	}
	return taken
}

// takePair is a pair in memory of its own, with nil for none.
func takePair(found *C.go_pair) (key, value []byte) {
	return take(found.key, found.key_length), take(found.value, found.value_length)
}
