//! One file per command: from its arguments to what it prints.

pub(crate) mod bench;
pub(crate) mod chat;
pub(crate) mod eval;
pub(crate) mod inspect;
pub(crate) mod pages;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod trace;
