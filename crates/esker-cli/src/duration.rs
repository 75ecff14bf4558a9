//! Spans of time as people write them, as `humantime` reads and writes them.

use std::time::Duration;

/// Reads a span of time.
pub fn span(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; write it with units, as in 10m, 1h30m or 500ms"))
}

/// Reads a time to live.
pub fn time_to_live(text: &str) -> Result<Duration, String> {
    let duration = span(text)?;
    if duration.is_zero() {
        return Err("a time of zero; leave it out, or delete the key".into());
    }
    Ok(duration)
}

/// A span of time, in whole seconds if it has any.
pub fn text(duration: Duration) -> String {
    let whole = Duration::from_secs(duration.as_secs());
    humantime::format_duration(if whole.is_zero() { duration } else { whole }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_told() {
        for (written, millis) in [("10m", 600_000), ("1h30m", 5_400_000), ("500ms", 500), ("2w", 1_209_600_000)] {
            assert_eq!(time_to_live(written), Ok(Duration::from_millis(millis)));
        }
        assert_eq!(text(Duration::from_millis(90_500)), "1m 30s");
        assert_eq!(text(Duration::from_millis(20)), "20ms");
    }

    #[test]
    fn what_is_unclear_is_refused() {
        for wrong in ["", "10", "m", "0s", "-1s", "1parsec", "99999999999999999999s"] {
            assert!(time_to_live(wrong).is_err(), "{wrong}");
            assert_eq!(span(wrong).is_err(), wrong != "0s", "{wrong}");
        }
    }
}
