//! A reader over the bytes of a header that cannot leave them.
//!
//! Invariant: every read is checked against what is left, and nothing is allocated for a count before the bytes that
//! the count needs at the least are known to be there.

use crate::Fault;

/// The specification's limit for keys. It keeps names, which errors repeat, of a readable size.
pub(super) const MAX_NAME: usize = 65_535;

/// A fault and the byte at which the faulty field begins.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) offset: u64,
    pub(super) fault: Fault,
}

pub(super) type Parsed<T> = Result<T, Located>;

pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// What is being read, for messages.
    pub(super) section: String,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, section: "the header".to_owned() }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// An error about the field that begins `back` bytes before the present position.
    pub(super) fn fail<T>(&self, back: usize, fault: impl FnOnce(String) -> Fault) -> Parsed<T> {
        Err(Located { offset: (self.at - back) as u64, fault: fault(self.section.clone()) })
    }

    pub(super) fn take(&mut self, len: u64) -> Parsed<&'a [u8]> {
        match usize::try_from(len) {
            Ok(n) if n <= self.left() => {
                let taken = &self.bytes[self.at..self.at + n];
                self.at += n;
                Ok(taken)
            }
            _ => {
                let left = self.left() as u64;
                self.fail(0, |section| Fault::Truncated { section, needed: len, left })
            }
        }
    }

    pub(super) fn array<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        let taken = self.take(N as u64)?;
        let mut array = [0; N];
        array.copy_from_slice(taken);
        Ok(array)
    }

    pub(super) fn u32(&mut self) -> Parsed<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Parsed<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A count of entries of at least `min_bytes` each.
    pub(super) fn count(&mut self, min_bytes: usize) -> Parsed<usize> {
        let count = self.u64()?;
        match usize::try_from(count).ok().and_then(|n| Some((n, n.checked_mul(min_bytes)?))) {
            Some((n, bytes)) if bytes <= self.left() => Ok(n),
            _ => {
                let left = self.left() as u64;
                self.fail(8, |section| Fault::Count { section, count, left })
            }
        }
    }

    pub(super) fn str(&mut self) -> Parsed<&'a str> {
        let len = self.u64()?;
        let bytes = self.take(len)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text),
            Err(_) => self.fail(bytes.len(), |section| Fault::NotUtf8 { section }),
        }
    }

    /// The name of a key or a tensor.
    pub(super) fn name(&mut self) -> Parsed<&'a str> {
        let name = self.str()?;
        match name.len() {
            0 => self.fail(8, |section| Fault::EmptyName { section }),
            1..=MAX_NAME => Ok(name),
            len => self.fail(len + 8, |section| Fault::LongName { section, len, limit: MAX_NAME }),
        }
    }
}
