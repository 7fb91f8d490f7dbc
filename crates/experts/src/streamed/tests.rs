//! What comes out of a cache is each expert's own bytes, once, whatever is hinted, cancelled or broken.

use std::fs::OpenOptions;
use std::path::Path;

use turbospark_format::{BlockType, GgufWriter};

use super::*;
use crate::read::{Engine, Files, IoMode, Method};
use crate::{CacheShape, LayerExperts, Phase, PolicyKind, WINDOW};

const LAYERS: usize = 3;
const EXPERTS: usize = 6;
/// Floats of an expert's part: more than a block, and no whole number of them.
const WIDTH: usize = 1500;

/// A file of three layers with two tensors an expert each; every float says where it belongs.
fn write(path: &Path) {
    let mut writer = GgufWriter::new();
    for layer in 0..LAYERS {
        for part in 0..2 {
            let values = (0..EXPERTS * WIDTH).map(|i| (layer * 100 + part * 10 + i / WIDTH) as f32);
            let bytes: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
            writer.tensor(format!("{layer}.{part}"), &[WIDTH, 1, EXPERTS], BlockType::F32, bytes);
        }
    }
    writer.write_file(path).unwrap();
}

struct Model {
    folder: tempfile::TempDir,
    streamed: Streamed,
}

fn model(cached: usize, ahead: usize) -> Model {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    write(&path);
    let gguf = Arc::new(Gguf::open(&path).unwrap());
    let layers =
        (0..LAYERS).map(|l| Some(LayerExperts { n_experts: EXPERTS, tensors: vec![2 * l, 2 * l + 1] }));
    let layout = ExpertLayout::new(&gguf, layers.collect()).unwrap();
    let slots = Slots::new(cached + ahead, layout.slot_bytes(&gguf)).unwrap();
    let files = Files::open(gguf.paths(), IoMode::Auto).unwrap();
    let reader = Method { engine: Engine::Threads(2), request_bytes: 4096 }.open(&files, &slots).unwrap();
    let shape = CacheShape { layers: LAYERS, experts: EXPERTS, slots: cached };
    let core = CacheCore::new(shape, WINDOW, PolicyKind::default().build(shape));
    Model { folder, streamed: Streamed::new(gguf, layout, slots, reader, core) }
}

fn batch(layer: u32, experts: &[u32]) -> RouteBatch<'_> {
    const ONES: [u32; EXPERTS] = [1; EXPERTS];
    RouteBatch { phase: Phase::Decode, layer, n_rows: 1, experts, rows: &ONES[..experts.len()] }
}

/// Asks for experts and takes all waves; each expert has to come once, with its own bytes. Returns the number of waves.
fn take(streamed: &mut Streamed, layer: u32, experts: &[u32]) -> Result<usize, ExpertError> {
    streamed.request(&batch(layer, experts))?;
    let (mut seen, mut waves) = (Vec::new(), 0);
    while let Some(wave) = streamed.next(&|| false)? {
        waves += 1;
        for (i, &index) in wave.indices().iter().enumerate() {
            seen.push(experts[index]);
            for part in 0..2 {
                let expected = (layer * 100 + part * 10 + experts[index]) as f32;
                let bytes = wave.part(i, part as usize);
                assert_eq!(bytes.len(), 4 * WIDTH);
                assert!(bytes.chunks(4).all(|b| f32::from_le_bytes(b.try_into().unwrap()) == expected));
            }
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, experts);
    Ok(waves)
}

#[test]
fn every_expert_comes_once_with_its_own_bytes_whatever_the_cache() {
    for cached in [1, 2, 5, LAYERS * EXPERTS] {
        for ahead in [0, 1, 3] {
            let Model { mut streamed, .. } = model(cached, ahead);
            for round in 0..20_u32 {
                for layer in 0..LAYERS as u32 {
                    let experts: Vec<u32> = (0..6).filter(|e| (e * 7 + round * 3 + layer) % 4 < 2).collect();
                    if round % 3 == 0 {
                        streamed.hint((layer as usize + 1) % LAYERS, &[round % 6, 5, 2]);
                    }
                    take(&mut streamed, layer, &experts).unwrap();
                }
            }
            let stats = streamed.stats();
            assert!(stats.hits <= stats.requests && stats.bytes_read > 0);
        }
    }
}

#[test]
fn reading_ahead_changes_no_count_and_is_not_read_twice() {
    let runs = [false, true].map(|hints| {
        let Model { mut streamed, .. } = model(4, 6);
        for round in 0..8 {
            let (layer, next) = (round % LAYERS, (round + 1) % LAYERS);
            streamed.request(&batch(layer as u32, &[1, 3])).unwrap();
            if hints {
                streamed.hint(next, &[1, 3]);
            }
            while streamed.next(&|| false).unwrap().is_some() {}
        }
        take(&mut streamed, 2, &[1, 3]).unwrap();
        streamed.stats()
    });
    assert_eq!(runs[0], runs[1]);
}

#[test]
fn a_cancelled_wait_leaves_a_usable_cache() {
    let Model { mut streamed, .. } = model(3, 1);
    for _ in 0..20 {
        streamed.request(&batch(0, &[0, 1, 2, 3, 4, 5])).unwrap();
        match streamed.next(&|| true) {
            Err(ExpertError::Cancelled { layer: 0 }) => {}
            // Something had landed already.
            Ok(wave) => assert!(wave.is_some()),
            Err(other) => panic!("{other}"),
        }
        take(&mut streamed, 0, &[0, 1, 2, 3, 4, 5]).unwrap();
        take(&mut streamed, 1, &[2, 4]).unwrap();
    }
}

#[test]
fn a_truncated_file_is_an_error_that_names_it_and_what_is_cached_stays_usable() {
    let Model { folder, mut streamed } = model(4, 1);
    take(&mut streamed, 0, &[0, 1]).unwrap();
    let path = folder.path().join("model.gguf");
    let whole = std::fs::metadata(&path).unwrap().len();
    OpenOptions::new().write(true).open(&path).unwrap().set_len(whole / 4).unwrap();
    let error = take(&mut streamed, 2, &[5]).unwrap_err().to_string();
    assert!(error.contains("layer 2, expert 5") && error.contains("model.gguf"), "{error}");
    take(&mut streamed, 0, &[0, 1]).unwrap();
    let error = take(&mut streamed, 2, &[4, 5]).unwrap_err().to_string();
    assert!(error.contains("layer 2"), "{error}");
}
