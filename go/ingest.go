package esker

// #include "shim.h"
import "C"

import (
	"bytes"
	"errors"
	"iter"
	"runtime/cgo"
)

// ingestion is a load under way. Its pairs come from a goroutine: a coroutine cannot be resumed in a
// callback, whose thread may be any.
type ingestion struct {
	pairs    chan pair
	stop     chan struct{}
	finished bool
	panicked any
}

var errIngest = errors.New("esker: the sequence of pairs ended the goroutine that it ran in")

// produce runs the sequence.
func (i *ingestion) produce(pairs iter.Seq2[[]byte, []byte]) {
	defer close(i.pairs)
	defer func() {
		if i.finished {
			return
		}
		if i.panicked = recover(); i.panicked == nil {
			i.panicked = errIngest
		}
	}()
	pairs(func(key, value []byte) bool {
		// A sequence may use its memory again.
		select {
		case i.pairs <- pair{bytes.Clone(key), bytes.Clone(value)}:
			return true
		case <-i.stop:
			return false
		}
	})
	i.finished = true
}

//export eskerGoNextPair
func eskerGoNextPair(state C.uintptr_t, memory **C.char, keyLength, valueLength *C.size_t) C.int32_t {
	i := cgo.Handle(state).Value().(*ingestion)
	next, more := <-i.pairs
	if !more {
		if !i.finished {
			return -1
		}
		return 0
	}
	bytes := make([]byte, 0, len(next.key)+len(next.value)+1)
	bytes = append(append(bytes, next.key...), next.value...)
	*memory = (*C.char)(C.CBytes(bytes[:len(bytes)+1]))
	*keyLength, *valueLength = length(next.key), length(next.value)
	return 1
}

// Ingest loads pairs with ascending keys straight into tables; all of them become visible and durable
// at once, or none. It returns their number. The sequence runs in a goroutine of its own, which has
// ended when the call returns; where it panics, so does the call, and nothing was loaded.
func (k *Keyspace) Ingest(pairs iter.Seq2[[]byte, []byte]) (uint64, error) {
	if pairs == nil {
		return 0, invalid("no pairs")
	}
	if err := k.usable(); err != nil {
		return 0, err
	}
	i := &ingestion{pairs: make(chan pair), stop: make(chan struct{})}
	go i.produce(pairs)
	state := cgo.NewHandle(i)
	defer state.Delete()
	var entries C.uint64_t
	err := k.run(func() C.esker_code { return C.go_ingest(k.handle.c, C.uintptr_t(state), &entries) })
	close(i.stop)
	// The goroutine ends.
	for range i.pairs {
	}
	if i.panicked == errIngest {
		return 0, errIngest
	}
	if i.panicked != nil {
		panic(i.panicked)
	}
	return uint64(entries), err
}
