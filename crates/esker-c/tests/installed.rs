//! What `make install` puts where, and that programs build with it: by pkg-config and by CMake.

mod toolchain;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use toolchain::is_here;

/// An empty directory that goes away.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("esker-installed-{name}-{}", std::process::id()));
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

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, told) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{told}", output.status);
    output
}

fn script() -> Command {
    let mut script = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/install-libraries"));
    for variable in ["PREFIX", "DESTDIR", "LIBDIR", "INCLUDEDIR"] {
        script.env_remove(variable);
    }
    script
}

/// A directory of built libraries. That of LevelDB's interface, which is of another crate, is only
/// copied: here any file stands for it.
fn built(directory: &Directory) -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let built = directory.0.join("built");
    std::fs::create_dir(&built).expect("the directory can be made");
    let archive = test.parent().expect("a directory").join("libesker_c.a");
    std::os::unix::fs::symlink(archive, built.join("libesker_c.a")).expect("a link can be made");
    std::fs::write(built.join("libesker_leveldb.so"), "a library").expect("the file can be written");
    built
}

fn files(directory: &Path) -> BTreeSet<String> {
    let output = run(Command::new("find").arg(directory).args(["!", "-type", "d", "-printf", "%P\n"]));
    text(&output.stdout).lines().map(str::to_owned).collect()
}

/// The first block of a language on the page of the interface.
fn block(language: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../doc/c.md");
    let page = std::fs::read_to_string(page).expect("the page can be read");
    let block = page.split(&format!("```{language}\n")).nth(1).and_then(|rest| rest.split("```").next());
    block.unwrap_or_else(|| panic!("a block {language}")).to_owned()
}

fn example(directory: &Path) -> PathBuf {
    let example = block("c");
    let source = directory.join("example.c");
    std::fs::write(&source, example).expect("the example can be written");
    source
}

fn runs(program: &Path, directory: &Path, libraries: &Path) {
    std::fs::remove_dir_all(directory.join("people")).ok();
    let output = run(Command::new(program).current_dir(directory).env("LD_LIBRARY_PATH", libraries));
    assert_eq!(text(&output.stdout), "ada was born in 1815\n", "{}", program.display());
}

#[test]
fn programs_build_with_what_is_installed() {
    let directory = Directory::new("prefix");
    let (built, prefix) = (built(&directory), directory.0.join("prefix"));
    run(script().arg(&built).env("PREFIX", &prefix));
    let (source, libraries) = (example(&directory.0), prefix.join("lib"));
    if is_here("cc") && is_here("pkg-config") {
        let mut command = Command::new("pkg-config");
        let output =
            run(command.args(["--cflags", "--libs", "esker"]).env("PKG_CONFIG_PATH", libraries.join("pkgconfig")));
        let program = directory.0.join("shared");
        run(Command::new("cc").arg(&source).args(text(&output.stdout).split_whitespace()).arg("-o").arg(&program));
        runs(&program, &directory.0, &libraries);
    }
    if is_here("cc") && is_here("cmake") {
        let project = "cmake_minimum_required(VERSION 3.16)\nproject(example C)\nfind_package(esker 0.1 REQUIRED)\n\
             add_executable(with_shared example.c)\ntarget_link_libraries(with_shared PRIVATE esker::esker)\n\
             add_executable(with_static example.c)\ntarget_link_libraries(with_static PRIVATE esker::static)\n\
             add_executable(program example.c)\n";
        let project = project.to_owned() + &block("cmake");
        std::fs::write(directory.0.join("CMakeLists.txt"), project).expect("the project can be written");
        let made = directory.0.join("made");
        run(Command::new("cmake")
            .arg("-S")
            .arg(&directory.0)
            .arg("-B")
            .arg(&made)
            .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())));
        run(Command::new("cmake").arg("--build").arg(&made));
        runs(&made.join("with_shared"), &directory.0, &libraries);
        runs(&made.join("with_static"), &directory.0, Path::new("/nowhere"));
        runs(&made.join("program"), &directory.0, &libraries);
    }
}

#[test]
fn everything_is_below_destdir_and_goes_again() {
    let directory = Directory::new("destdir");
    let (built, destdir) = (built(&directory), directory.0.join("image"));
    let in_image = |command: &mut Command| {
        run(command.env("PREFIX", "/opt/esker").env("DESTDIR", &destdir));
    };
    in_image(script().arg(&built));
    let version = env!("CARGO_PKG_VERSION");
    let lib = |name: &str| format!("opt/esker/lib/{name}");
    let mut expected: BTreeSet<String> = [
        "libesker.a",
        "libesker.so",
        "libesker.so.0",
        "pkgconfig/esker.pc",
        "cmake/esker/esker-config.cmake",
        "cmake/esker/esker-config-version.cmake",
        "libesker_leveldb.so",
        "libesker_leveldb.so.1",
        "libesker_leveldb.so.1.23",
        "esker/leveldb/libleveldb.so",
        "esker/leveldb/libleveldb.so.1",
        "esker/leveldb/libleveldb.so.1d",
    ]
    .map(lib)
    .into();
    expected.insert(lib(&format!("libesker.so.{version}")));
    expected.insert("opt/esker/include/esker.h".to_owned());
    assert_eq!(files(&destdir), expected);
    for file in ["pkgconfig/esker.pc", "cmake/esker/esker-config.cmake"].map(lib) {
        let written = std::fs::read_to_string(destdir.join(&file)).expect("the file can be read");
        assert!(written.contains("/opt/esker/lib") && written.contains(version), "{file}");
        assert!(!written.contains(&*destdir.to_string_lossy()) && !written.contains('@'), "{file}: {written}");
    }
    let leveldb = destdir.join(lib("esker/leveldb/libleveldb.so.1"));
    assert_eq!(std::fs::read(leveldb).expect("the link leads to the library"), b"a library");
    in_image(script().arg("--uninstall"));
    assert!(files(&destdir).is_empty(), "{:?}", files(&destdir));
}
