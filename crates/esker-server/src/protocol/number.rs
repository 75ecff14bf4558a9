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

/// A floating-point number, decimal or, behind `0x`, hexadecimal; no NaN, no spaces around it, and
/// none that is too large or too small for the format.
pub fn parse_double(text: &[u8]) -> Option<f64> {
    let value = parse_any_double(text)?;
    let is_zero = || {
        let is_exponent = |byte: &u8| b"eEpP".contains(byte);
        let mantissa = text.split(|byte| is_exponent(byte)).next().unwrap_or_default();
        mantissa.iter().all(|byte| b"+-.0xX".contains(byte))
    };
    let is_exact =
        if value.is_infinite() { is_infinity(text) } else { value != 0.0 || is_hexadecimal(text) || is_zero() };
    is_exact.then_some(value)
}

/// The same, where one that is too large is infinite, and one that is too small is 0.
pub fn parse_any_double(text: &[u8]) -> Option<f64> {
    if is_hexadecimal(text) {
        return Hexadecimal::parse(text).map(|number| number.double());
    }
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    if value.is_nan() { None } else { Some(value) }
}

/// Whether a number is infinite in words, and not by its size.
pub fn is_infinity(text: &[u8]) -> bool {
    text.iter().any(|byte| byte.eq_ignore_ascii_case(&b'i'))
}

fn is_hexadecimal(text: &[u8]) -> bool {
    matches!(text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text), [b'0', b'x' | b'X', ..])
}

/// A number in hexadecimal digits: `0x`, digits with a point, and a power of two behind `p`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hexadecimal {
    /// Whether it is below zero.
    pub is_negative: bool,
    /// The digits without the point.
    pub digits: Vec<u8>,
    /// The power of two that they are multiplied by.
    pub exponent: i64,
}

impl Hexadecimal {
    /// The number in the text.
    pub fn parse(text: &[u8]) -> Option<Hexadecimal> {
        /// Beyond this a number is infinite or 0 in every format.
        const EXPONENT_MAX: i64 = 1 << 20;
        let is_negative = text.first() == Some(&b'-');
        let text = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
        let [b'0', b'x' | b'X', rest @ ..] = text else { return None };
        let mut parts = rest.splitn(2, |byte| byte.eq_ignore_ascii_case(&b'p'));
        let mantissa = parts.next()?;
        let exponent = match parts.next() {
            None => 0,
            Some(exponent) => std::str::from_utf8(exponent).ok()?.parse::<i64>().ok()?,
        };
        let mut halves = mantissa.splitn(2, |byte| *byte == b'.');
        let (whole, part) = (halves.next()?, halves.next().unwrap_or_default());
        let digits = [whole, part].concat();
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
        let exponent = exponent.clamp(-EXPONENT_MAX, EXPONENT_MAX) - 4 * i64::try_from(part.len()).ok()?;
        is_number.then_some(Hexadecimal { is_negative, digits, exponent })
    }

    /// The nearest number of the format.
    fn double(&self) -> f64 {
        /// The mantissa has this many bits; of the digits after them only whether all are 0 counts.
        const FULL: u64 = 1 << 59;
        let (mut mantissa, mut exponent, mut has_rest) = (0u64, self.exponent, false);
        for digit in &self.digits {
            let digit = char::from(*digit).to_digit(16).unwrap_or(0);
            if mantissa < FULL {
                mantissa = mantissa * 16 + u64::from(digit);
            } else {
                exponent += 4;
                has_rest |= digit > 0;
            }
        }
        let exponent = exponent.clamp(-4096, 4096) as i32;
        // In steps, each of which is a power that there is.
        let (half, quarter) = (exponent / 2, exponent / 4);
        let powers = [quarter, half - quarter, (exponent - half) / 2, exponent - half - (exponent - half) / 2];
        let value =
            powers.iter().fold((mantissa | u64::from(has_rest)) as f64, |value, power| value * 2f64.powi(*power));
        if self.is_negative { -value } else { value }
    }
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
        for (text, value) in [
            ("0x1F", Some(31.0)),
            ("-0X10", Some(-16.0)),
            ("0x1.8p3", Some(12.0)),
            ("0x.8", Some(0.5)),
            ("0x1p-1074", Some(5e-324)),
            ("0x1.00000000000008000000001", Some(1.0 + f64::EPSILON)),
            ("0x0", Some(0.0)),
            ("0x", None),
            ("0x1p", None),
            ("0xg", None),
            ("0x1.2.3", None),
            ("0x1p99999", None),
            ("1e400", None),
            ("-1e400", None),
            ("1e-400", None),
            ("0e5", Some(0.0)),
            ("-0.0", Some(-0.0)),
            ("+5", Some(5.0)),
            ("infinity", Some(f64::INFINITY)),
        ] {
            assert_eq!(parse_double(text.as_bytes()), value, "{text}");
        }
        assert_eq!(parse_any_double(b"1e400"), Some(f64::INFINITY));
        assert_eq!(parse_any_double(b"1e-400"), Some(0.0));
        assert_eq!(parse_double(b"-inf"), Some(f64::NEG_INFINITY));
    }
}
