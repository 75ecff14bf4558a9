//! The numbers in the names of files.

/// Numbers of files and log segments are below this: counting on from one cannot overflow.
pub const MAX_NUMBER: u64 = 1 << 56;

/// The number as it stands in a name.
pub fn to_digits(number: u64) -> String {
    format!("{number:06}")
}

/// The number that stands in a name with these digits. Only the digits that are written for it: a
/// name with more zeroes, or a sign, is that of another file.
pub fn of_digits(digits: &str) -> Option<u64> {
    digits.parse().ok().filter(|&number| number < MAX_NUMBER && to_digits(number) == digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_and_a_number_one_name() {
        for number in [0, 1, 999_999, 1_000_000, MAX_NUMBER - 1] {
            assert_eq!(of_digits(&to_digits(number)), Some(number));
        }
        let most = MAX_NUMBER.to_string();
        let beyond = u64::MAX.to_string();
        for other in ["", "7", "0000007", "+00007", "-00007", "00000x", " 00007", "01000000", &most, &beyond] {
            assert_eq!(of_digits(other), None, "{other:?}");
        }
    }
}
