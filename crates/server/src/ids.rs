//! Identifiers and seeds that nobody guesses or meets twice.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

/// 64 random bits.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// `prefix` and 24 random characters.
pub fn new(prefix: &str) -> String {
    format!("{prefix}{:016x}{:08x}", random(), random() as u32)
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs())
}
