//! The whole blocks around the bytes that are wanted.
//!
//! Invariant: a window covers its bytes, begins and ends at whole blocks, and no block of it is needless. It does not
//! depend on how files were opened, so slots are laid out once, whatever reads them.

use smallvec::SmallVec;

use super::{ReadPart, Segment};

/// Bytes of a block: reads begin, end and land at whole blocks. Disks ask for 512 or 4,096, and a page is as much; a file
/// that asks for more is read through the page cache.
pub const BLOCK: usize = 4096;

/// What has to be read to have some bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Offset in the file of the first block.
    pub start: u64,
    /// Bytes of all blocks: the room that a read needs. At the file's end the last block may be filled in part only.
    pub len: usize,
    /// Where in the window the wanted bytes begin.
    pub skip: usize,
}

impl Window {
    /// The window around `len` bytes at `offset`.
    pub fn of(offset: u64, len: usize) -> Window {
        let skip = (offset % BLOCK as u64) as usize;
        Window { start: offset - skip as u64, len: (skip + len).next_multiple_of(BLOCK), skip }
    }
}

/// Where segments go that share a slot: each with the place of its window in the slot, and the window.
pub(crate) fn laid_out(segments: &[Segment]) -> impl Iterator<Item = (Segment, usize, Window)> + '_ {
    let mut at = 0;
    segments.iter().map(move |&segment| {
        let window = Window::of(segment.offset, segment.len);
        let place = at;
        at += window.len;
        (segment, place, window)
    })
}

/// Bytes of a slot that holds them.
pub(crate) fn room_for(segments: &[Segment]) -> usize {
    laid_out(segments).map(|(_, _, window)| window.len).sum()
}

/// What has to be read to have them in `slot`.
pub(crate) fn parts_of(segments: &[Segment], slot: usize) -> SmallVec<[ReadPart; 3]> {
    let part = |(segment, at, _): (Segment, usize, Window)| ReadPart {
        file: segment.file,
        offset: segment.offset,
        len: segment.len,
        slot,
        at,
    };
    laid_out(segments).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_window_is_the_fewest_blocks_that_cover_its_bytes(offset in 0_u64..1 << 40, len in 1_usize..1 << 24) {
            let window = Window::of(offset, len);
            prop_assert!(window.start.is_multiple_of(BLOCK as u64) && window.len.is_multiple_of(BLOCK));
            prop_assert_eq!(window.start + window.skip as u64, offset);
            prop_assert!(window.skip < BLOCK);
            let spare = window.len - window.skip - len;
            prop_assert!(spare < BLOCK);
        }
    }
}
