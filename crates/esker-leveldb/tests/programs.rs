//! Programs that are written for LevelDB's C interface: its own test, one that goes through all of
//! it on both libraries, one that does everything wrong, and one whose callbacks throw.

#[path = "../../esker-c/tests/toolchain/mod.rs"]
mod toolchain;

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use sha2::{Digest, Sha256};
use toolchain::is_here;

/// The names under which the library stands for LevelDB's.
const NAMES: [&str; 4] = ["libesker_leveldb.so.1", "libleveldb.so", "libleveldb.so.1", "libleveldb.so.1d"];

/// An empty directory that goes away.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("esker-leveldb-{name}-{}", std::process::id()));
        std::fs::remove_dir_all(&path).ok();
        std::fs::create_dir_all(&path).expect("the directory can be made");
        Directory(path)
    }

    fn sub(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir(&path).expect("the directory can be made");
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// The library, where cargo puts it: beside the tests.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    test.parent().expect("a directory").join("libesker_leveldb.so")
}

/// A directory with the library under the names of LevelDB's, which all tests share.
fn in_its_place() -> &'static Path {
    static SHARED: OnceLock<Directory> = OnceLock::new();
    let shared = SHARED.get_or_init(|| {
        let directory = Directory::new("library");
        for name in NAMES {
            std::os::unix::fs::symlink(library(), directory.0.join(name)).expect("a link can be made");
        }
        directory
    });
    &shared.0
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn passed(what: &str, output: &Output) {
    assert!(output.status.success(), "{what}: {}\n{}{}", output.status, text(&output.stdout), text(&output.stderr));
}

/// Builds a program of `tests` against a library: this one, or LevelDB itself.
fn build(directory: &Path, source: &str, library: Option<&Path>, flags: &[&str]) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let program = directory.join("program");
    let is_c = source.ends_with(".c");
    let mut compiler = Command::new(if is_c { "cc" } else { "c++" });
    compiler
        .arg(if is_c { "-std=gnu11" } else { "-std=c++17" })
        .args(["-g", "-O1"])
        .args(flags)
        .arg(tests.join(source))
        .arg("-o")
        .arg(&program);
    if let Some(library) = library {
        compiler.arg("-I").arg(tests.join("third_party/leveldb/include"));
        compiler.arg("-L").arg(library).arg(format!("-Wl,-rpath,{}", library.display()));
    }
    compiler.args(["-lleveldb", "-lpthread"]);
    passed(source, &run(&mut compiler));
    program
}

/// Whether LevelDB itself is here, with its development files.
fn has_leveldb() -> bool {
    is_here("cc") && is_here("cc -include leveldb/c.h -lleveldb")
}

const SANITIZED: [&str; 3] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"];

fn has_sanitizers() -> bool {
    is_here("cc") && is_here("cc -fsanitize=address,undefined")
}

/// How a program is built: as it is, and with sanitizers, where these are here.
fn ways() -> Vec<(&'static str, &'static [&'static str])> {
    let mut ways: Vec<(_, &[&str])> = Vec::new();
    if is_here("cc") {
        ways.push(("plain", &[]));
    }
    if has_sanitizers() {
        ways.push(("sanitized", &SANITIZED));
    }
    ways
}

/// What `tests/third_party/leveldb` has of LevelDB 1.23, under which names there, and its SHA-256.
/// All of it is under the licence that is beside it, the 3-clause BSD licence. Debian's source
/// package `leveldb` 1.23-4 has the same files.
const PUBLISHED: [(&str, &str, &str); 4] = [
    ("c_test.c", "db/c_test.c", "287416b35cf186c6b44e8bf55d9c00e61e2d95cb1175e632a65d011b6344be8c"),
    ("include/leveldb/c.h", "include/leveldb/c.h", "c29ed17863f91749b7f05892230dacb3a2b7e1ac45969abbef3a42d2810bcf1e"),
    (
        "include/leveldb/export.h",
        "include/leveldb/export.h",
        "16d10725a7121568913e6b994c58c6a1227f459713065a8640c4d8f130cb5af7",
    ),
    ("LICENSE", "LICENSE", "ccc19f1da0798ed666609b65a5b44dd8b3abe6fc08b9c0592eb76e82e174db19"),
];

#[test]
fn what_is_of_leveldb_is_unmodified() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/third_party/leveldb");
    for (file, original, hash) in PUBLISHED {
        let contents = std::fs::read(directory.join(file)).expect("the file can be read");
        let found: String = Sha256::digest(contents).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, hash, "{file} is not {original} of LevelDB 1.23");
    }
}

#[test]
fn the_test_of_leveldb_passes_unmodified() {
    what_is_of_leveldb_is_unmodified();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/third_party/leveldb/c_test.c");
    let source = std::fs::read_to_string(source).expect("the test can be read");
    let phases = source.matches("  StartPhase(\"").count();
    for (name, flags) in ways() {
        let directory = Directory::new(&format!("c-test-{name}"));
        let program = build(&directory.0, "third_party/leveldb/c_test.c", Some(in_its_place()), flags);
        let output = run(Command::new(&program).env("TEST_TMPDIR", directory.sub("data")));
        passed(name, &output);
        let told = text(&output.stderr);
        assert!(told.ends_with("PASS\n"), "{told}");
        assert_eq!(told.matches("=== Test ").count(), phases, "{told}");
        let line = format!("c_test.c of LevelDB 1.23, {name}: {phases} phases passed\n");
        // Not by `eprintln`, whose output is lost when the test passes.
        std::io::stderr().write_all(line.as_bytes()).ok();
    }
}

/// Its condition is one that never holds: in it the custom policy denies what is there.
#[test]
fn it_passes_with_the_condition_that_was_meant() {
    if !is_here("cc") {
        return;
    }
    let directory = Directory::new("c-test-meant");
    let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/third_party/leveldb/c_test.c");
    let original = std::fs::read_to_string(original).expect("the test can be read");
    let meant = original.replace("if (phase == 0) {", "if (run == 0) {");
    assert_ne!(meant, original);
    let source = directory.0.join("c_test.c");
    std::fs::write(&source, meant).expect("the test can be written");
    let source = source.to_str().expect("a path in UTF-8");
    let program = build(&directory.0, source, Some(in_its_place()), &[]);
    let output = run(Command::new(&program).env("TEST_TMPDIR", directory.sub("data")));
    passed("the condition that was meant", &output);
    assert!(text(&output.stderr).ends_with("PASS\n"));
}

fn whole(directory: &Directory, program: &Path, name: &str, path: Option<&Path>) -> String {
    let mut command = Command::new(program);
    command.arg(directory.sub(name)).env("TEST_TMPDIR", "/tmp/leveldb-of-nobody");
    if let Some(path) = path {
        command.env("LD_LIBRARY_PATH", path);
    }
    let output = run(&mut command);
    passed(name, &output);
    text(&output.stdout)
}

/// A program that is linked to LevelDB runs here by another library path, and prints the same.
#[test]
fn both_libraries_do_the_same() {
    if !has_leveldb() {
        return;
    }
    let directory = Directory::new("differential");
    let program = build(&directory.0, "c/differential.c", None, &[]);
    let theirs = whole(&directory, &program, "theirs", None);
    let ours = whole(&directory, &program, "ours", Some(in_its_place()));
    assert!(theirs.ends_with("end\n"), "{theirs}");
    for (line, (ours, theirs)) in ours.lines().zip(theirs.lines()).enumerate() {
        assert_eq!(ours, theirs, "line {}", line + 1);
    }
    assert_eq!(ours, theirs);
    let preloaded = {
        let mut command = Command::new(&program);
        command.arg(directory.sub("preloaded")).env("LD_PRELOAD", library());
        let output = run(command.env("TEST_TMPDIR", "/tmp/leveldb-of-nobody"));
        passed("preloaded", &output);
        text(&output.stdout)
    };
    assert_eq!(preloaded, theirs);
}

#[test]
fn the_whole_interface_is_clean_under_sanitizers() {
    if !has_sanitizers() {
        return;
    }
    let directory = Directory::new("sanitized");
    let program = build(&directory.0, "c/differential.c", Some(in_its_place()), &SANITIZED);
    assert!(whole(&directory, &program, "data", None).ends_with("end\n"));
}

#[test]
fn misuse_is_told() {
    for (name, flags) in ways() {
        let directory = Directory::new(&format!("misuse-{name}"));
        let flags: Vec<&str> = flags.iter().copied().chain(["-Wall", "-Wextra", "-Werror"]).collect();
        let program = build(&directory.0, "c/misuse.c", Some(in_its_place()), &flags);
        let output = run(Command::new(&program).arg(directory.sub("data")));
        passed(name, &output);
        let told = text(&output.stderr);
        assert!(told.contains("libesker_leveldb: leveldb_close: Invalid argument: "), "{told}");
    }
}

/// Also where the program would catch it, and in whichever thread.
#[test]
fn an_exception_of_a_callback_ends_the_process_and_loses_nothing() {
    if !is_here("c++") {
        return;
    }
    let directory = Directory::new("throws");
    let flags = ["-Wall", "-Wextra", "-Werror"];
    let program = build(&directory.0, "c/throws.cpp", Some(in_its_place()), &flags);
    let callbacks = [
        "compare",
        "compare in the background",
        "create filter",
        "create filter in the background",
        "key may match",
        "iterate",
        "name",
        "destructor",
    ];
    for callback in callbacks {
        let data = directory.sub(callback);
        let output = run(Command::new(&program).arg(&data).arg(callback));
        assert_eq!(text(&output.stdout), "acknowledged\n", "{callback}");
        assert_eq!(output.status.signal(), Some(6), "{callback}: {:?}", output.status);
        assert!(!output.stderr.is_empty(), "{callback}: no message");
        let output = run(Command::new(&program).arg(&data).arg("none"));
        passed(callback, &output);
        assert_eq!(text(&output.stdout), "100 are there\n", "{callback}");
    }
}

/// A line that cannot be written is lost, and ends nothing.
#[cfg(target_os = "linux")]
#[test]
fn misuse_ends_nothing_where_standard_error_is_full() {
    if !is_here("cc") {
        return;
    }
    let directory = Directory::new("misuse-full");
    let program = build(&directory.0, "c/misuse.c", Some(in_its_place()), &[]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("it can be opened");
    passed("misuse", &run(Command::new(&program).arg(directory.sub("data")).stderr(full)));
}

#[test]
fn misuse_is_clean_under_valgrind() {
    if !is_here("cc") || !is_here("valgrind") {
        return;
    }
    let directory = Directory::new("misuse-valgrind");
    let program = build(&directory.0, "c/misuse.c", Some(in_its_place()), &[]);
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--error-exitcode=99", "--leak-check=full", "--show-leak-kinds=definite"]);
    valgrind.args(["--errors-for-leak-kinds=definite", "--fair-sched=yes"]).arg(&program).arg(directory.sub("data"));
    passed("misuse under valgrind", &run(&mut valgrind));
}

/// What LevelDB has written is known for that, and the error says what to do.
#[test]
fn a_directory_of_leveldb_is_recognized() {
    if !has_leveldb() {
        return;
    }
    let directory = Directory::new("recognized");
    let source = directory.0.join("open.c");
    let code = r#"
        #include <leveldb/c.h>
        #include <stdio.h>
        int main(int argc, char **argv) {
            char *err = NULL;
            leveldb_options_t *options = leveldb_options_create();
            leveldb_options_set_create_if_missing(options, argc > 1);
            leveldb_t *db = leveldb_open(options, argv[1], &err);
            if (err != NULL) { puts(err); return 0; }
            leveldb_put(db, leveldb_writeoptions_create(), "k", 1, "v", 1, &err);
            leveldb_close(db);
            puts("written");
            return 0;
        }"#;
    std::fs::write(&source, code).expect("the program can be written");
    let program = build(&directory.0, source.to_str().expect("a path in UTF-8"), None, &[]);
    let data = directory.0.join("data");
    assert_eq!(text(&run(Command::new(&program).arg(&data)).stdout), "written\n");
    let told = text(&run(Command::new(&program).arg(&data).env("LD_LIBRARY_PATH", in_its_place())).stdout);
    let expected = format!("esker import --db NEW_DIRECTORY --from leveldb {}", data.display());
    assert!(told.starts_with("Invalid argument: ") && told.contains(&expected), "{told}");
    assert_eq!(text(&run(Command::new(&program).arg(&data)).stdout), "written\n");
}

/// Every function of LevelDB's header, and nothing else.
#[test]
fn all_of_the_header_is_exported() {
    if !is_here("nm") {
        return;
    }
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/third_party/leveldb/include/leveldb/c.h");
    let header = std::fs::read_to_string(header).expect("the header can be read");
    let code: String = header.lines().filter(|line| !line.starts_with(['#', ' ', '/']) || line.contains('(')).collect();
    let mut declared: Vec<&str> = code
        .split("LEVELDB_EXPORT ")
        .skip(1)
        .filter_map(|declaration| declaration.split('(').next()?.split([' ', '*']).next_back())
        .collect();
    declared.sort_unstable();
    let output = run(Command::new("nm").args(["-D", "--defined-only"]).arg(library()));
    passed("nm", &output);
    let symbols = text(&output.stdout);
    let mut exported: Vec<&str> = symbols.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    exported.sort_unstable();
    assert_eq!(declared.len(), 68, "{declared:?}");
    assert_eq!(exported, declared);
}
