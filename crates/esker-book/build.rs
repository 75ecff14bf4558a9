//! Makes a module of each block `rust` of the book and of other documents, for `tests/snippets.rs`.

#[path = "src/lib.rs"]
#[allow(dead_code)]
mod book;

use std::fmt::Write;
use std::path::PathBuf;

/// A directory that a document names for its readers, and the one that its program gets.
const ELSEWHERE: (&str, &str) = ("/mnt/backups/data", "backups");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed={}", book::directory().display());
    let mut modules = String::new();
    let mut list = String::new();
    let mut add = |file: &str, block: &book::Block, program: &str, prints: Option<&str>| {
        let module = format!("{}_{}", file.to_lowercase().replace(['-', '/', '.'], "_"), block.line);
        write!(
            modules,
            "mod {module} {{\n{program}\npub fn run() -> Result<(), Box<dyn std::error::Error>> {{ main()?; Ok(()) }}\n}}\n"
        )?;
        writeln!(
            list,
            "    Snippet {{ file: {file:?}, line: {}, prints: {prints:?}, run: {module}::run }},",
            block.line
        )
    };
    for page in book::pages()? {
        for block in page.blocks.iter().filter(|block| block.language == "rust") {
            add(&format!("doc/book/{}.md", page.name), block, &block.text, block.prints.as_deref())?;
        }
    }
    // These are the bodies of programs, and do not say what they print.
    for (file, blocks) in book::bodies()? {
        println!("cargo::rerun-if-changed=../../{file}");
        for block in blocks.iter().filter(|block| block.language == "rust") {
            let body = block.text.replace(ELSEWHERE.0, ELSEWHERE.1);
            let program = format!("fn main() -> Result<(), Box<dyn std::error::Error>> {{\n{body}\nOk(())\n}}");
            add(&file, block, &program, Some("...\n"))?;
        }
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    std::fs::write(out.join("snippets.rs"), format!("{modules}\nconst SNIPPETS: &[Snippet] = &[\n{list}];\n"))?;
    Ok(())
}
