//! The parent's side of the protocol with the processes that engines run in: here they are shells
//! that say or do something.

#![allow(clippy::unwrap_used)]
#![cfg(unix)]

use esker_bench::interrupt::Interrupt;
use esker_bench::record::Record;
use esker_bench::sweep::child::perform_in;
use esker_bench::sweep::task::{Ended, Event, Step, Task, collect};
use std::process::Command;
use std::time::Duration;

fn task() -> Task {
    Task {
        engine: "esker".into(),
        repetition: 2,
        flags: [("num".to_string(), "1000".to_string())].into(),
        memory: Some(8 << 20),
        steps: vec![Step::new("fillseq", Some("fillseq"))],
        ..Task::default()
    }
}

/// What a shell script reports as a child.
fn events(script: &str, interrupt: &Interrupt) -> Result<Vec<Event>, String> {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    let mut events = Vec::new();
    perform_in(command, &task(), interrupt, &mut |event| {
        events.push(event);
        Ok(())
    })?;
    Ok(events)
}

fn row(engine: &str) -> String {
    let record = Record { engine: engine.into(), row: "fillseq".into(), ..Record::default() };
    serde_json::to_string(&Event::Row(Box::new(record))).unwrap()
}

#[test]
fn rows_come_through_and_other_output_does_not_disturb() {
    let script =
        format!("read task; echo hello; printf '%s\\n' '{}' ''; printf '%s\\n' '{{\"settled\":7}}'", row("esker"));
    let events = events(&script, &Interrupt::new()).unwrap();
    assert_eq!(events.len(), 2);
    assert!(matches!(&events[0], Event::Row(record) if record.engine == "esker"));
    assert_eq!(events[1], Event::Settled(7));
}

#[test]
fn the_task_arrives_whole() {
    let script = "read task; printf '{\"failed\":\"%s bytes\"}\\n' ${#task}";
    let bytes = serde_json::to_string(&task()).unwrap().len();
    assert_eq!(events(script, &Interrupt::new()).unwrap(), [Event::Failed(format!("{bytes} bytes"))]);
    let again: Task = serde_json::from_str(&serde_json::to_string(&task()).unwrap()).unwrap();
    assert_eq!(again, task());
}

#[test]
fn a_crash_is_an_error_of_its_row_and_keeps_what_was_measured() {
    let script = format!("read task; printf '%s\\n' '{}'; kill -9 $$", row("leveldb"));
    let events = events(&script, &Interrupt::new()).unwrap();
    assert_eq!(events.len(), 2);
    assert!(matches!(&events[1], Event::Failed(problem) if problem.contains("signal")), "{events:?}");
}

#[test]
fn a_program_that_is_not_there_is_an_error() {
    let result = perform_in(Command::new("/no/such/program"), &task(), &Interrupt::new(), &mut |_| Ok(()));
    assert!(result.unwrap_err().contains("cannot start"));
}

#[test]
fn an_interrupt_ends_the_childs_input() {
    let interrupt = Interrupt::new();
    let requested = interrupt.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        requested.request();
    });
    // One whose input did not end would be killed after a while, before it says the first.
    let script = "read task; read end; printf '%s\n' '{\"settled\":7}' '\"interrupted\"'";
    assert_eq!(events(script, &interrupt).unwrap(), [Event::Settled(7), Event::Interrupted]);
}

#[test]
fn events_are_about_the_records_before() {
    let mut records = Vec::new();
    let load = Record { durability: Some(esker_engines::Durability::Process), ..Record::default() };
    for record in [load, Record::default()] {
        assert_eq!(collect(Event::Row(Box::new(record)), &mut records), None);
    }
    assert_eq!(collect(Event::Settled(9), &mut records), None);
    assert_eq!((records[0].settled_disk_bytes, records[1].settled_disk_bytes), (Some(9), None));
    let failed = collect(Event::Failed("no".into()), &mut records);
    assert_eq!((failed, records.len()), (Some(Ended::Failed("no".into())), 2));
}

#[test]
fn a_process_that_is_to_die_has_not_failed() {
    let dying = Task { steps: vec![Step::new("fillseq", Some("fillseq")), Step::new("crash", None)], ..task() };
    assert!(dying.dies() && !task().dies());
    let events_of = |task: &Task, script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let mut events = Vec::new();
        perform_in(command, task, &Interrupt::new(), &mut |event| {
            events.push(event);
            Ok(())
        })
        .unwrap();
        events
    };
    let announced = "read task; echo '\"dying\"'; kill";
    let script = format!("printf '%s\\n' '{}'; {announced} -9 $$", row("lmdb"));
    assert!(matches!(&events_of(&dying, &script)[..], [Event::Row(_)]));
    // Of something else than the end it was to come to, it has; also if the system killed it
    // before.
    let otherwise = format!("{announced} -11 $$");
    for script in [&otherwise, "read task; kill -9 $$", "read task; exit 1"] {
        assert!(matches!(&events_of(&dying, script)[..], [Event::Failed(_)]), "{script}");
    }
}
