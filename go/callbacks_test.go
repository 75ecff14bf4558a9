package esker_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"esker"
)

// textless is an error that panics where its text is asked for, if it is nil.
type textless struct{ text string }

func (e *textless) Error() string { return e.text }

// longest keeps the longest operand; "delete" deletes, "fail" fails, "panic" panics, "no text" fails
// with an error that is nil.
type longest struct {
	partial atomic.Int64
	kept    atomic.Value
}

func (*longest) Name() string { return "longest" }

func (l *longest) FullMerge(key, existing []byte, operands [][]byte) ([]byte, error) {
	best := existing
	for _, operand := range operands {
		switch string(operand) {
		case "fail":
			return nil, errors.New("asked\x00 to")
		case "panic":
			panic("asked to")
		case "no text":
			var none *textless
			return nil, none
		case "delete":
			return nil, nil
		}
		if best == nil || len(operand) > len(best) {
			best = operand
		}
	}
	// What a callback was given is its own.
	l.kept.Store(best)
	return best, nil
}

func (l *longest) PartialMerge(_, older, newer []byte) ([]byte, bool) {
	l.partial.Add(1)
	for _, operand := range [][]byte{older, newer} {
		if len(operand) > 3 && !bytes.HasPrefix(operand, b("long")) {
			return nil, false
		}
	}
	if len(newer) > len(older) {
		return newer, true
	}
	return older, true
}

func (*longest) CheckOperand(operand []byte) error {
	if len(operand) == 0 {
		return errors.New("an empty operand")
	}
	if string(operand) == "panic in the check" {
		panic("asked to")
	}
	return nil
}

func TestMergeOperators(t *testing.T) {
	db := open(t)
	operator := &longest{}
	words := keyspace(t, db, "words", esker.WithMergeOperator(operator))
	name, err := words.MergeOperator()
	must(t, err)
	that(t, name == "longest", name)
	for _, operand := range []string{"a", "abc", "long word", "ab"} {
		must(t, words.Merge(b("w"), b(operand)))
	}
	value, err := words.Get(b("w"))
	must(t, err)
	equal(t, value, "long word")
	must(t, db.Flush())
	must(t, words.Merge(b("w"), b("long longer word")))
	must(t, db.Compact())
	runtime.GC()
	value, err = words.MergeAndGet(b("w"), b("x"))
	must(t, err)
	equal(t, value, "long longer word")
	equal(t, operator.kept.Load().([]byte), "long longer word")
	is(t, words.Merge(b("w"), nil), esker.ErrInvalidArgument)
	err = words.Merge(b("w"), b("panic in the check"))
	is(t, err, esker.ErrInvalidArgument)
	that(t, strings.Contains(err.Error(), "panicked: asked to"), err.Error())
	must(t, words.Merge(b("w"), b("delete")))
	value, err = words.Get(b("w"))
	must(t, err)
	none(t, value)

	// Errors and panics are errors of the reads of the key.
	must(t, words.Put(b("good"), b("v")))
	for operand, message := range map[string]string{
		"fail": `asked\0 to`, "panic": "the merge operator panicked: asked to", "no text": "<nil>",
	} {
		must(t, words.Merge(b(operand), b(operand)))
		_, err = words.Get(b(operand))
		is(t, err, esker.ErrMergeFailed)
		that(t, strings.Contains(err.Error(), message), err.Error())
		_, err = words.MultiGet(b("good"), b(operand))
		is(t, err, esker.ErrMergeFailed)
		scan := words.All()
		for range scan.All() {
		}
		is(t, scan.Err(), esker.ErrMergeFailed)
		must(t, words.Delete(b(operand)))
	}
	that(t, scanned(t, words.All()) == "good=v", "all else is there")
}

func TestAMergeOperatorForAKeyspaceThatExists(t *testing.T) {
	db := open(t)
	best, words := keyspace(t, db, "best"), keyspace(t, db, "words")
	must(t, best.Put(b("k"), b("5")))
	must(t, words.Put(b("k"), b("one")))
	for _, none := range []esker.KeyspaceOption{nil, esker.ReverseOrder(), esker.WithMergeOperator(nil), esker.BuiltInMerge("none")} {
		is(t, best.SetMergeOperator(none), esker.ErrInvalidArgument)
	}
	must(t, best.SetMergeOperator(esker.BuiltInMerge(esker.MergeMax)))
	must(t, best.SetMergeOperator(esker.BuiltInMerge(esker.MergeMax)))
	must(t, words.SetMergeOperator(esker.WithMergeOperator(&longest{})))
	must(t, best.Merge(b("k"), b("7")))
	must(t, words.Merge(b("k"), b("three")))
	value, err := best.Get(b("k"))
	must(t, err)
	equal(t, value, "7")
	value, err = words.Get(b("k"))
	must(t, err)
	equal(t, value, "three")
	name, err := words.MergeOperator()
	must(t, err)
	that(t, name == (&longest{}).Name(), name)
}

func TestBuiltInMergeOperators(t *testing.T) {
	db := open(t)
	hits := keyspace(t, db, "hits", esker.BuiltInMerge(esker.MergeUint64Add))
	for range 3 {
		must(t, hits.Merge(b("page"), binary.LittleEndian.AppendUint64(nil, 7)))
	}
	value, err := hits.Get(b("page"))
	must(t, err)
	that(t, binary.LittleEndian.Uint64(value) == 21, "the sum")
	is(t, hits.Merge(b("page"), b("three")), esker.ErrInvalidArgument)
	texts := keyspace(t, db, "texts", esker.BuiltInMerge(esker.MergeStringAppend(b(", "))))
	must(t, texts.Merge(b("t"), b("a")))
	must(t, texts.Merge(b("t"), b("b")))
	value, err = texts.Get(b("t"))
	must(t, err)
	equal(t, value, "a, b")
	plain := keyspace(t, db, "plain")
	is(t, plain.Merge(b("k"), b("v")), esker.ErrInvalidArgument)
	for _, name := range []string{esker.MergeInt64Add, esker.MergeMax, esker.MergeMin, esker.MergePut, esker.MergeBytesXor, esker.MergeBitOr} {
		keyspace(t, db, name, esker.BuiltInMerge(name))
	}
}

// A callback that uses its own database is refused, and does not wait for ever.
type rude struct {
	k      *esker.Keyspace
	err    error
	rename error
}

func (*rude) Name() string { return "rude" }

func (r *rude) FullMerge(_, _ []byte, operands [][]byte) ([]byte, error) {
	r.err = r.k.Put(b("k"), b("v"))
	r.rename = r.k.Rename("other")
	return operands[0], nil
}

func TestCallbacksOfTheirOwnDatabase(t *testing.T) {
	db := open(t)
	operator := &rude{}
	operator.k = keyspace(t, db, "rude", esker.WithMergeOperator(operator))
	must(t, operator.k.Merge(b("m"), b("operand")))
	value, err := operator.k.Get(b("m"))
	must(t, err)
	equal(t, value, "operand")
	is(t, operator.err, esker.ErrInCallback)
	is(t, operator.rename, esker.ErrInCallback)
}

type byLength struct{ panics atomic.Bool }

func (*byLength) Name() string { return "by length" }

func (c *byLength) Compare(x, y []byte) int {
	if c.panics.Load() {
		panic("asked to")
	}
	if len(x) != len(y) {
		return (len(x) - len(y)) * 1000
	}
	return bytes.Compare(x, y)
}

func TestComparators(t *testing.T) {
	directory := t.TempDir()
	order := &byLength{}
	db, err := esker.Open(directory, esker.WithComparator(order))
	must(t, err)
	words := keyspace(t, db, "words", esker.OrderedBy(order))
	put(t, words, "aaa", "3", "b", "1", "cc", "2")
	that(t, scanned(t, words.All()) == "b=1 cc=2 aaa=3", "the order")
	transaction, err := db.Transaction()
	must(t, err)
	must(t, transaction.Put(words, b("dd"), b("2")))
	that(t, scanned(t, transaction.Scan(words, esker.ScanOptions{})) == "b=1 cc=2 dd=2 aaa=3", "the order")
	must(t, transaction.Rollback())
	must(t, db.Close())
	_, err = esker.Open(directory)
	is(t, err, esker.ErrMissingComparator)
	db, err = esker.Open(directory, esker.WithComparator(order))
	must(t, err)
	words = keyspace(t, db, "words", esker.OrderedBy(order))
	// A panic is told on the standard error, and breaks nothing else.
	read, write, err := os.Pipe()
	must(t, err)
	stderr := os.Stderr
	os.Stderr = write
	order.panics.Store(true)
	result, err := words.CompareKeys(b("aaa"), b("b"))
	order.panics.Store(false)
	os.Stderr = stderr
	must(t, write.Close())
	var told bytes.Buffer
	_, _ = told.ReadFrom(read)
	must(t, err)
	that(t, result < 0, "by their bytes")
	that(t, strings.Contains(told.String(), "the comparator panicked: asked to"), told.String())
	must(t, db.Close())
}

type byValue struct{}

func (byValue) Name() string { return "by value" }

func (byValue) Filter(_, value []byte) (esker.Decision, []byte) {
	switch string(value) {
	case "old":
		return esker.Remove, nil
	case "long":
		return esker.Replace, b("short")
	case "panic":
		panic("asked to")
	}
	return esker.Keep, nil
}

type firstByte struct{ asked atomic.Int64 }

func (*firstByte) Name() string { return "first byte" }

func (*firstByte) CreateFilter(keys [][]byte) []byte {
	filter := []byte{}
	for _, key := range keys {
		filter = append(filter, key[0])
	}
	return filter
}

func (f *firstByte) KeyMayMatch(key, filter []byte) bool {
	f.asked.Add(1)
	return bytes.IndexByte(filter, key[0]) >= 0
}

func TestFiltersAndEvents(t *testing.T) {
	policy := &firstByte{}
	events := make(chan string, 1000)
	db := open(t, esker.WithFilterPolicy(policy), esker.WithEventListener(func(name, text string) {
		events <- name + ": " + text
		panic("asked to")
	}))
	names := keyspace(t, db, "names", esker.WithCompactionFilter(byValue{}))
	put(t, names, "f1", "old", "f2", "long", "f3", "else")
	must(t, db.Compact())
	that(t, scanned(t, names.All()) == "f2=short f3=else", "what is left")
	value, err := names.Get(b("f3"))
	must(t, err)
	equal(t, value, "else")
	that(t, policy.asked.Load() > 0, "the policy was asked")
	for {
		if event := <-events; strings.HasPrefix(event, "compaction completed: names") {
			break
		}
	}
}

// The state of callbacks ends with what they were given to.
func TestCallbacksEnd(t *testing.T) {
	ended := make(chan bool)
	func() {
		operator := &longest{}
		runtime.AddCleanup(operator, func(int) { close(ended) }, 0)
		db := open(t)
		words := keyspace(t, db, "words", esker.WithMergeOperator(operator))
		must(t, words.Merge(b("w"), b("v")))
		must(t, words.Close())
		must(t, db.Close())
	}()
	for {
		runtime.GC()
		select {
		case <-ended:
			return
		default:
			runtime.Gosched()
		}
	}
}

type leaves struct{}

func (leaves) Name() string { return "leaves" }

func (leaves) FullMerge(_, _ []byte, _ [][]byte) ([]byte, error) {
	runtime.Goexit()
	return nil, nil
}

// A callback that ends its goroutine ends the process: with a message, and with what was acknowledged.
func TestGoexitInACallback(t *testing.T) {
	const variable = "ESKER_TEST_GOEXIT"
	if directory := os.Getenv(variable); directory != "" {
		db, err := esker.Open(directory)
		must(t, err)
		k := keyspace(t, db, "leaves", esker.WithMergeOperator(leaves{}))
		must(t, k.Put(b("acknowledged"), b("v")))
		must(t, k.Merge(b("m"), b("v")))
		_, err = k.Get(b("m"))
		fmt.Println("went on", err)
		return
	}
	directory := t.TempDir()
	command := exec.Command(os.Args[0], "-test.run=^TestGoexitInACallback$")
	command.Env = append(os.Environ(), variable+"="+directory)
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	that(t, errors.As(err, &exit) && exit.ExitCode() == 2, string(output))
	that(t, bytes.Contains(output, b("the merge operator called runtime.Goexit")), string(output))
	that(t, !bytes.Contains(output, b("went on")), string(output))
	db, err := esker.Open(directory)
	must(t, err)
	defer db.Close()
	k, err := db.ExistingKeyspace("leaves")
	must(t, err)
	value, err := k.Get(b("acknowledged"))
	must(t, err)
	equal(t, value, "v")
}
