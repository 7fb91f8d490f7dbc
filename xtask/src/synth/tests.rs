//! Small models of both shapes, read back.

use super::*;
use std::collections::BTreeMap;
use turbospark_format::{Gguf, dequantize};
use turbospark_text::{Specials, Tokenizer};

fn small(published: Shape) -> Shape {
    let (expert_width, dense_width) = (256, 512);
    Shape {
        layers: 2,
        hidden: 256,
        heads: 4,
        kv_heads: 2,
        experts: 8,
        expert_width,
        dense_width,
        vocab: 600,
        ..published
    }
}

fn written(shape: &Shape, seed: u64) -> Gguf {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    write(shape, seed, &path).unwrap();
    Gguf::open(&path).unwrap()
}

fn listed(gguf: &Gguf) -> BTreeMap<&str, (&[usize], BlockType)> {
    gguf.tensors().iter().map(|t| (t.name.as_str(), (t.shape.as_slice(), t.block_type))).collect()
}

#[test]
fn a_gpt_oss_file_has_the_tensors_of_published_ones() {
    let shape = small(GPT_OSS_20B);
    let gguf = written(&shape, 1);
    let tensors = listed(&gguf);
    let (f32, mxfp4, q8_0) = (BlockType::F32, BlockType::MXFP4, BlockType::Q8_0);
    assert_eq!(tensors.len(), 3 + 2 * 19);
    let expected: [(&str, &[usize], _); 22] = [
        ("token_embd.weight", &[256, 600], q8_0),
        ("output_norm.weight", &[256], f32),
        ("output.weight", &[256, 600], q8_0),
        ("blk.1.attn_norm.weight", &[256], f32),
        ("blk.1.attn_q.weight", &[256, 256], q8_0),
        ("blk.1.attn_q.bias", &[256], f32),
        ("blk.1.attn_k.weight", &[256, 128], q8_0),
        ("blk.1.attn_k.bias", &[128], f32),
        ("blk.1.attn_v.weight", &[256, 128], q8_0),
        ("blk.1.attn_v.bias", &[128], f32),
        ("blk.1.attn_output.weight", &[256, 256], q8_0),
        ("blk.1.attn_output.bias", &[256], f32),
        ("blk.1.attn_sinks.weight", &[4], f32),
        ("blk.1.post_attention_norm.weight", &[256], f32),
        ("blk.1.ffn_gate_inp.weight", &[256, 8], f32),
        ("blk.1.ffn_gate_inp.bias", &[8], f32),
        ("blk.1.ffn_gate_exps.weight", &[256, 256, 8], mxfp4),
        ("blk.1.ffn_gate_exps.bias", &[256, 8], f32),
        ("blk.1.ffn_up_exps.weight", &[256, 256, 8], mxfp4),
        ("blk.1.ffn_up_exps.bias", &[256, 8], f32),
        ("blk.1.ffn_down_exps.weight", &[256, 256, 8], mxfp4),
        ("blk.1.ffn_down_exps.bias", &[256, 8], f32),
    ];
    for (name, shape, ty) in expected {
        assert_eq!(tensors.get(name), Some(&(shape, ty)), "{name}");
    }
    let m = gguf.metadata();
    assert_eq!(m.get("general.architecture"), Some(&"gpt-oss".into()));
    assert_eq!(m.get("gpt-oss.block_count"), Some(&2_u32.into()));
    assert_eq!(m.get("gpt-oss.expert_used_count"), Some(&4_u32.into()));
    assert_eq!(m.get("gpt-oss.attention.sliding_window"), Some(&128_u32.into()));
    assert_eq!(m.get("gpt-oss.rope.scaling.factor"), Some(&32_f32.into()));
}

#[test]
fn a_qwen3_file_has_the_tensors_of_published_ones() {
    let gguf = written(&small(QWEN3_30B_A3B), 1);
    let tensors = listed(&gguf);
    let (f32, q4_k, q6_k) = (BlockType::F32, BlockType::Q4_K, BlockType::Q6_K);
    assert_eq!(tensors.len(), 3 + 2 * 12);
    let expected: [(&str, &[usize], _); 15] = [
        ("token_embd.weight", &[256, 600], q6_k),
        ("output_norm.weight", &[256], f32),
        ("output.weight", &[256, 600], q6_k),
        ("blk.0.attn_norm.weight", &[256], f32),
        ("blk.0.attn_q.weight", &[256, 512], q6_k),
        ("blk.0.attn_q_norm.weight", &[128], f32),
        ("blk.0.attn_k.weight", &[256, 256], q6_k),
        ("blk.0.attn_k_norm.weight", &[128], f32),
        ("blk.0.attn_v.weight", &[256, 256], q6_k),
        ("blk.0.attn_output.weight", &[512, 256], q6_k),
        ("blk.0.ffn_norm.weight", &[256], f32),
        ("blk.0.ffn_gate_inp.weight", &[256, 8], f32),
        ("blk.0.ffn_gate_exps.weight", &[256, 256, 8], q4_k),
        ("blk.0.ffn_up_exps.weight", &[256, 256, 8], q4_k),
        ("blk.0.ffn_down_exps.weight", &[256, 256, 8], q4_k),
    ];
    for (name, shape, ty) in expected {
        assert_eq!(tensors.get(name), Some(&(shape, ty)), "{name}");
    }
    let m = gguf.metadata();
    assert_eq!(m.get("general.architecture"), Some(&"qwen3moe".into()));
    assert_eq!(m.get("qwen3moe.attention.key_length"), Some(&128_u32.into()));
    assert_eq!(m.get("qwen3moe.rope.scaling.type"), None);
}

#[test]
fn weights_follow_their_law_and_rows_differ() {
    for published in [GPT_OSS_20B, QWEN3_30B_A3B, QWEN3_8B] {
        let shape = small(published);
        let gguf = written(&shape, 1);
        for (t, planned) in gguf.tensors().iter().zip(shape.tensors()) {
            let mut values = vec![0.0; t.elements()];
            dequantize(t.block_type, gguf.bytes(t), &mut values);
            let n = values.len() as f32;
            let mean = values.iter().sum::<f32>() / n;
            let deviation = (values.iter().map(|v| (v - mean).powi(2)).sum::<f32>() / n).sqrt();
            let (law, error) = (planned.law, 6.0 * planned.law.deviation / n.sqrt());
            assert!((mean - law.mean).abs() < error, "{}: mean {mean}", t.name);
            assert!(
                (deviation - law.deviation).abs() < error + 0.05 * law.deviation,
                "{}: deviation {deviation}",
                t.name
            );
            if t.shape.len() > 1 {
                let rows: std::collections::HashSet<_> = values
                    .chunks(t.shape[0])
                    .map(|row| row.iter().map(|v| v.to_bits()).collect::<Vec<_>>())
                    .collect();
                assert_eq!(rows.len(), values.len() / t.shape[0], "{}", t.name);
            }
        }
    }
}

#[test]
fn the_seed_alone_decides_what_is_written() {
    let shape = small(GPT_OSS_20B);
    let data = |seed| {
        let gguf = written(&shape, seed);
        gguf.tensors().iter().flat_map(|t| gguf.bytes(t).to_vec()).collect::<Vec<u8>>()
    };
    assert_eq!(data(1), data(1));
    assert_ne!(data(1), data(2));
}

#[test]
fn any_text_is_encoded_and_decoded_again() {
    let text = "The quick brown fox: naïve, 東京, \u{1f680}!!\n";
    for published in [GPT_OSS_20B, QWEN3_30B_A3B, QWEN3_8B] {
        // From no merges to pieces of three bytes.
        for vocab in [SMALLEST_VOCAB, 600, 256 + 65_536 + 500] {
            let mut writer = GgufWriter::new();
            for (key, value) in tokenizer::metadata(&Shape { vocab, ..published }) {
                writer.set(key, value);
            }
            let mut file = Vec::new();
            writer.write(&mut file).unwrap();
            let gguf = Gguf::from_bytes(file).unwrap();
            let tokenizer = Tokenizer::from_metadata(gguf.metadata()).unwrap();
            assert_eq!(tokenizer.vocab_size(), vocab as usize);
            let ids = tokenizer.encode(text, Specials::NONE).unwrap();
            assert_eq!(tokenizer.decode(&ids), text);
            assert!(tokenizer.is_special(vocab - 1));
            assert!(tokenizer.eos().is_some_and(|id| tokenizer.is_special(id)));
        }
    }
}

const SMALLEST_VOCAB: u32 = tokenizer::SMALLEST as u32;

#[test]
fn a_format_that_the_rows_do_not_fit_is_refused_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let error =
        write(&Shape { expert_type: BlockType::Q4_K, ..GPT_OSS_20B }, 1, &path).unwrap_err().to_string();
    assert!(error.contains("rows of 2880 values") && error.contains("Q4_K blocks of 256"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_model_that_the_disk_cannot_hold_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    // 1000 layers of 250,000 experts: petabytes.
    let shape = Shape { layers: 1000, experts: 250_000, ..GPT_OSS_20B };
    let error = write(&shape, 1, &path).unwrap_err().to_string();
    assert!(error.contains("the file needs") && error.contains("free"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
