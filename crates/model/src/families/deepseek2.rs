//! DeepSeek-V2, V2-Lite, V3 and R1, Kimi K2, GLM-4.7-Flash (`deepseek2`): latent attention, of which the cache keeps one
//! row a position.
//!
//! Files hold the absorbed form: one KV head of `kv_lora_rank + rope.dimension_count`, and `attn_k_b`, `attn_v_b` with one
//! matrix a head. Older files hold `attn_kv_b`, from which this form has to be made anew: they are refused. Rotary pairs are
//! neighbours. YaRN's factor goes into the scores: `mscale² / sqrt(key_length_mla)` with
//! `mscale = 1 + yarn_log_multiplier ln(factor)`; the key is a tenth of the checkpoint's `mscale_all_dim`. Its `mscale`,
//! which would scale the rotary embedding itself, equals that in every published model and is in no key.
//! Experts are as in `glm4moe`; V2 scores by softmax and has no `exp_probs_b.bias`.

use super::parts::{self, Dims};
use super::{Body, glm4_moe, plain};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{LatentAttention, LatentQuery, Mixer, Pairing, Rope, RopeScaling, Scoring, Stack};
use crate::tensors::{Role, TensorRef, Tensors};

/// Rows of the embedding, and layers with and without the predicting block, by which GLM-4.7-Flash is known in files
/// that lack `expert_gating_func`; other files without it are DeepSeek-V2's.
const GLM_FLASH: (usize, [usize; 2]) = (154_880, [47, 48]);

pub(super) fn body(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    let again = "latent attention that isn't absorbed; convert the checkpoint again with a current converter";
    parts::refuse_tensor(tensors, "blk.0.attn_kv_b.weight", again)?;
    parts::refuse_key(
        keys,
        "attention.temperature_scale",
        "queries that grow with the position in deepseek2",
    )?;
    let latent = Latent::read(keys)?;
    let dims = Dims { rope_dims: latent.rope_dim, ..Dims::read_heads(keys)? };
    let mut rope = parts::rope(keys, &dims, Pairing::Interleaved)?;
    let mut scale = 1.0 / ((latent.nope_dim + latent.rope_dim) as f32).sqrt();
    if let (RopeScaling::Yarn { factor, .. }, Some(multiplier)) =
        (rope.scaling, parts::yarn_log_multiplier(keys)?)
    {
        scale *= parts::yarn_mscale(factor, multiplier).powi(2);
        rope.magnitude = 1.0;
    }
    let flash = |shape: &[usize]| shape.get(1) == Some(&GLM_FLASH.0) && GLM_FLASH.1.contains(&dims.n_layers);
    let default = match tensors.shape("token_embd.weight").is_some_and(flash) {
        true => Scoring::Sigmoid,
        false => Scoring::Softmax,
    };
    let correction = parts::scoring(keys, default)? == Scoring::Sigmoid;
    let mixer = |t: &mut Tensors<'_>, dims: &Dims, i| {
        latent.attention(t, dims, i, rope.clone(), scale).map(Mixer::Latent)
    };
    let feed_forward = glm4_moe::leading_dense(keys, default, correction)?;
    plain::body(keys, tensors, dims, &plain::USUAL, mixer, feed_forward)
}

/// The numbers of latent attention.
struct Latent {
    /// Width of the compressed query; `None`: queries are projected at once.
    q_rank: Option<usize>,
    rank: usize,
    nope_dim: usize,
    rope_dim: usize,
    v_dim: usize,
}

impl Latent {
    fn read(keys: &Keys<'_>) -> Result<Latent, ModelError> {
        let rope_dim = keys.require_count("rope.dimension_count")?;
        let key = "attention.key_length_mla";
        let key_length = keys.require_count(key)?;
        if rope_dim % 2 != 0 {
            return Err(keys.bad("rope.dimension_count", rope_dim, "an even number, for rotary pairs"));
        }
        if key_length <= rope_dim {
            return Err(keys.bad(key, key_length, format!("more than rope.dimension_count ({rope_dim})")));
        }
        let rank = keys.require_count("attention.kv_lora_rank")?;
        let key = "attention.key_length";
        if let Some(n) = keys.count(key)?.filter(|&n| n != rank + rope_dim) {
            return Err(keys.bad(
                key,
                n,
                format!("kv_lora_rank + rope.dimension_count, {}", rank + rope_dim),
            ));
        }
        let n_kv_heads = keys.count("attention.head_count_kv")?;
        if let Some(n) = n_kv_heads.filter(|&n| n != 1) {
            return Err(keys.bad("attention.head_count_kv", n, "1, the compressed row"));
        }
        Ok(Latent {
            q_rank: keys.some_count("attention.q_lora_rank")?,
            rank,
            nope_dim: key_length - rope_dim,
            rope_dim,
            v_dim: keys.require_count("attention.value_length_mla")?,
        })
    }

    fn attention(
        &self,
        tensors: &mut Tensors<'_>,
        dims: &Dims,
        layer: usize,
        rope: Rope,
        scale: f32,
    ) -> Result<LatentAttention, ModelError> {
        let (n_heads, hidden, rank) = (dims.n_heads, dims.hidden, self.rank);
        let name = |name: &str| format!("blk.{layer}.{name}");
        let mut linear = |part, shape| parts::linear(tensors, &name(part), shape, Role::Attention);
        let q_width = n_heads * (self.nope_dim + self.rope_dim);
        let kv = linear("attn_kv_a_mqa", (rank + self.rope_dim, hidden))?;
        let o = linear("attn_output", (hidden, n_heads * self.v_dim))?;
        let q = match self.q_rank {
            None => LatentQuery::Direct(linear("attn_q", (q_width, hidden))?),
            Some(q_rank) => LatentQuery::LowRank {
                down: linear("attn_q_a", (q_rank, hidden))?,
                up: linear("attn_q_b", (q_width, q_rank))?,
                norm: parts::norm(tensors, &name("attn_q_a_norm"), q_rank, dims.eps)?,
            },
        };
        let kv_norm = parts::norm(tensors, &name("attn_kv_a_norm"), rank, dims.eps)?;
        let mut stack = |part, rows, columns| {
            let shape = [columns, rows, n_heads];
            let weight: TensorRef = tensors.require(&name(part), &shape, Role::Attention)?;
            let n = n_heads;
            Ok::<_, ModelError>(Stack {
                weight,
                bias: None,
                n,
                stored_rows: rows,
                first_row: 0,
                rows,
                columns,
            })
        };
        Ok(LatentAttention {
            n_heads,
            rank,
            nope_dim: self.nope_dim,
            rope_dim: self.rope_dim,
            v_dim: self.v_dim,
            scale,
            rope,
            q,
            kv,
            kv_norm,
            k_up: stack("attn_k_b.weight", rank, self.nope_dim)?,
            v_up: stack("attn_v_b.weight", self.v_dim, rank)?,
            o,
        })
    }
}
