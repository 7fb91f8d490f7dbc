//! Sizes of memory as people write them.

/// The bytes of `4GiB`, `4G`, `512M`, `4096MB` or `1.5GiB`: a letter alone counts in powers of 1,024, as with `B` only in powers
/// of 1,000. A number alone is bytes.
///
/// # Errors
/// What would have been understood.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let expected = || "expected a size as 4GiB, 512M or 4096MB".to_owned();
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim_start().to_ascii_lowercase();
    let (prefix, base) = match unit.as_str() {
        "" | "b" => ("", 1),
        "k" | "m" | "g" | "t" => (unit.as_str(), 1024),
        _ => match (unit.strip_suffix("ib"), unit.strip_suffix('b')) {
            (Some(prefix), _) => (prefix, 1024),
            (None, Some(prefix)) => (prefix, 1000),
            (None, None) => return Err(expected()),
        },
    };
    let power = ["", "k", "m", "g", "t"].iter().position(|p| *p == prefix).ok_or_else(expected)?;
    let factor = u64::pow(base, power as u32);
    if !number.contains('.') {
        let whole: u64 = number.parse().map_err(|_| expected())?;
        return whole.checked_mul(factor).filter(|&n| n > 0).ok_or_else(expected);
    }
    let number: f64 = number.parse().map_err(|_| expected())?;
    let bytes = number * factor as f64;
    if bytes >= 1.0 && bytes < u64::MAX as f64 { Ok(bytes as u64) } else { Err(expected()) }
}

/// Bytes with one decimal of MiB: `1,234.5 MiB`.
pub(crate) fn mib(bytes: u64) -> String {
    let tenths = (u128::from(bytes) * 10).div_ceil(1 << 20);
    format!("{}.{} MiB", crate::output::count((tenths / 10) as usize), tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_written() {
        for (text, bytes) in [
            ("4GiB", 4 << 30),
            ("4G", 4 << 30),
            ("4g", 4 << 30),
            ("512M", 512 << 20),
            ("4096MB", 4_096_000_000),
            ("4GB", 4_000_000_000),
            ("1.5GiB", 3 << 29),
            (" 2 TiB ", 2 << 40),
            ("64k", 64 << 10),
            ("1000000", 1_000_000),
            ("7b", 7),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "",
            "G",
            "4X",
            "4GiBs",
            "-4G",
            "0",
            "0G",
            ".",
            "1.2.3G",
            "99999999999T",
            "1e9",
            "0.0000001K",
            "4 G B",
            "∞",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shown_sizes_round_up() {
        assert_eq!(
            [mib(0), mib(1), mib(1 << 20), mib((1234 << 20) + 1)],
            ["0.0 MiB", "0.1 MiB", "1.0 MiB", "1,234.1 MiB"]
        );
    }
}
