//! Where in the program's file a constant lies.
//!
//! Invariant: what is found is a guess (the file may have been replaced since the program started); who reads there has to verify it.

use std::fs::File;
use std::io::Read;
#[cfg(target_os = "linux")]
use std::io::{Seek, SeekFrom};

/// A reader of the program's file that stands at `bytes`; `None` where the system doesn't tell.
#[cfg(target_os = "linux")]
pub(crate) fn in_file(bytes: &'static [u8]) -> Option<impl Read> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let offset = maps.lines().find_map(|line| offset(line, bytes.as_ptr() as u64))?;
    let mut file = File::open("/proc/self/exe").ok()?;
    file.seek(SeekFrom::Start(offset)).ok()?;
    Some(file)
}

/// A reader of the program's file that stands at `bytes`: not known here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn in_file(_bytes: &'static [u8]) -> Option<impl Read> {
    None::<File>
}

/// The offset of `address` in the file that a line of `/proc/self/maps` maps there: `start-end permissions offset …`, in hexadecimal.
#[cfg(target_os = "linux")]
fn offset(line: &str, address: u64) -> Option<u64> {
    let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
    let from = hexadecimal(fields.nth(1)?)?;
    (start..end).contains(&address).then(|| from + (address - start))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    static MARK: &[u8] = b"a constant that is found in the program's own file";

    #[test]
    fn a_constant_is_read_from_the_file() {
        let mut read = vec![0; MARK.len()];
        in_file(MARK).expect("the system tells").read_exact(&mut read).unwrap();
        assert_eq!(read, MARK);
    }

    #[test]
    fn lines_of_other_addresses_and_shapes_are_passed_over() {
        let line = "5500-5600 r-xp 00000200 fe:00 12 /bin/x";
        assert_eq!(offset(line, 0x5510), Some(0x210));
        assert_eq!([offset(line, 0x5600), offset("", 1), offset("55-x r-xp 0", 0x55)], [None; 3]);
    }
}
