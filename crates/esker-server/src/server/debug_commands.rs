//! DEBUG, for those who test.

use crate::protocol::{Reply, parse_double};
use bytes::Bytes;
use std::time::Duration;

/// What tests of Redis turn off or force. It is about how Redis keeps values in memory and how it
/// loads them, and has nothing to change here: with its number of arguments.
const WITHOUT_EFFECT: [(&str, usize); 4] =
    [("set-active-expire", 3), ("quicklist-packed-threshold", 3), ("reload", 2), ("loadaof", 2)];

/// The reply to DEBUG where it is not allowed.
pub const DEBUG_FORBIDDEN: &str =
    "ERR DEBUG command not allowed. Start the server with --enable-debug-command to allow it.";

/// DEBUG SLEEP seconds | ERROR text | one without an effect. Where it is not allowed, it is not
/// admitted.
pub fn debug(arguments: &[Bytes]) -> Reply {
    let given = String::from_utf8_lossy(&arguments[1]);
    match (given.to_lowercase().as_str(), &arguments[2..]) {
        ("sleep", [seconds]) => match parse_double(seconds) {
            Some(seconds) if (0.0..1e6).contains(&seconds) => {
                std::thread::sleep(Duration::from_secs_f64(seconds));
                Reply::OK
            }
            _ => Reply::error("ERR value is not a valid float"),
        },
        // The client gives the whole error, with its code; a reply is one line.
        ("error", [text]) => Reply::error(String::from_utf8_lossy(text).replace(['\r', '\n'], " ")),
        (name, _) if WITHOUT_EFFECT.contains(&(name, arguments.len())) => Reply::OK,
        _ => Reply::error(format!("ERR unknown subcommand '{given}'. Try DEBUG HELP.")),
    }
}
