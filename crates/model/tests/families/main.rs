//! Families against their fixtures, as they are and with one thing changed.

mod configurations;
mod edits;
mod malformed;
mod refusals;
mod refusals_of_hybrids;
mod specs;
mod variants;
