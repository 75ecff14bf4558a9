//! Figures as text, the same way everywhere on the page.

/// What stands where there is no figure: an en dash.
pub const ABSENT: &str = "\u{2013}";

/// A whole number with a comma after every third digit: `1,234,567`.
pub fn whole(value: f64) -> String {
    if !value.is_finite() {
        return ABSENT.to_string();
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if value <= -0.5 {
        text.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A figure with as many decimals as the first limit above it has; from the last one on a whole
/// number.
fn by_size(value: f64, decimals: &[(f64, usize)]) -> String {
    match decimals.iter().find(|(limit, _)| value.abs() < *limit) {
        Some((_, decimals)) => format!("{value:.decimals$}"),
        None => whole(value),
    }
}

/// A figure with about four significant digits: `0.272`, `2.718`, `27.18`, `271.8`, `2,718`.
pub fn figure(value: f64) -> String {
    by_size(value, &[(10.0, 3), (100.0, 2), (1000.0, 1)])
}

/// A latency in microseconds with about three significant digits, since its buckets are no finer.
pub fn latency(micros: f64) -> String {
    by_size(micros, &[(10.0, 2), (100.0, 1)])
}

/// About three significant digits, for a table of a terminal: `0.272`, `2.72`, `27.2`, `2718`.
pub fn short(value: f64) -> String {
    match value {
        large if large >= 100.0 => format!("{large:.0}"),
        middle if middle >= 10.0 => format!("{middle:.1}"),
        small if small >= 1.0 => format!("{small:.2}"),
        tiny => format!("{tiny:.3}"),
    }
}

/// A figure with three significant digits, whole and large ones without decimals, for a sentence:
/// `0.00061`, `3.16`, `19`, `105,892`.
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "-".into(),
        size if size < 1000.0 && size.fract() == 0.0 => format!("{value:.0}"),
        size if size < 0.1 => {
            let digits = (2.0 - size.log10().floor()).clamp(0.0, 12.0) as usize;
            format!("{value:.digits$}")
        }
        _ => by_size(value, &[(10.0, 2), (100.0, 1), (1000.0, 0)]),
    }
}

/// A ratio: `2.31x` with a multiplication sign.
pub fn ratio(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => ABSENT.to_string(),
        size if size < 0.01 => format!("{}\u{d7}", format!("{value:.5}").trim_end_matches('0').trim_end_matches('.')),
        _ => by_size(value, &[(0.1, 3), (10.0, 2), (100.0, 1)]) + "\u{d7}",
    }
}

/// The ends of an interval of a ratio.
pub fn interval((low, high): (f64, f64)) -> String {
    format!("{} to {}", ratio(low), ratio(high))
}

/// A value in the first of these units that it is at least 1 of, the largest first; as it is if it
/// is less than any.
fn in_unit<'u>(value: f64, units: &[(f64, &'u str)], least: &'u str) -> (f64, &'u str) {
    let unit = units.iter().find(|(size, _)| value.abs() >= *size);
    unit.map_or((value, least), |(size, name)| (value / size, name))
}

/// A number of bytes in the largest binary unit that keeps it at 1 or more: `4 KiB`, `1.50 GiB`.
pub fn bytes(value: f64) -> String {
    const KIB: f64 = 1024.0;
    const MIB: f64 = KIB * KIB;
    const UNITS: [(f64, &str); 5] =
        [(MIB * MIB * KIB, "PiB"), (MIB * MIB, "TiB"), (MIB * KIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")];
    if !value.is_finite() {
        return ABSENT.to_string();
    }
    let (scaled, unit) = in_unit(value, &UNITS, "B");
    let decimals = match scaled {
        whole if whole.fract() == 0.0 || whole >= 100.0 => 0,
        large if large >= 10.0 => 1,
        _ => 2,
    };
    format!("{scaled:.decimals$} {unit}")
}

/// A number with a metric suffix, short enough for an axis: `20 k`, `1.5 M`.
pub fn metric(value: f64) -> String {
    let (scaled, suffix) = in_unit(value, &[(1e9, " G"), (1e6, " M"), (1e3, " k")], "");
    format!("{}{suffix}", trimmed(scaled))
}

/// A duration given in microseconds, in the unit that suits an axis.
pub fn duration(micros: f64) -> String {
    let (scaled, unit) = in_unit(micros, &[(1e6, "s"), (1e3, "ms")], "\u{b5}s");
    format!("{} {unit}", trimmed(scaled))
}

/// A number with at most three decimals and no trailing zeros.
pub fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_grouped_by_three() {
        assert_eq!(whole(0.0), "0");
        assert_eq!(whole(999.4), "999");
        assert_eq!(whole(1_234_567.0), "1,234,567");
        assert_eq!(whole(-1234.0), "-1,234");
        assert_eq!(whole(f64::NAN), ABSENT);
    }

    #[test]
    fn figures_keep_their_significant_digits() {
        assert_eq!(figure(0.2718), "0.272");
        assert_eq!(figure(27.182), "27.18");
        assert_eq!(figure(271.82), "271.8");
        assert_eq!(figure(27_182.0), "27,182");
        assert_eq!(latency(3.4567), "3.46");
        assert_eq!(latency(1234.5), "1,234");
        assert_eq!(ratio(2.3049), "2.30\u{d7}");
        assert_eq!(
            (ratio(0.003), ratio(0.000128), ratio(0.0)),
            ("0.003\u{d7}".into(), "0.00013\u{d7}".into(), "0\u{d7}".into())
        );
    }

    #[test]
    fn figures_in_sentences_keep_three_digits() {
        assert_eq!(three_digits(0.000128), "0.000128");
        assert_eq!(three_digits(0.0609), "0.0609");
        assert_eq!(three_digits(3.1612), "3.16");
        assert_eq!(
            (three_digits(19.0), three_digits(0.0), three_digits(-2.5)),
            ("19".into(), "0".into(), "-2.50".into())
        );
        assert_eq!(three_digits(105_892.3), "105,892");
        assert_eq!(three_digits(f64::NAN), "-");
    }

    #[test]
    fn units_follow_the_size() {
        assert_eq!(bytes(512.0), "512 B");
        assert_eq!(bytes(4096.0), "4 KiB");
        assert_eq!(bytes(1.5 * 1024.0 * 1024.0 * 1024.0), "1.50 GiB");
        assert_eq!(metric(20_000.0), "20 k");
        assert_eq!(metric(1_500_000.0), "1.5 M");
        assert_eq!(duration(1500.0), "1.5 ms");
        assert_eq!(duration(20.0), "20 \u{b5}s");
    }
}
