//! Opening after the death of a process.

use super::altered::{self, LOOKUPS, Moment, SLOW, Wrong};
use super::{present, run};
use esker_bench::interrupt::Interrupt;
use esker_bench::process::Consumption;
use esker_bench::progress::Display;
use esker_bench::reference;
use esker_bench::sweep::task::{Step, Surroundings, Task, collect};
use esker_engines::{EngineKind, registry};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// Names the engine and the directory for the process that is to die.
const CHILD: &str = "ESKER_WORKLOADS_CHILD";

const SIZES: &str = "--num=2000 --writes=700 --write_buffer_size=65536";

/// Not a test of its own: the process that the tests below start loads, and dies in here.
#[test]
fn dying_child() {
    let Ok(work) = std::env::var(CHILD) else { return };
    let (name, base) = work.split_once(':').unwrap();
    run(registry::find(name).unwrap(), Path::new(base), &format!("--benchmarks=fillseq,crash {SIZES}"));
}

fn crash(name: &str, base: &Path) -> ExitStatus {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "workloads::recovery::dying_child"])
        .env(CHILD, format!("{name}:{}", base.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap()
}

#[test]
fn what_a_dead_process_had_put_is_found_by_the_next() {
    // The reference engine dies with its process.
    for kind in present().into_iter().filter(|kind| kind.name != "reference") {
        let (name, base) = (kind.name, tempfile::tempdir().unwrap());
        let status = crash(name, base.path());
        assert!(status.code().is_none(), "{name} did not die: {status}");
        let again = |list: &str| {
            let flags = format!("--benchmarks={list} {SIZES} --use_existing_db=1");
            run(registry::find(name).unwrap(), base.path(), &flags)
        };
        let (code, rows) = again("recover,reopen,readseq");
        if name == "kyoto" && code == 1 {
            eprintln!("kyoto: cannot be opened after its process died; it promises nothing");
            continue;
        }
        assert_eq!((code, rows.len()), (0, 3), "{name}");
        let recover = &rows[0];
        assert!(recover.micros_per_op > 0.0 && recover.latency.max_us > 0.0, "{name}");
        assert_eq!((recover.ops, recover.threads), (1, 1));
        if name != "kyoto" {
            assert_eq!(recover.found, Some(700), "{name}");
            assert_eq!(rows[2].ops, 2000 - 1300 + 700, "{name}: as many as were loaded and put");
        }
        // Given more than was put, it does not say that all is well.
        let (code, _) = run(
            registry::find(name).unwrap(),
            base.path(),
            "--benchmarks=recover --num=2000 --writes=1400 --use_existing_db=1",
        );
        assert_eq!(code, i32::from(name != "kyoto"), "{name}");
    }
}

/// When the library had been loaded.
static LOADED: OnceLock<Moment> = OnceLock::new();

/// Loads a library, which takes its time once.
fn load_slowly() {
    LOADED.get_or_init(|| {
        std::thread::sleep(Duration::from_millis(500));
        Moment::now()
    });
}

/// An engine in that library.
fn in_a_library() -> EngineKind {
    EngineKind {
        open: |directory, options, library| {
            load_slowly();
            (altered::kind(Wrong::LooksUpSlowly).open)(directory, options, library)
        },
        probe: |_| {
            load_slowly();
            Ok("loaded".into())
        },
        ..reference::KIND
    }
}

#[test]
fn recovery_is_the_opening_and_the_first_lookup_only() {
    let base = tempfile::tempdir().unwrap();
    let flags = [("num", "1000"), ("writes", "1000"), ("use_existing_db", "1"), ("disable_wal", "1")];
    let mut flags: BTreeMap<String, String> =
        flags.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    flags.insert("db".into(), base.path().display().to_string());
    let kind = in_a_library();
    let task = Task {
        engine: kind.name.into(),
        repetition: 1,
        flags,
        steps: vec![Step::new("recover", Some("recover"))],
        ..Task::default()
    };
    let (interrupt, mut records) = (Interrupt::new(), Vec::new());
    let around = Surroundings { kind: &kind, display: Display::Hidden, interrupt: &interrupt };
    task.perform(&around, &mut |event| {
        assert_eq!(collect(event, &mut records), None);
        Ok(())
    })
    .unwrap();
    assert_eq!(records[0].message, "(0 of 1000 sampled entries are there)");
    // However slow the machine is, both are between the loading and the check, which take half a
    // second each.
    let lookups = std::mem::take(&mut *LOOKUPS.lock().unwrap());
    assert_eq!(lookups.len(), 1 + 1000);
    let (loaded, checked) = (LOADED.get().unwrap(), lookups[1]);
    let between = (checked.at - loaded.at).as_secs_f64();
    let wall_s = records[0].wall_s;
    assert!(wall_s >= SLOW.as_secs_f64() && wall_s <= between, "{wall_s} of {between} s");
    let total = |cpu: Consumption| cpu.user_s + cpu.system_s;
    let between = total(checked.cpu) - total(loaded.cpu);
    let cpu_s = records[0].cpu_user_s + records[0].cpu_sys_s;
    // The kernel says it in microseconds.
    assert!(cpu_s <= between + 1e-4, "{cpu_s} of {between} s");
    assert!(records[0].rss_peak_bytes > 0);
}

#[test]
fn an_emptied_database_has_nothing_to_recover() {
    let base = tempfile::tempdir().unwrap();
    let (code, rows) = run(registry::find("esker").unwrap(), base.path(), "--benchmarks=recover --num=10");
    assert_eq!(code, 0);
    assert!(rows[0].skipped.as_deref().is_some_and(|reason| reason.contains("nothing to recover")));
}
