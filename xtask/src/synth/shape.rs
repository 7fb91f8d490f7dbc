//! The published shapes, and the tensors and metadata keys of a file of theirs.
//!
//! Invariant: names, dimensions and keys are those of published GGUF files of the architecture, so that every reader
//! of those opens these. Sizes are from the models' `config.json`.

use turbospark_format::{BlockType, Value};

/// What a model is made of; sizes count values.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) family: Family,
    pub(super) name: &'static str,
    pub(super) layers: u32,
    pub(super) hidden: u32,
    pub(super) heads: u32,
    pub(super) kv_heads: u32,
    pub(super) head_dim: u32,
    pub(super) experts: u32,
    /// Experts of a token.
    pub(super) top_k: u32,
    /// Width of an expert.
    pub(super) expert_width: u32,
    /// Width of the dense feed-forward: the layers', or one that the metadata names and no layer has.
    pub(super) dense_width: u32,
    pub(super) vocab: u32,
    pub(super) context: u32,
    pub(super) theta: f32,
    pub(super) epsilon: f32,
    pub(super) expert_type: BlockType,
    pub(super) dense_type: BlockType,
}

/// What the two architectures differ in beside sizes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// Biases everywhere, sinks, alternating windows, YaRN.
    GptOss,
    /// Norms of queries and keys.
    Qwen3Moe,
    /// The same without experts.
    Qwen3,
}

pub(super) const GPT_OSS_20B: Shape = Shape {
    family: Family::GptOss,
    name: "synthetic gpt-oss-20b",
    layers: 24,
    hidden: 2880,
    heads: 64,
    kv_heads: 8,
    head_dim: 64,
    experts: 32,
    top_k: 4,
    expert_width: 2880,
    dense_width: 2880,
    vocab: 201_088,
    context: 131_072,
    theta: 150_000.0,
    epsilon: 1e-5,
    expert_type: BlockType::MXFP4,
    dense_type: BlockType::Q8_0,
};

pub(super) const QWEN3_30B_A3B: Shape = Shape {
    family: Family::Qwen3Moe,
    name: "synthetic qwen3-30b-a3b",
    layers: 48,
    hidden: 2048,
    heads: 32,
    kv_heads: 4,
    head_dim: 128,
    experts: 128,
    top_k: 8,
    expert_width: 768,
    dense_width: 6144,
    vocab: 151_936,
    context: 40_960,
    theta: 1e6,
    epsilon: 1e-6,
    expert_type: BlockType::Q4_K,
    dense_type: BlockType::Q6_K,
};

pub(super) const QWEN3_8B: Shape = Shape {
    family: Family::Qwen3,
    name: "synthetic qwen3-8b",
    layers: 36,
    hidden: 4096,
    heads: 32,
    kv_heads: 8,
    head_dim: 128,
    experts: 0,
    top_k: 0,
    expert_width: 0,
    dense_width: 12_288,
    vocab: 151_936,
    context: 40_960,
    theta: 1e6,
    epsilon: 1e-6,
    expert_type: BlockType::Q4_K,
    dense_type: BlockType::Q4_K,
};

/// Tokens that an even layer of gpt-oss sees.
const WINDOW: u32 = 128;
const YARN_FACTOR: f32 = 32.0;
const YARN_ORIGINAL_CONTEXT: u32 = 4096;

/// A tensor to write.
pub(super) struct Tensor {
    pub(super) name: String,
    /// Innermost size first.
    pub(super) shape: Vec<usize>,
    pub(super) block_type: BlockType,
    pub(super) law: Law,
}

/// The normal distribution that a tensor's values are drawn from.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Law {
    pub(super) mean: f32,
    pub(super) deviation: f32,
}

impl Law {
    /// Of a matrix with rows of `k`: an input of unit variance gives an output of variance `gain^2`, so that activations
    /// neither explode nor vanish over the layers.
    fn matrix(k: usize, gain: f32) -> Self {
        Law { mean: 0.0, deviation: gain / (k as f32).sqrt() }
    }

    const EMBEDDING: Self = Law { mean: 0.0, deviation: 1.0 };
    const NORM: Self = Law { mean: 1.0, deviation: 0.1 };
    const BIAS: Self = Law { mean: 0.0, deviation: 0.1 };
    const SINK: Self = Law { mean: 0.0, deviation: 1.0 };
}

/// What attention adds beside what experts add: it mixes tokens, and if it had the larger part, they would all come to look
/// alike after some layers and go to the same experts.
const ATTENTION_GAIN: f32 = 0.3;
/// Deviation of the router's logits: a token's best experts weigh several times its others, as in trained routers.
const ROUTER_GAIN: f32 = 2.0;

impl Tensor {
    /// Bytes of its data; its rows are whole blocks.
    pub(super) fn bytes(&self) -> u64 {
        self.blocks() * self.block_type.block_bytes() as u64
    }

    pub(super) fn blocks(&self) -> u64 {
        (self.shape.iter().product::<usize>() / self.block_type.block_len()) as u64
    }
}

impl Shape {
    /// All tensors in the order of the file.
    pub(super) fn tensors(&self) -> Vec<Tensor> {
        let (hidden, vocab) = (self.hidden as usize, self.vocab as usize);
        let mut all = Vec::new();
        let embedding = [hidden, vocab];
        all.push(tensor("token_embd.weight".into(), &embedding, self.dense_type, Law::EMBEDDING));
        for layer in 0..self.layers {
            self.layer(&format!("blk.{layer}."), &mut all);
        }
        all.push(tensor("output_norm.weight".into(), &[hidden], BlockType::F32, Law::NORM));
        all.push(tensor("output.weight".into(), &embedding, self.dense_type, Law::matrix(hidden, 1.0)));
        all
    }

    fn layer(&self, prefix: &str, all: &mut Vec<Tensor>) {
        let (hidden, head_dim) = (self.hidden as usize, self.head_dim as usize);
        let (experts, width) = (self.experts as usize, self.expert_width as usize);
        let (q, kv) = (self.heads as usize * head_dim, self.kv_heads as usize * head_dim);
        let gpt_oss = self.family == Family::GptOss;
        let mut add = |name: &str, shape: &[usize], ty, law| {
            all.push(tensor(format!("{prefix}{name}"), shape, ty, law));
        };
        let mut linear = |name: &str, shape: &[usize], ty, gain| {
            add(&format!("{name}.weight"), shape, ty, Law::matrix(shape[0], gain));
            if gpt_oss {
                add(&format!("{name}.bias"), &shape[1..], BlockType::F32, Law::BIAS);
            }
        };
        linear("attn_q", &[hidden, q], self.dense_type, 1.0);
        linear("attn_k", &[hidden, kv], self.dense_type, 1.0);
        linear("attn_v", &[hidden, kv], self.dense_type, 1.0);
        linear("attn_output", &[q, hidden], self.dense_type, ATTENTION_GAIN);
        if self.family == Family::Qwen3 {
            let width = self.dense_width as usize;
            linear("ffn_gate", &[hidden, width], self.dense_type, 1.0);
            linear("ffn_up", &[hidden, width], self.dense_type, 1.0);
            linear("ffn_down", &[width, hidden], self.dense_type, 1.0);
        } else {
            linear("ffn_gate_inp", &[hidden, experts], BlockType::F32, ROUTER_GAIN);
            linear("ffn_gate_exps", &[hidden, width, experts], self.expert_type, 1.0);
            linear("ffn_up_exps", &[hidden, width, experts], self.expert_type, 1.0);
            linear("ffn_down_exps", &[width, hidden, experts], self.expert_type, 1.0);
        }
        let mut norm = |name: &str, len| add(name, &[len], BlockType::F32, Law::NORM);
        norm("attn_norm.weight", hidden);
        if gpt_oss {
            norm("post_attention_norm.weight", hidden);
            add("attn_sinks.weight", &[self.heads as usize], BlockType::F32, Law::SINK);
        } else {
            norm("ffn_norm.weight", hidden);
            norm("attn_q_norm.weight", head_dim);
            norm("attn_k_norm.weight", head_dim);
        }
    }

    /// The metadata keys, without the tokenizer's.
    pub(super) fn metadata(&self) -> Vec<(String, Value)> {
        let architecture = match self.family {
            Family::GptOss => "gpt-oss",
            Family::Qwen3Moe => "qwen3moe",
            Family::Qwen3 => "qwen3",
        };
        let general = |key: &str, value| (format!("general.{key}"), value);
        let mut keys = vec![
            general("architecture", architecture.into()),
            general("type", "model".into()),
            general("name", self.name.into()),
            general("quantization_version", 2_u32.into()),
        ];
        let mut add = |key: &str, value: Value| keys.push((format!("{architecture}.{key}"), value));
        add("block_count", self.layers.into());
        add("context_length", self.context.into());
        add("embedding_length", self.hidden.into());
        add("feed_forward_length", self.dense_width.into());
        add("attention.head_count", self.heads.into());
        add("attention.head_count_kv", self.kv_heads.into());
        add("attention.key_length", self.head_dim.into());
        add("attention.value_length", self.head_dim.into());
        add("attention.layer_norm_rms_epsilon", self.epsilon.into());
        add("rope.freq_base", self.theta.into());
        if self.family != Family::Qwen3 {
            add("expert_count", self.experts.into());
            add("expert_used_count", self.top_k.into());
            add("expert_feed_forward_length", self.expert_width.into());
        }
        if self.family == Family::GptOss {
            add("attention.sliding_window", WINDOW.into());
            add("rope.scaling.type", "yarn".into());
            add("rope.scaling.factor", YARN_FACTOR.into());
            add("rope.scaling.original_context_length", YARN_ORIGINAL_CONTEXT.into());
            add("rope.scaling.yarn_beta_fast", 32_f32.into());
            add("rope.scaling.yarn_beta_slow", 1_f32.into());
        }
        keys
    }
}

fn tensor(name: String, shape: &[usize], block_type: BlockType, law: Law) -> Tensor {
    Tensor { name, shape: shape.to_owned(), block_type, law }
}
