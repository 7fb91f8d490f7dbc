//! The byte alphabet of byte-level BPE: every byte has a printable character, so that pieces can be written as text.
//!
//! Bytes that are printable in Latin-1 stand for themselves; the other 68 take the characters from U+0100 on, in byte
//! order (Radford et al. 2019, the GPT-2 encoder).

/// Byte of each character below U+0180, or -1.
const BYTE_OF: [i16; 0x180] = {
    let mut table = [-1i16; 0x180];
    let mut next = 0x100;
    let mut byte = 0usize;
    while byte < 256 {
        if (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae {
            table[byte] = byte as i16;
        } else {
            table[next] = byte as i16;
            next += 1;
        }
        byte += 1;
    }
    table
};

/// Appends the bytes that `piece` stands for; a piece with a character outside of the alphabet stands for its own UTF-8.
pub(crate) fn unmap(piece: &str, out: &mut Vec<u8>) {
    let start = out.len();
    for c in piece.chars() {
        match BYTE_OF.get(c as usize) {
            Some(&byte) if byte >= 0 => out.push(byte as u8),
            _ => {
                out.truncate(start);
                out.extend_from_slice(piece.as_bytes());
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_and_newline_have_their_published_characters() {
        let mut out = Vec::new();
        unmap("ĠĊĉaÃ©", &mut out);
        assert_eq!(out, [b' ', b'\n', b'\t', b'a', 0xc3, 0xa9]);
    }

    #[test]
    fn every_byte_has_exactly_one_character() {
        let mut seen = [0; 256];
        BYTE_OF.iter().filter(|&&b| b >= 0).for_each(|&b| seen[b as usize] += 1);
        assert!(seen.iter().all(|&n| n == 1));
    }

    #[test]
    fn a_piece_outside_of_the_alphabet_is_literal() {
        let mut out = b"x".to_vec();
        unmap("a▁", &mut out);
        assert_eq!(out, "xa▁".as_bytes());
    }
}
