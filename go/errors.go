package esker

// #cgo pkg-config: esker
// #include "shim.h"
import "C"

import (
	"io/fs"
	"runtime"
)

// Code is what was wrong in a call. The constants Err... are all there are in this version; an
// [*Error] matches its code with [errors.Is].
type Code int32

// The codes of the engine.
const (
	// ErrIO: the operating system refused an operation on a file.
	ErrIO Code = C.ESKER_IO
	// ErrCorruption: stored bytes do not have the form they were written in.
	ErrCorruption Code = C.ESKER_CORRUPTION
	// ErrInCallback: a callback made a call of its own database that it may not make.
	ErrInCallback Code = C.ESKER_IN_CALLBACK
	// ErrInvalidArgument: an argument is one that the call cannot take. Nothing was written.
	ErrInvalidArgument Code = C.ESKER_INVALID_ARGUMENT
	// ErrLocked: another handle, in this process or another, has the database open for writing.
	ErrLocked Code = C.ESKER_LOCKED
	// ErrKeyspaceDropped: the keyspace was dropped.
	ErrKeyspaceDropped Code = C.ESKER_KEYSPACE_DROPPED
	// ErrMissingMergeOperator: the keyspace was created with a merge operator that was not supplied
	// at this open.
	ErrMissingMergeOperator Code = C.ESKER_MISSING_MERGE_OPERATOR
	// ErrMergeFailed: a merge operator could not combine a value with its operands.
	ErrMergeFailed Code = C.ESKER_MERGE_FAILED
	// ErrConflict: another writer wrote what the transaction has read or writes. Run it again.
	ErrConflict Code = C.ESKER_CONFLICT
	// ErrStalled: a read beside a writer met one that changes the files too fast.
	ErrStalled Code = C.ESKER_STALLED
	// ErrWriteStalled: a write that is not to wait met stalled writes. Nothing was written.
	ErrWriteStalled Code = C.ESKER_WRITE_STALLED
	// ErrReadOnly: the database accepts no writes: it was opened so, or its log or manifest failed.
	ErrReadOnly Code = C.ESKER_READ_ONLY
	// ErrUnsupported: the files have a newer format than the library.
	ErrUnsupported Code = C.ESKER_UNSUPPORTED
	// ErrUnsupportedCompression: the files are compressed in a way that the library was built
	// without.
	ErrUnsupportedCompression Code = C.ESKER_UNSUPPORTED_COMPRESSION
	// ErrNotFound: there is no database or keyspace of that name. Also an [fs.ErrNotExist].
	ErrNotFound Code = C.ESKER_NOT_FOUND
	// ErrMissingComparator: the keyspace was created with a comparator that was not supplied at this
	// open.
	ErrMissingComparator Code = C.ESKER_MISSING_COMPARATOR
	// ErrAlreadyExists: a database that is not to be there is. Also an [fs.ErrExist].
	ErrAlreadyExists Code = C.ESKER_ALREADY_EXISTS
	// ErrGone: the changes that were to be read are not kept any more; [Error.OldestWrite] is the
	// first that are.
	ErrGone Code = C.ESKER_GONE
	// ErrOther: an error of the engine that this version has no code for.
	ErrOther Code = C.ESKER_OTHER
	// ErrClosed: the object was closed, or its database. Also an [fs.ErrClosed].
	ErrClosed Code = C.ESKER_CLOSED_HANDLE
	// ErrWrongHandle: the object is nil, or was not made by this package.
	ErrWrongHandle Code = C.ESKER_WRONG_HANDLE
	// ErrBusy: another call uses the batch, cursor, iterator, transaction or reader of changes.
	ErrBusy Code = C.ESKER_BUSY_HANDLE
	// ErrForked: the process is a fork of one that used a database before.
	ErrForked Code = C.ESKER_FORKED
	// ErrPanic: the library panicked: a defect of it. The call may have been done in part.
	ErrPanic Code = C.ESKER_PANIC
	// ErrOutOfMemory: there is no memory, or there are too many handles.
	ErrOutOfMemory Code = C.ESKER_OUT_OF_MEMORY
	// ErrBufferTooShort: a buffer is too short for the value.
	ErrBufferTooShort Code = C.ESKER_BUFFER_TOO_SHORT
)

// Error is the name of the code, as "ESKER_CORRUPTION".
func (c Code) Error() string {
	return C.GoString(C.esker_code_name(C.esker_code(c)))
}

// Is makes codes match the errors of package fs that say the same.
func (c Code) Is(target error) bool {
	switch target {
	case fs.ErrNotExist:
		return c == ErrNotFound
	case fs.ErrExist:
		return c == ErrAlreadyExists
	case fs.ErrClosed:
		return c == ErrClosed
	}
	return false
}

// Error is what a call of the engine came to.
type Error struct {
	// Code says what was wrong.
	Code Code
	// Message says where, and what to do about it.
	Message string
	// Retryable says whether the call may succeed later without any change by the caller.
	Retryable bool
	// DiskFull says whether the cause is a full disk or an exhausted quota.
	DiskFull bool
	// OldestWrite is, with ErrGone, the first write whose changes are kept.
	OldestWrite uint64
}

// Error is the message.
func (e *Error) Error() string { return "esker: " + e.Message }

// Unwrap is the code, for [errors.Is] and [errors.As].
func (e *Error) Unwrap() error { return e.Code }

func newError(code Code, message string) *Error {
	return &Error{Code: code, Message: message}
}

func invalid(message string) *Error {
	return newError(ErrInvalidArgument, "invalid argument: "+message)
}

func closed(what string) *Error {
	return newError(ErrClosed, what+" was closed")
}

// call makes a call of the library, and an error of its code. The message of a failure belongs to
// the thread, which the goroutine keeps until it has it.
func call(f func() C.esker_code) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	switch code := f(); code {
	case C.ESKER_OK:
		return nil
	case C.GO_NO_MEMORY:
		return newError(ErrOutOfMemory, "there is no memory for the result")
	default:
		return &Error{
			Code:        Code(code),
			Message:     C.GoString(C.esker_last_error_message()),
			Retryable:   bool(C.esker_last_error_is_retryable()),
			DiskFull:    bool(C.esker_last_error_is_disk_full()),
			OldestWrite: uint64(C.esker_last_error_oldest_write()),
		}
	}
}

// Version is that of the library, as "0.1.0".
func Version() string { return C.GoString(C.esker_version()) }

// EscapeKey is a key as messages have it: printable ASCII as it is, every other byte as \xNN, and long
// keys shortened.
func EscapeKey(key []byte) (string, error) {
	var text *C.char
	err := call(func() C.esker_code { return C.go_escape_key(data(key), length(key), &text) })
	return takeText(text), err
}
