//! Numbers as the protocol's clients write and expect them.

/// An integer: an optional minus and digits, without leading zeros, plus or spaces.
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    match digits {
        [b'0'] if digits.len() == text.len() => return Some(0),
        [b'1'..=b'9', ..] => {}
        _ => return None,
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// An integer as text.
pub fn format_integer(value: i64) -> String {
    value.to_string()
}

/// A floating-point number; no NaN, and no spaces around it.
pub fn parse_double(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let value: f64 = text.parse().ok()?;
    if value.is_nan() { None } else { Some(value) }
}

/// The significant digits that tell every floating-point number from its neighbours.
const DIGITS: i32 = 17;

/// With seventeen significant digits, without zeros at the end; in the scientific form for an
/// exponent below -4 or above 16.
pub fn format_double(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    let scientific = format!("{value:.16e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        let decimals = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
        return without_trailing_zeros(&format!("{value:.decimals$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_trailing_zeros(mantissa), exponent.abs())
}

fn without_trailing_zeros(text: &str) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_strict() {
        for (text, value) in
            [("0", 0), ("-1", -1), ("9223372036854775807", i64::MAX), ("-9223372036854775808", i64::MIN)]
        {
            assert_eq!(parse_integer(text.as_bytes()), Some(value));
        }
        for text in ["", "-", "-0", "01", "+1", " 1", "1 ", "1.0", "9223372036854775808", "a"] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn doubles_have_seventeen_digits() {
        for (value, text) in [
            (1.0, "1"),
            (1.1, "1.1000000000000001"),
            (-0.5, "-0.5"),
            (1e17, "1e+17"),
            (12345678901234567.0, "12345678901234568"),
            (1e-5, "1.0000000000000001e-05"),
            (0.0001, "0.0001"),
            (1.7976931348623157e308, "1.7976931348623157e+308"),
            (f64::NEG_INFINITY, "-inf"),
            (-0.0, "-0"),
        ] {
            assert_eq!(format_double(value), text);
        }
        assert_eq!(parse_double(b"nan"), None);
        assert_eq!(parse_double(b"-inf"), Some(f64::NEG_INFINITY));
    }
}
