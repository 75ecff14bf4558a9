//! Programs in C and C++ on the library: as they are, under AddressSanitizer and
//! UndefinedBehaviorSanitizer, and under valgrind.

mod toolchain;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use toolchain::is_here;

/// How a program is built and run.
#[derive(Clone, Copy, PartialEq)]
enum How {
    Shared,
    Static,
    Sanitized,
    Valgrind,
}

/// An empty directory that goes away.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("esker-c-{name}-{}", std::process::id()));
        std::fs::remove_dir_all(&path).ok();
        std::fs::create_dir_all(&path).expect("the directory can be made");
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// The static library, where cargo puts it: beside the tests.
fn archive() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    test.parent().expect("a directory").join("libesker_c.a")
}

/// The shared library, under the names of an installed one, in a directory of its own that all
/// tests share.
fn shared() -> &'static Path {
    static SHARED: OnceLock<Directory> = OnceLock::new();
    &SHARED
        .get_or_init(|| {
            let root = Path::new(env!("CARGO_MANIFEST_DIR"));
            let directory = Directory::new("library");
            let library = directory.0.join("libesker.so.0");
            let mut script = Command::new(root.join("../../scripts/shared-library"));
            script.arg(archive()).arg(root.join("esker.map")).arg("libesker.so.0").arg(&library);
            passed("shared-library", &run(&mut script));
            std::os::unix::fs::symlink("libesker.so.0", directory.0.join("libesker.so")).expect("a link can be made");
            directory
        })
        .0
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn passed(what: &str, output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{what}: {}\n{}{}", output.status, text(&output.stdout), text(&output.stderr));
}

/// The compiler of a source.
fn compiler(source: &str) -> &'static str {
    if source.ends_with(".c") { "cc" } else { "c++" }
}

/// Whether what builds a program, and runs it, is here.
fn can(source: &str, how: How) -> bool {
    let compiler = compiler(source);
    is_here(compiler)
        && match how {
            How::Sanitized if compiler == "cc" => is_here("cc -fsanitize=address,undefined"),
            How::Sanitized => is_here("c++ -fsanitize=address,undefined"),
            How::Valgrind => is_here("valgrind"),
            // What makes the shared library.
            How::Shared => is_here("cc"),
            How::Static => true,
        }
}

/// Builds a program of `tests/c` in a directory.
fn build(directory: &Path, source: &str, how: How) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = directory.join("program");
    let (name, is_c) = (compiler(source), source.ends_with(".c"));
    let mut compiler = Command::new(name);
    compiler.args(["-g", "-O1", "-Wall", "-Wextra", "-Werror", if is_c { "-std=gnu11" } else { "-std=c++17" }]);
    compiler.arg("-I").arg(root.join("include")).arg(root.join("tests/c").join(source)).arg("-o").arg(&program);
    if how == How::Sanitized {
        compiler.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]);
    }
    if how == How::Static {
        compiler.arg(archive()).args(["-lpthread", "-ldl", "-lm"]);
    } else {
        compiler.arg("-L").arg(shared()).args(["-lesker", "-lpthread"]);
        compiler.arg(format!("-Wl,-rpath,{}", shared().display()));
    }
    passed(source, &run(&mut compiler));
    program
}

fn command(program: &Path, how: How) -> Command {
    if how != How::Valgrind {
        return Command::new(program);
    }
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--error-exitcode=99", "--leak-check=full", "--show-leak-kinds=definite"]);
    valgrind.args(["--errors-for-leak-kinds=definite", "--fair-sched=yes"]).arg(program);
    valgrind
}

fn check(name: &str, source: &str, how: How) {
    if !can(source, how) {
        return;
    }
    let directory = Directory::new(name);
    let program = build(&directory.0, source, how);
    let data = directory.0.join("data");
    std::fs::create_dir(&data).expect("the directory can be made");
    let output = run(command(&program, how).arg(&data));
    passed(name, &output);
    assert!(!output.stdout.is_empty(), "{name} did not come to its end");
}

#[test]
fn the_whole_interface_works() {
    check("whole-shared", "whole.c", How::Shared);
    check("whole-static", "whole.c", How::Static);
}

#[test]
fn the_whole_interface_is_clean_under_sanitizers() {
    check("whole-sanitized", "whole.c", How::Sanitized);
}

#[test]
fn the_whole_interface_is_clean_under_valgrind() {
    check("whole-valgrind", "whole.c", How::Valgrind);
}

#[test]
fn the_change_feed_works() {
    check("feed-shared", "feed.c", How::Shared);
    check("feed-sanitized", "feed.c", How::Sanitized);
    check("feed-valgrind", "feed.c", How::Valgrind);
}

#[test]
fn misuse_is_told() {
    check("misuse-shared", "misuse.c", How::Shared);
}

#[test]
fn misuse_is_told_under_sanitizers() {
    check("misuse-sanitized", "misuse.c", How::Sanitized);
}

#[test]
fn misuse_is_told_under_valgrind() {
    check("misuse-valgrind", "misuse.c", How::Valgrind);
}

#[test]
fn a_program_in_c_plus_plus_works() {
    check("plus-shared", "plus.cpp", How::Shared);
    check("plus-sanitized", "plus.cpp", How::Sanitized);
    check("plus-valgrind", "plus.cpp", How::Valgrind);
}

#[test]
fn the_example_of_the_documentation_works() {
    if !can("example.c", How::Shared) {
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../doc/c.md");
    let page = std::fs::read_to_string(page).expect("the page can be read");
    let example = page.split("```c\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let directory = Directory::new("example");
    let source = directory.0.join("example.c");
    std::fs::write(&source, example).expect("the example can be written");
    let program = build(&directory.0, source.to_str().expect("a path in UTF-8"), How::Shared);
    let output = run(command(&program, How::Shared).current_dir(&directory.0));
    passed("the example", &output);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ada was born in 1815\n");
}

#[test]
fn the_programs_of_the_book_print_what_it_shows() {
    if !can("book.c", How::Shared) {
        return;
    }
    let pages = esker_book::pages().expect("the book can be read");
    let programs = pages.iter().flat_map(|page| page.blocks.iter().map(move |block| (page, block)));
    let mut count = 0;
    for (page, block) in programs.filter(|(_, block)| block.language == "c") {
        let directory = Directory::new(&format!("book-{count}"));
        let source = directory.0.join("book.c");
        std::fs::write(&source, &block.text).expect("the program can be written");
        for how in [How::Shared, How::Static] {
            let program = build(&directory.0, source.to_str().expect("a path in UTF-8"), how);
            let output = run(command(&program, how).current_dir(&directory.0));
            let place = format!("doc/book/{}.md, line {}", page.name, block.line);
            passed(&place, &output);
            let (printed, shown) = (String::from_utf8_lossy(&output.stdout), block.prints.as_deref().unwrap_or(""));
            assert!(esker_book::fits(&printed, shown), "{place} prints\n{printed}and the page shows\n{shown}");
            std::fs::remove_dir_all(directory.0.join("data")).expect("the program has made a database");
        }
        count += 1;
    }
    assert!(count >= 2, "only {count} programs in C were found in the book");
}

#[test]
fn an_exception_of_a_callback_ends_the_process_and_loses_nothing() {
    if !can("plus.cpp", How::Shared) {
        return;
    }
    let directory = Directory::new("throws");
    let program = build(&directory.0, "plus.cpp", How::Shared);
    let data = directory.0.join("data");
    std::fs::create_dir(&data).expect("the directory can be made");
    let output = run(command(&program, How::Shared).arg(&data).arg("throw"));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "acknowledged\n");
    assert_eq!(output.status.signal(), Some(6), "{:?}", output.status);
    assert!(!output.stderr.is_empty(), "no message");
    let output = run(command(&program, How::Shared).arg(&data));
    passed("after the exception", &output);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "plus: one twoone two\n");
}

/// Each callback, also where the program would catch what it throws, and in whichever thread.
#[test]
fn an_exception_of_any_callback_ends_the_process_and_loses_nothing() {
    if !can("throws.cpp", How::Shared) {
        return;
    }
    let directory = Directory::new("throws-each");
    let program = build(&directory.0, "throws.cpp", How::Shared);
    let callbacks = [
        "full merge",
        "partial merge",
        "check operand",
        "compare",
        "compare in the background",
        "create filter",
        "create filter in the background",
        "key may match",
        "filter",
        "clock",
        "event",
        "next pair",
        "visit pair",
        "visit text",
        "destroy",
    ];
    for callback in callbacks {
        let data = directory.0.join(callback);
        std::fs::create_dir(&data).expect("the directory can be made");
        let output = run(command(&program, How::Shared).arg(&data).arg(callback));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "acknowledged\n", "{callback}");
        assert_eq!(output.status.signal(), Some(6), "{callback}: {:?}", output.status);
        assert!(!output.stderr.is_empty(), "{callback}: no message");
        let output = run(command(&program, How::Shared).arg(&data).arg("none"));
        passed(callback, &output);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "300 are there\n", "{callback}");
        std::fs::remove_dir_all(&data).expect("the directory can be removed");
    }
}

#[test]
fn only_the_interface_is_exported() {
    if !is_here("cc") || !is_here("nm") {
        return;
    }
    let output = run(Command::new("nm").args(["-D", "--defined-only"]).arg(shared().join("libesker.so.0")));
    passed("nm", &output);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let symbols: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    let foreign: Vec<&&str> = symbols
        .iter()
        .filter(|symbol| !(symbol.starts_with("esker_") && symbol.ends_with("@@ESKER_0.1")) && **symbol != "ESKER_0.1")
        .collect();
    assert!(symbols.len() > 100 && foreign.is_empty(), "{} symbols, foreign: {foreign:?}", symbols.len());
}

#[test]
fn every_function_is_called_by_a_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect("the file can be read");
    let programs = read("tests/c/whole.c") + &read("tests/c/feed.c");
    let header = read("include/esker.h");
    let mut missing = Vec::new();
    for line in header.lines().filter(|line| !line.starts_with([' ', '#', '/', '*']) && !line.starts_with("typedef")) {
        let Some(name) = line.split('(').next().and_then(|start| start.split([' ', '*']).next_back()) else { continue };
        if line.contains('(') && name.starts_with("esker_") && !programs.contains(&format!("{name}(")) {
            missing.push(name.to_owned());
        }
    }
    assert!(missing.is_empty(), "neither whole.c nor feed.c calls {missing:?}");
}
