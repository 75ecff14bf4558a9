//! `include/esker.h` is what the source says.

use std::path::{Path, PathBuf};

/// The parts of the header, in its order.
const PARTS: [&str; 24] = [
    "codes",
    "errors",
    "objects",
    "caller",
    "callbacks",
    "output",
    "options",
    "keyspace_options",
    "write_options",
    "database",
    "keyspace",
    "write",
    "read",
    "conditional",
    "expiry",
    "batch",
    "snapshot",
    "cursor",
    "iterator",
    "transaction",
    "change_batch",
    "changes",
    "watch",
    "maintenance",
];

fn generated() -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(directory.join("cbindgen.toml")).expect("the configuration can be read");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for part in PARTS.iter().chain(&["follower"]) {
        builder = builder.with_src(directory.join("src").join(part).with_extension("rs"));
    }
    let mut header = Vec::new();
    builder.generate().expect("the source can be read").write(&mut header);
    String::from_utf8(header).expect("ASCII")
}

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include/esker.h")
}

#[test]
fn the_header_is_what_the_source_says() {
    let generated = generated();
    if std::env::var_os("ESKER_WRITE_HEADER").is_some() {
        std::fs::write(committed(), &generated).expect("the header can be written");
    }
    let header = std::fs::read_to_string(committed()).unwrap_or_default();
    let hint = "include/esker.h is not what the source says; run this test with ESKER_WRITE_HEADER=1";
    assert!(header == generated, "{hint}");
}

#[test]
fn every_function_is_in_the_header() {
    let header = std::fs::read_to_string(committed()).expect("the header can be read");
    let mut functions = 0;
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).expect("the source can be read") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("the file can be read");
        for line in text.lines().filter(|line| line.starts_with("pub ") && line.contains("extern \"C\" fn ")) {
            let name = line.split("fn ").nth(1).and_then(|rest| rest.split('(').next()).expect("a name");
            assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
            functions += 1;
        }
    }
    assert!(functions > 100, "only {functions} functions found");
}
