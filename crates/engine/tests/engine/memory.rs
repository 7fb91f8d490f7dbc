//! Memory follows use: the KV cache takes what its positions need.

use turbospark_engine::{EngineOptions, KvKind};

use crate::fixtures::open;

#[test]
fn kv_bytes_are_layers_times_heads_times_two_widths() {
    for (kv, bytes) in [(KvKind::F16, 2), (KvKind::F32, 4)] {
        let engine = open("llama-a-f32.gguf", EngineOptions { kv, ..EngineOptions::default() });
        // Four layers, two KV heads of 32 for keys and values; pages of 64 positions.
        let position = 4 * 2 * (32 + 32) * bytes;
        assert_eq!(engine.kv_bytes(0), 0);
        assert_eq!(engine.kv_bytes(64), 64 * position);
        assert_eq!(engine.kv_bytes(65), 128 * position);
    }
}
