//! Spans of time as people write them.
//!
//! ```text
//! duration := (NUMBER unit)+     unit = w d h m s ms, each at most once, the longest first
//! ```

use std::time::Duration;

/// The units with their milliseconds, the longest first.
const UNITS: [(&str, u64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
const FORM: &str = "use whole numbers with units, as in 10m, 1h30m or 500ms (w, d, h, m, s, ms; the longest first)";

/// Reads a span of time.
pub fn parse(text: &str) -> Result<Duration, String> {
    let mut rest = text;
    let mut units = UNITS.iter();
    let mut millis = 0u64;
    while !rest.is_empty() || rest.len() == text.len() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or(FORM)?;
        let (number, behind) = rest.split_at(digits);
        let (unit, after) = behind.split_at(behind.find(|c: char| c.is_ascii_digit()).unwrap_or(behind.len()));
        let factor = units.find(|(name, _)| *name == unit).map(|(_, factor)| *factor).ok_or(FORM)?;
        let number: u64 = number.parse().map_err(|_| FORM)?;
        let sum = number.checked_mul(factor).and_then(|part| millis.checked_add(part));
        millis = sum.ok_or("the time is too long; leave it out for one that never ends")?;
        rest = after;
    }
    match millis {
        0 => Err("a time of zero; leave it out, or delete the key".into()),
        _ => Ok(Duration::from_millis(millis)),
    }
}

/// A span of time with its two longest units.
pub fn text(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    let mut parts = 0;
    for (unit, factor) in UNITS {
        if rest >= factor && parts < 2 {
            text.push_str(&format!("{}{unit}", rest / factor));
            rest %= factor;
            parts += 1;
        } else if parts > 0 {
            break;
        }
    }
    if text.is_empty() { "0ms".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_back_as_written() {
        for (written, millis) in [("10m", 600_000), ("1h30m", 5_400_000), ("500ms", 500), ("2w1d", 1_296_000_000)] {
            let read = parse(written);
            assert_eq!(read, Ok(Duration::from_millis(millis)));
            assert_eq!(text(Duration::from_millis(millis)), written);
        }
        assert_eq!(text(Duration::from_millis(90_061_001)), "1d1h");
        assert_eq!(text(Duration::ZERO), "0ms");
        assert_eq!(text(Duration::MAX), text(Duration::from_millis(u64::MAX)));
    }

    #[test]
    fn what_is_unclear_is_refused() {
        for wrong in
            ["", "10", "m", "0s", "1.5h", "-1s", "10 m", "1s1h", "1m1m", "1y", "99999999999999999999s", "1\u{e9}"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
