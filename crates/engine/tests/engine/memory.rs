//! Memory follows use: the KV cache takes what its positions need, and layers that see only so far take only so much.

use turbospark_engine::{Engine, EngineOptions, KvKind};
use turbospark_model::{KeyValues, Mixer};

use crate::fixtures::{open, small};

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

/// Elements that a further position adds to the layers that see all positions, and layers that see only so far.
fn growth(engine: &Engine) -> (u64, usize) {
    let (mut elements, mut bounded) = (0, 0);
    for layer in &engine.spec().layers {
        match &layer.mixer {
            Mixer::Attention(a) if matches!(a.kv, KeyValues::OfLayer(_)) => {}
            Mixer::Attention(a) if a.window.is_some() => bounded += 1,
            Mixer::Attention(a) => elements += a.n_kv_heads * (a.head_dim + a.v_dim),
            Mixer::Latent(a) => elements += (a.rank + a.rope_dim).next_multiple_of(8),
            Mixer::Delta(_) => bounded += 1,
        }
    }
    (elements as u64, bounded)
}

#[test]
fn only_layers_that_see_everything_grow_with_the_context() {
    let mut models = 0;
    for file in small() {
        let options = EngineOptions { prefill_chunk: Some(64), ..EngineOptions::default() };
        let engine = open(file, options);
        let (elements, bounded) = growth(&engine);
        models += usize::from(bounded > 0);
        // Half precision; past windows, what is kept to go back, and a chunk.
        let [short, long] = [512, 512 << 10].map(|positions| engine.kv_bytes(positions));
        assert_eq!(long - short, 2 * elements * ((512 << 10) - 512), "{file}");
    }
    assert!(models >= 7, "{models} models have windowed or recurrent layers");
}
