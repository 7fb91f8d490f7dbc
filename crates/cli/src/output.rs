//! Small forms of output that commands share.

use std::io::{self, Write};

use serde::Serialize;

/// Bytes of a message that are shown.
const LONGEST_MESSAGE: usize = 4000;

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

/// Prints a line on standard error; where nobody can read it, that is no failure of the command.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// A message that may quote a file, fit for a terminal: control characters escaped, and the middle of an endless one left
/// out.
pub(crate) fn plain(text: &str) -> String {
    let (mut start, mut end) = (text.len(), text.len());
    if text.len() > LONGEST_MESSAGE {
        let boundary = |at: usize| (0..=at).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        (start, end) = (boundary(LONGEST_MESSAGE / 2), boundary(text.len() - LONGEST_MESSAGE / 2));
    }
    let gap = if start < end { " … " } else { "" };
    let mut out = String::with_capacity(text.len().min(LONGEST_MESSAGE));
    for c in [&text[..start], gap, &text[end..]].into_iter().flat_map(str::chars) {
        if c.is_control() && c != '\n' { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
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
    fn messages_keep_lines_and_lose_control_characters_and_length() {
        assert_eq!(plain("a\n\u{1b}[2Jé"), "a\n\\u{1b}[2Jé");
        let long = plain(&format!("start{}end", "é".repeat(100_000)));
        assert!(
            long.len() < 5000 && long.starts_with("start") && long.contains('…') && long.ends_with("end")
        );
        let edge = "x".repeat(LONGEST_MESSAGE);
        assert_eq!(plain(&edge), edge);
    }

    #[test]
    fn sizes_and_counts_read_well() {
        assert_eq!([bytes(0), bytes(999), bytes(98_362_432)], ["0 bytes", "999 bytes", "98.4 MB"]);
        assert_eq!([count(7), count(1000), count(262_144)], ["7", "1,000", "262,144"]);
    }
}
