//! `bench`, `study`, `sweep` and `report`: their arguments go to the benchmark program as they are,
//! if this build has it.

use crate::failure::Failure;
use std::ffi::OsString;
use std::process::ExitCode;

/// The names of the commands.
pub const COMMANDS: [&str; 4] = ["bench", "study", "sweep", "report"];

/// Runs one of [`COMMANDS`] with what follows its name.
pub fn run(command: &str, arguments: &[OsString]) -> ExitCode {
    let mut rest = Vec::new();
    for argument in arguments {
        match argument.to_str() {
            Some(text) => rest.push(text.to_owned()),
            None => {
                let shown = argument.to_string_lossy();
                return Failure::Usage(format!("argument {shown:?} is not UTF-8; benchmarks take text only")).report();
            }
        }
    }
    program(command, &rest)
}

#[cfg(feature = "bench")]
fn program(command: &str, arguments: &[String]) -> ExitCode {
    let main = match command {
        "bench" => esker_bench::bench_main,
        "study" => esker_bench::study_main,
        "sweep" => esker_bench::sweep_main,
        _ => esker_bench::report_main,
    };
    ExitCode::from(u8::try_from(main(arguments)).unwrap_or(1))
}

#[cfg(not(feature = "bench"))]
fn program(command: &str, _: &[String]) -> ExitCode {
    let remedy = "install it with `cargo install --path crates/esker-cli --features bench`";
    Failure::Usage(format!("this build has no `{command}`, which measures other engines too; {remedy}")).report()
}
