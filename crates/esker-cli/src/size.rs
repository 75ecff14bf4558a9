//! Numbers of bytes as people write them.

/// A number of bytes with or without a unit.
pub fn size(text: &str) -> Result<usize, String> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let shift = match unit {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return Err("use a number of bytes, or one with KiB, MiB or GiB".into()),
    };
    let number: usize = number.parse().map_err(|_| "use a whole number, as in 64MiB".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "the size is too large".into())
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_units() {
        assert_eq!([size("0"), size("7B"), size("64MiB"), size("3KiB")], [Ok(0), Ok(7), Ok(64 << 20), Ok(3 << 10)]);
        for wrong in ["", "MiB", "-1", "1.5GiB", "64MB", "99999999999GiB", "99999999999999999999999"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
