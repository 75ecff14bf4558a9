//! Runs clusters of `esker serve` as processes, with clients and faults, and checks what the
//! clients have seen for linearizability.
//!
//! The seed of a run decides the faults, their order, and what clients draw; when things happen is
//! decided by the system, so that a seed repeats a run only nearly. A violation is printed with
//! the whole history of its object. The same faults in one process, where a seed repeats the run,
//! are in the tests of `esker-raft` (`scripts/cluster-histories --simulated`).
//!
//! Modules, each importing only from those above it: `specification`; `history`, `client`,
//! `machine`, `network`; `node`, `load`; `cluster`; `schedule`.

#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
mod cluster;
mod history;
#[cfg(target_os = "linux")]
mod load;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod node;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod schedule;
mod specification;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    run::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    println!("cluster-check: skipped: it needs the namespaces of Linux");
    std::process::ExitCode::SUCCESS
}
