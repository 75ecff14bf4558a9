//! Every public function of the engine is one of C, or `doc/interfaces.md` says what is in its
//! place.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The functions of the engine, as `Keyspace::get` or `escape_key`, that a list of its interface
/// has. Not those of its modules: typed keyspaces, environments, and operators, of which C has the
/// names.
fn of_engine(list: &str) -> BTreeSet<String> {
    let names = list.lines().filter_map(|line| {
        let path = line.strip_prefix("fn esker::")?;
        let end = path.find(|it: char| !it.is_ascii_alphanumeric() && it != '_' && it != ':')?;
        Some(path[..end].to_owned())
    });
    let is_typed = |name: &str| name.starts_with("Typed") || name.starts_with("Counters::");
    let in_module = |name: &str| name.contains("::") && name.starts_with(|it: char| it.is_ascii_lowercase());
    names.filter(|name| !is_typed(name) && !in_module(name)).collect()
}

/// The functions that a header declares.
fn of_header(header: &str) -> BTreeSet<&str> {
    let starts = header.match_indices("esker_").map(|(at, _)| &header[at..]);
    let names = starts.filter_map(|text| {
        let end = text.find(|it: char| !it.is_ascii_alphanumeric() && it != '_')?;
        text[end..].starts_with('(').then_some(&text[..end])
    });
    names.collect()
}

/// The names that a function of the engine may have in C.
fn names_in_c(function: &str) -> Vec<String> {
    let (handle, name) = function.split_once("::").unwrap_or(("", function));
    let mut prefix = "esker".to_owned();
    for letter in handle.replace("Iter", "Iterator").chars() {
        if letter.is_ascii_uppercase() {
            prefix.push('_');
        }
        prefix.push(letter.to_ascii_lowercase());
    }
    // C has one function where the engine has one with options and one without.
    let without_options = name.strip_suffix("_with").unwrap_or(name);
    let of_options = [format!("set_{name}"), format!("add_{name}")];
    let names = [name.to_owned(), without_options.to_owned()].into_iter().chain(of_options);
    names.map(|name| format!("{prefix}_{name}")).collect()
}

/// The rows of the table of what has another name in C, or none: functions or types of the engine,
/// with what the second column says.
fn otherwise(page: &str) -> BTreeMap<String, String> {
    let table = page.split("| Engine | C |\n").nth(1).expect("the page has the table");
    let mut rows = BTreeMap::new();
    for row in table.lines().skip(1).take_while(|line| line.starts_with('|')) {
        let columns: Vec<&str> = row.trim_matches('|').splitn(2, " | ").collect();
        let [engine, c] = columns[..] else { panic!("{row} has not two columns") };
        for name in engine.split('`').skip(1).step_by(2) {
            assert!(rows.insert(name.to_owned(), c.to_owned()).is_none(), "{name} is there twice");
        }
    }
    rows
}

/// What is wrong: functions that C lacks without a reason, and rows that say nothing.
fn mistakes(list: &str, header: &str, page: &str) -> Vec<String> {
    let (engine, functions, rows) = (of_engine(list), of_header(header), otherwise(page));
    let has = |name: &str| functions.contains(name) || header.contains(&format!("}} {name};"));
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for function in &engine {
        let handle = function.split("::").next().unwrap_or(function);
        let row = [function.as_str(), handle].into_iter().find(|it| rows.contains_key(*it));
        let is_in_c = names_in_c(function).iter().any(|name| functions.contains(name.as_str()));
        used.extend(row);
        match (row, is_in_c) {
            (None, false) => wrong.push(format!("{function} is not in esker.h, and no row says why")),
            (Some(row), true) if row == function => wrong.push(format!("{function} is in esker.h: no row is needed")),
            _ => {}
        }
    }
    for (name, c) in &rows {
        if !used.contains(name.as_str()) {
            wrong.push(format!("the row of {name} is about no function of the engine"));
        }
        for function in c.split('`').skip(1).step_by(2).filter(|it| it.starts_with("esker_")) {
            if !has(function) {
                wrong.push(format!("the row of {name} names {function}, which esker.h does not have"));
            }
        }
    }
    wrong
}

#[test]
fn every_function_of_the_engine_is_in_c_or_has_a_reason() {
    let (list, header, page) =
        (read("doc/api/esker.txt"), read("crates/esker-c/include/esker.h"), read("doc/interfaces.md"));
    assert!(of_engine(&list).len() > 200 && of_header(&header).len() > 200);
    let wrong = mistakes(&list, &header, &page);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_is_missing_is_found() {
    let list = "fn esker::Db::flush(self: &Self)\nfn esker::Db::record(self: &Self)\nfn esker::env::Env::list()\n";
    let header = "esker_code esker_db_flush(esker_db *db);\nesker_code esker_db_metrics(esker_db *db);\n";
    let page = |rows: &str| format!("| Engine | C |\n| --- | --- |\n{rows}\n| `Other` | not of this table |\n");
    assert_eq!(mistakes(list, header, &page("| `Db::record` | `esker_db_metrics` |\n")), [""; 0]);
    assert_eq!(mistakes(list, header, &page("")), ["Db::record is not in esker.h, and no row says why"]);
    let rows = "| `Db::record` | `esker_db_text` |\n| `Db::flush` | none |\n| `Db::gone` | none |\n";
    let wrong = [
        "Db::flush is in esker.h: no row is needed",
        "the row of Db::gone is about no function of the engine",
        "the row of Db::record names esker_db_text, which esker.h does not have",
    ];
    assert_eq!(mistakes(list, header, &page(rows)), wrong);
}
