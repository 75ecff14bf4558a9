//! Sums of decimal numbers as INCRBYFLOAT makes them: in the extended format of the x87, whose
//! mantissa has 64 bits, and shown with up to seventeen decimals. The same on every processor.

use super::number::{Hexadecimal, is_infinity};
use num_bigint::{BigInt, BigUint, Sign};

/// The bits of a mantissa.
const MANTISSA_BITS: u64 = 64;
/// The decimals that a sum has at most.
const DECIMALS: u32 = 17;
/// Powers of ten beyond this are no numbers of the format, or 0.
const EXPONENT_MAX: i64 = 4950;

/// A number: mantissa and a power of two.
#[derive(Clone, Debug)]
struct Extended {
    mantissa: BigInt,
    exponent: i64,
}

/// Rounds a quotient to an integer; a half to the even one.
fn divide(numerator: &BigUint, denominator: &BigUint) -> BigUint {
    let (quotient, rest) = (numerator / denominator, numerator % denominator);
    let twice = rest * 2u32;
    let is_up = twice > *denominator || twice == *denominator && quotient.bit(0);
    if is_up { quotient + 1u32 } else { quotient }
}

impl Extended {
    /// The nearest number of the format to `numerator / denominator`.
    fn rounded(sign: Sign, numerator: &BigUint, denominator: &BigUint) -> Extended {
        if numerator.bits() == 0 {
            return Extended { mantissa: BigInt::ZERO, exponent: 0 };
        }
        // The quotient gets 64 bits or one more, which the second rounding takes back: the first is
        // exact but for what it cuts off, so that it is repeated with the right shift.
        let mut shift = MANTISSA_BITS as i64 - (numerator.bits() as i64 - denominator.bits() as i64);
        loop {
            let quotient = match u64::try_from(shift) {
                Ok(left) => divide(&(numerator << left), denominator),
                Err(_) => divide(numerator, &(denominator << shift.unsigned_abs())),
            };
            if quotient.bits() <= MANTISSA_BITS {
                return Extended { mantissa: BigInt::from_biguint(sign, quotient), exponent: -shift };
            }
            shift -= 1;
        }
    }

    /// The number nearest to a decimal one; `None` if it is none, or too large.
    fn parse(text: &[u8]) -> Option<Extended> {
        if let Some(number) = Hexadecimal::parse(text) {
            return Extended::of_hexadecimal(&number);
        }
        let text = std::str::from_utf8(text).ok()?;
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (text, 0),
        };
        let (sign, unsigned) = match mantissa.strip_prefix('-') {
            Some(unsigned) => (Sign::Minus, unsigned),
            None => (Sign::Plus, mantissa.strip_prefix('+').unwrap_or(mantissa)),
        };
        let (whole, part) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = format!("{whole}{part}");
        if !digits.bytes().all(|digit| digit.is_ascii_digit()) || digits.len() > EXPONENT_MAX as usize {
            return None;
        }
        let value: BigUint = digits.parse().ok()?;
        let exponent = exponent.checked_sub(part.len() as i64)?;
        if exponent.unsigned_abs() > EXPONENT_MAX.unsigned_abs() {
            return (exponent < 0 || value.bits() == 0).then_some(Extended { mantissa: BigInt::ZERO, exponent: 0 });
        }
        let power = BigUint::from(10u32).pow(exponent.unsigned_abs() as u32);
        let one = BigUint::from(1u32);
        Some(if exponent < 0 {
            Extended::rounded(sign, &value, &power)
        } else {
            Extended::rounded(sign, &(value * power), &one)
        })
    }

    fn of_hexadecimal(number: &Hexadecimal) -> Option<Extended> {
        if number.digits.len() > EXPONENT_MAX as usize {
            return None;
        }
        let sign = if number.is_negative { Sign::Minus } else { Sign::Plus };
        let value = BigUint::parse_bytes(&number.digits, 16)?;
        if value.bits() == 0 {
            return Some(Extended { mantissa: BigInt::ZERO, exponent: 0 });
        }
        // The format ends at 2 to the power of 16384.
        let magnitude = number.exponent.checked_add(i64::try_from(value.bits()).ok()?)?;
        if magnitude.abs() > 16_384 {
            return None;
        }
        let power = BigUint::from(1u32) << number.exponent.unsigned_abs();
        Some(if number.exponent < 0 {
            Extended::rounded(sign, &value, &power)
        } else {
            Extended::rounded(sign, &(value * power), &BigUint::from(1u32))
        })
    }

    fn plus(&self, other: &Extended) -> Extended {
        let exponent = self.exponent.min(other.exponent);
        let scaled = |number: &Extended| &number.mantissa << (number.exponent - exponent).unsigned_abs();
        let sum = scaled(self) + scaled(other);
        let one = BigUint::from(1u32);
        let (sign, magnitude) = (sum.sign(), sum.magnitude());
        let power = &one << exponent.unsigned_abs();
        if exponent < 0 {
            Extended::rounded(sign, magnitude, &power)
        } else {
            Extended::rounded(sign, &(magnitude * power), &one)
        }
    }

    /// With up to seventeen decimals.
    fn format(&self) -> String {
        let scaled = self.mantissa.magnitude() * BigUint::from(10u32).pow(DECIMALS);
        let power = BigUint::from(1u32) << self.exponent.unsigned_abs();
        let units = if self.exponent < 0 { divide(&scaled, &power) } else { scaled * power };
        let digits = format!("{:0>width$}", units.to_string(), width = DECIMALS as usize + 1);
        let (whole, part) = digits.split_at(digits.len() - DECIMALS as usize);
        let part = part.trim_end_matches('0');
        let sign = if self.mantissa.sign() == Sign::Minus { "-" } else { "" };
        let point = if part.is_empty() { "" } else { "." };
        // A negative number that is shown as zero is one.
        if whole == "0" && part.is_empty() { "0".into() } else { format!("{sign}{whole}{point}{part}") }
    }
}

/// The sum of two decimal numbers as text. `None` if one of them is no number, or too large for the
/// format; the second field is false if the sum is infinite.
pub fn add_decimals(first: &[u8], second: &[u8]) -> Option<(String, bool)> {
    super::number::parse_any_double(first)?;
    super::number::parse_any_double(second)?;
    if is_infinity(first) || is_infinity(second) {
        return Some(("inf".into(), false));
    }
    let (a, b) = (Extended::parse(first)?, Extended::parse(second)?);
    let sum = a.plus(&b);
    Some((sum.format(), true))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a program in C prints the sums of its `long double` on x86-64.
    #[test]
    fn sums_have_sixty_four_bits() {
        for (a, b, sum) in [
            ("10.5", "0.1", "10.6"),
            ("5.0e3", "2.0e2", "5200"),
            ("1", "-1", "0"),
            ("-1.5", "1", "-0.5"),
            ("3", "1.23", "4.23"),
            ("313.5", "-0.1", "313.39999999999999999"),
            ("10000000000", "0.3", "10000000000.29999999981373549"),
            ("1e21", "0", "1000000000000000000000"),
            ("1e-30", "0", "0"),
            ("-1e-30", "0", "0"),
            ("1e-99999", "1", "1"),
            ("1e-9223372036854775808", "1", "1"),
            (".5", "1.", "1.5"),
        ] {
            assert_eq!(add_decimals(a.as_bytes(), b.as_bytes()), Some((sum.to_string(), true)), "{a} + {b}");
        }
        assert_eq!(add_decimals(b"a", b"1"), None);
        // As many digits as a client sends are not worked with, decimal or not.
        for long in ["1.", "0x1."].map(|start| format!("{start}{}", "0".repeat(100_000))) {
            assert_eq!(add_decimals(long.as_bytes(), b"1"), None);
        }
        assert_eq!(add_decimals(b"inf", b"1").map(|sum| sum.1), Some(false));
    }
}
