package esker_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The example of the documentation is a program.
func TestTheExampleOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../doc/go.md")
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
	that(t, err == nil && string(output) == "alan was born in 1912\nada was born in 1815\n", string(output))
}
