//! Small forms of output that commands share.

use std::io::{self, Write};

use serde::Serialize;

/// Prints `value` as indented JSON and a line end.
pub(crate) fn json(value: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)
}

/// Prints a line.
pub(crate) fn line(text: &str) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{text}")
}

/// Bytes for people: `98.4 MB`.
pub(crate) fn bytes(n: u64) -> String {
    let (mut x, mut unit) = (n as f64, "bytes");
    for next in ["kB", "MB", "GB", "TB"] {
        if x < 1000.0 {
            break;
        }
        x /= 1000.0;
        unit = next;
    }
    if unit == "bytes" { format!("{n} bytes") } else { format!("{x:.1} {unit}") }
}

/// A count with its thousands apart: `262,144`.
pub(crate) fn count(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts_read_well() {
        assert_eq!([bytes(0), bytes(999), bytes(98_362_432)], ["0 bytes", "999 bytes", "98.4 MB"]);
        assert_eq!([count(7), count(1000), count(262_144)], ["7", "1,000", "262,144"]);
    }
}
