//! Sweeps: the example in the repository, what a file means, and what is said of a wrong one.

#![allow(clippy::unwrap_used)]

use esker_bench::sweep::plan_of_file;
use std::path::Path;

fn example() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sweeps/memtable.toml")
}

#[test]
fn the_example_is_a_grid_of_twelve_cells() {
    let plan = plan_of_file(&example(), None).unwrap();
    assert_eq!((plan.study.as_str(), plan.title.as_str()), ("sweep", "Write buffer and table size, small"));
    assert_eq!(plan.cells.len(), 3 * 2 * 2);
    let (first, second, third) = (&plan.cells[0], &plan.cells[1], &plan.cells[2]);
    assert_eq!([first.engine.as_str(), second.engine.as_str(), third.engine.as_str()], ["esker", "leveldb", "esker"]);
    assert_eq!(first.variables["write_buffer_size"], "2 MiB");
    assert_eq!(
        (third.variables["write_buffer_size"].as_str(), third.variables["max_file_size"].as_str()),
        ("2 MiB", "8 MiB")
    );
    let tasks = &first.tasks;
    assert_eq!(tasks.len(), 4);
    assert_eq!(tasks.iter().map(|task| task.keep).collect::<Vec<_>>(), [true, false, true, false]);
    let buffers: Vec<&str> = tasks.iter().map(|task| task.flags["write_buffer_size"].as_str()).collect();
    assert_eq!(buffers, ["2097152", "4194304", "2097152", "4194304"]);
    assert_eq!(tasks[3].steps[0].row.as_deref(), Some("readrandom after fillrandom"));
    assert!(tasks.iter().flat_map(|task| &task.steps).all(|step| step.most_seconds == 300.0));
    assert!(tasks.iter().all(|task| task.config().is_ok()));
}

#[test]
fn engines_may_be_others_than_the_file_names() {
    let plan = plan_of_file(&example(), Some(&["rocksdb".to_string()])).unwrap();
    assert!(plan.cells.len() == 6 && plan.cells.iter().all(|cell| cell.engine == "rocksdb"));
}

const GOOD: &str = "engines = [\"esker\"]\n\
                    [flags]\n\
                    num = 1000\n\
                    threads = 2\n\
                    histogram = true\n\
                    [axes]\n\
                    value_size = [10, 100]\n\
                    [[process]]\n\
                    benchmarks = [\"fillrandom\", \"readrandom as reads\"]\n\
                    [[process]]\n\
                    benchmarks = [\"readseq\"]\n";

fn read(text: &str) -> Result<esker_bench::sweep::grid::Plan, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.toml");
    std::fs::write(&path, text).unwrap();
    plan_of_file(&path, None).map_err(|problem| {
        assert!(!problem.contains('\n'), "{problem}");
        problem.replace(&path.display().to_string(), "a.toml")
    })
}

#[test]
fn flags_that_are_the_steps_own_reach_them() {
    let plan = read(GOOD).unwrap();
    assert_eq!((plan.cells.len(), plan.title.as_str()), (2, "a"));
    for step in plan.cells.iter().flat_map(|cell| &cell.tasks).flat_map(|task| &task.steps) {
        assert!(step.threads == 2 && step.every_latency && step.most_seconds == 0.0);
    }
    assert_eq!(plan.cells[0].tasks[1].flags["use_existing_db"], "1");
    assert_ne!(plan.cells[0].hash(), plan.cells[1].hash());
}

#[test]
fn mistakes_name_the_place_and_what_was_meant() {
    let with = |from: &str, to: &str| {
        assert!(GOOD.contains(from));
        read(&GOOD.replacen(from, to, 1)).unwrap_err()
    };
    for (problem, expected) in [
        (with("engines", "engin"), "a.toml:1:1: unknown key `engin`; did you mean `engines`?"),
        (with("num", "nun"), "a.toml:3:1: unknown flag `nun`; did you mean `num`?"),
        (with("value_size", "valu_size"), "a.toml:7:1: unknown flag `valu_size`; did you mean `value_size`?"),
        (with("= 1000", "= -1"), "a.toml:3:7: `num`: '-1' is not a whole number that is not negative"),
        (with("100]", "\"x\"]"), "a.toml:7:19: `value_size`: 'x' is not a whole number that is not negative"),
        (with("100]", "10]"), "a.toml:7:19: `value_size` has the value 10 twice"),
        (with("100]", "100000000]"), "a.toml:7:19: --value_size must be below"),
        (with("[10, 100]", "[]"), "a.toml:7:14: `value_size` has no values"),
        (with("value_size", "num"), "a.toml:3:1: `num` is in [axes] too; take it out here"),
        (
            with("\"fillrandom\"", "\"filrandom\""),
            "a.toml:9:15: unknown benchmark `filrandom`; did you mean `fillrandom`?",
        ),
        (with("readrandom as reads", "fillrandom"), "a.toml:9:29: there is a row `fillrandom` already"),
        (with("\"readseq\"", "\"readseq\", \"fillseq\""), "a.toml:11:26: `fillseq` starts with an empty database"),
        (with("\"readseq\"", ""), "a.toml:11:14: `benchmarks` names no benchmark"),
        (with("[\"esker\"]", "[\"eske\"]"), "a.toml:1:12: unknown engine 'eske'"),
        (with("[\"esker\"]", "[]"), "a.toml:1:1: `engines` names no engine"),
        (
            with("histogram", "repeat"),
            "a.toml:5:1: `repeat` is not for a sweep to set: write `repeat` above all tables",
        ),
        (with("[flags]", "repeat = 0\n[flags]"), "a.toml:2:10: `repeat` must be at least 1"),
        (with("[axes]", "[limits]\nbenchmark_seconds = 0\n[axes]"), "a.toml:7:21: `benchmark_seconds` must be above 0"),
        (with("= 1000", "= [1, 2]"), "a.toml:3:7: invalid type: sequence, expected a number, a text, true or false"),
        (with("[axes]", "[axes"), "a.toml:6:"),
        (with("benchmarks", "benchmark"), "a.toml:9:1: unknown key `benchmark`; did you mean `benchmarks`?"),
    ] {
        assert!(problem.starts_with(expected), "{problem}\nis not {expected}");
    }
    assert!(read("engines = [\"esker\"]\n").unwrap_err().contains("process"));
    assert!(read("").unwrap_err().starts_with("a.toml:1:1: "));
    assert!(
        plan_of_file(Path::new("/no/such/file.toml"), None).unwrap_err().starts_with("cannot read /no/such/file.toml")
    );
}

#[test]
fn a_grid_beyond_all_measure_is_refused() {
    let values: Vec<String> = (0..400).map(|value| value.to_string()).collect();
    let axes = format!("[axes]\nvalue_size = [{0}]\nseed = [{0}]\n", values.join(", "));
    let text = GOOD.replacen("[axes]\nvalue_size = [10, 100]\n", &axes, 1);
    assert!(read(&text).unwrap_err().contains("more than 100000 cells"));
}
