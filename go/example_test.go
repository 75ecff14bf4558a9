package esker_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The examples of the documentation are programs.
func TestTheExampleOfTheDocumentation(t *testing.T) {
	printed, _ := runExampleOf(t, "../doc/go.md")
	that(t, printed == "alan was born in 1912\nada was born in 1815\n", printed)
}

func TestTheExampleOfTheBook(t *testing.T) {
	printed, page := runExampleOf(t, "../doc/book/start-go.md")
	_, shown, found := strings.Cut(page, "```text\n")
	that(t, found, "what it prints is shown")
	shown, _, _ = strings.Cut(shown, "```")
	that(t, printed == shown, printed)
}

// What the first program of a page prints, and the page.
func runExampleOf(t *testing.T, path string) (string, string) {
	page, err := os.ReadFile(path)
	must(t, err)
	_, example, found := strings.Cut(string(page), "```go\n")
	that(t, found, "an example")
	example, _, _ = strings.Cut(example, "```")
	directory := t.TempDir()
	source := filepath.Join(directory, "main.go")
	must(t, os.WriteFile(source, []byte(example), 0o600))
	program := filepath.Join(directory, "program")
	// As a file of this module, whose directory is where the test runs.
	output, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, source).CombinedOutput()
	that(t, err == nil, string(output))
	command := exec.Command(program)
	command.Dir = directory
	output, err = command.CombinedOutput()
	that(t, err == nil, string(output))
	return string(output), string(page)
}
