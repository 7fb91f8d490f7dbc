//! The seam between the driver, which finds where calls begin, and the parsers, which read them.

use super::{events::Sink, marker::Context};

/// Longest name, key or id that is read; what is longer is no call.
pub(super) const MAX_NAME: usize = 256;

/// What a character did to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The calls go on.
    More,
    /// The character ended the calls.
    Done,
    /// The calls had ended before the character, which is not part of them.
    DoneBefore,
    /// This is no call, or no valid one.
    Fail(&'static str),
}

/// Reads what follows a marker that opens calls. Every call that it begins it ends, or it fails.
pub(super) trait CallParser: std::fmt::Debug + Send {
    /// Takes a character.
    fn feed(&mut self, c: char, cx: &Context, sink: &mut Sink) -> Step;

    /// Ends the input: `Done` if nothing is missing but markers that close.
    fn finish(&mut self, cx: &Context, sink: &mut Sink) -> Step;
}
