//! The forward pass, KV cache, sampling and sessions.
