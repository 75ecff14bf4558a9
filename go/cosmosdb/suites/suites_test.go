// Package suites has what is published for databases of cosmos-db and cometbft-db: their interfaces,
// what they make of databases, and their own tests of backends, with Esker among these.
package suites

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"esker/cosmosdb"

	comet "github.com/cometbft/cometbft-db"
	cosmos "github.com/cosmos/cosmos-db"

	// What the published tests import, so that it is among what this module needs.
	_ "github.com/stretchr/testify/require"
)

var (
	_ cosmos.DB = (*cosmosdb.DB[cosmos.Batch, cosmos.Iterator])(nil)
	_ comet.DB  = (*cosmosdb.DB[comet.Batch, comet.Iterator])(nil)
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestPrefixes(t *testing.T) {
	db, err := cosmosdb.Open[comet.Batch, comet.Iterator](t.TempDir())
	must(t, err)
	defer db.Close()
	blocks := comet.NewPrefixDB(db, []byte("blocks/"))
	must(t, blocks.Set([]byte("1"), []byte("first")))
	must(t, db.Set([]byte("blocksy"), []byte("behind")))
	value, err := db.Get([]byte("blocks/1"))
	if must(t, err); string(value) != "first" {
		t.Fatalf("%q", value)
	}
	pairs, err := comet.IteratePrefix(db, []byte("blocks/"))
	must(t, err)
	count := 0
	for ; pairs.Valid(); pairs.Next() {
		count++
	}
	must(t, pairs.Close())
	if count != 1 {
		t.Fatal(count)
	}
	batch := blocks.NewBatch()
	must(t, batch.Set([]byte("2"), []byte("second")))
	must(t, batch.WriteSync())
	must(t, batch.Close())
	if has, err := db.Has([]byte("blocks/2")); !has || err != nil {
		t.Fatal(has, err)
	}
}

// What puts Esker among the backends of a package: its tests go through them.
const backend = `package db

import (
	"path/filepath"

	"esker/cosmosdb"
)

func init() {
	backends["esker"] = func(name, dir string OPTIONS) (DB, error) {
		return cosmosdb.Open[Batch, Iterator](filepath.Join(dir, name+".db"))
	}
}
`

// The published tests that go through all backends of their package.
const overBackends = "^(TestBackends|TestDB|TestPrefixIterator)"

// A test that has passed with Esker: the names of its parts are of several kinds.
var ofEsker = regexp.MustCompile(`--- PASS: \w+/(Backend_|Prefix_w/_backend_)?esker `)

// The tests of a package are in it, so that they are run in a copy of it.
func TestPublishedSuites(t *testing.T) {
	for _, c := range []struct {
		module, options string
		tests           int
	}{
		{"github.com/cosmos/cosmos-db", ", _ Options", 15},
		{"github.com/cometbft/cometbft-db", "", 14},
	} {
		t.Run(filepath.Base(c.module), func(t *testing.T) {
			run := func(directory string, arguments ...string) string {
				t.Helper()
				command := exec.Command("go", arguments...)
				command.Dir = directory
				output, err := command.CombinedOutput()
				if err != nil {
					t.Fatalf("go %s: %v\n%s", strings.Join(arguments, " "), err, output)
				}
				return string(output)
			}
			esker, err := filepath.Abs("../..")
			must(t, err)
			published := strings.TrimSpace(run(".", "list", "-m", "-f", "{{.Dir}}", c.module))
			copied := filepath.Join(t.TempDir(), "copy")
			must(t, os.CopyFS(copied, os.DirFS(published)))
			must(t, os.WriteFile(filepath.Join(copied, "esker_test.go"),
				[]byte(strings.ReplaceAll(backend, " OPTIONS", c.options)), 0o644))
			for _, file := range []string{"go.mod", "go.sum"} {
				must(t, os.Chmod(filepath.Join(copied, file), 0o644))
			}
			run(copied, "mod", "edit", "-go=1.24", "-require=esker@v0.0.0", "-replace=esker="+esker)
			output := run(copied, "test", "-mod=mod", "-count=1", "-v", "-run", overBackends, ".")
			passed := len(ofEsker.FindAllString(output, -1))
			// scripts/go-tests prints this line.
			t.Logf("%s: %d tests with Esker", filepath.Base(c.module), passed)
			if passed < c.tests || strings.Contains(output, "--- SKIP") {
				t.Fatal(output)
			}
		})
	}
}
