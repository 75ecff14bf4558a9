//! Makes a module of each block `rust` of the book, for `tests/snippets.rs`.

#[path = "src/lib.rs"]
#[allow(dead_code)]
mod book;

use std::fmt::Write;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed={}", book::directory().display());
    let mut modules = String::new();
    let mut list = String::new();
    for page in book::pages()? {
        for block in page.blocks.iter().filter(|block| block.language == "rust") {
            let module = format!("{}_{}", page.name.replace('-', "_"), block.line);
            write!(
                modules,
                "mod {module} {{\n{}\npub fn run() -> Result<(), Box<dyn std::error::Error>> {{ main()?; Ok(()) }}\n}}\n",
                block.text
            )?;
            let (page, line, prints) = (&page.name, block.line, &block.prints);
            writeln!(list, "    Snippet {{ page: {page:?}, line: {line}, prints: {prints:?}, run: {module}::run }},")?;
        }
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    std::fs::write(out.join("snippets.rs"), format!("{modules}\nconst SNIPPETS: &[Snippet] = &[\n{list}];\n"))?;
    Ok(())
}
