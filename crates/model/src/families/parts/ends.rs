//! Embedding, head, and the look-ups of one matrix and one norm.

use super::Dims;
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{Embedding, Head, Linear, Norm};
use crate::tensors::{Role, Tensors};

/// `token_embd.weight`: the number of tokens is its number of rows.
pub(in crate::families) fn embedding(
    keys: &Keys<'_>,
    tensors: &mut Tensors<'_>,
    dims: &Dims,
    scale: f32,
) -> Result<(usize, Embedding), ModelError> {
    let name = "token_embd.weight";
    let n_vocab = match tensors.shape(name) {
        Some(&[_, rows, ..]) if rows > 0 => rows,
        // Absent or no matrix: the checked look-up below says which.
        _ => keys.count("vocab_size")?.unwrap_or(1),
    };
    let weight = tensors.require(name, &[dims.hidden, n_vocab], Role::Embedding)?;
    keys.check_vocabulary(n_vocab)?;
    Ok((n_vocab, Embedding { weight, scale }))
}

/// `output_norm` and `output`; without the latter the head is the embedding. Logits as they are.
pub(in crate::families) fn head(
    tensors: &mut Tensors<'_>,
    dims: &Dims,
    n_vocab: usize,
    embedding: &Embedding,
) -> Result<Head, ModelError> {
    let own = tensors.optional("output.weight", &[dims.hidden, n_vocab], Role::Head)?;
    let weight = own.unwrap_or(embedding.weight);
    Ok(Head {
        norm: norm(tensors, "output_norm", dims.hidden, dims.eps)?,
        projection: Linear { weight, bias: None, first_row: 0, rows: n_vocab, columns: dims.hidden },
        logit_scale: 1.0,
        soft_cap: None,
    })
}

/// `{name}.weight` as an RMS norm over `width` elements.
pub(in crate::families) fn norm(
    tensors: &mut Tensors<'_>,
    name: &str,
    width: usize,
    eps: f32,
) -> Result<Norm, ModelError> {
    let weight = tensors.require(&format!("{name}.weight"), &[width], Role::Norm)?;
    Ok(Norm { weight: Some(weight), width, eps })
}

/// `{name}.weight` as a matrix of `rows` by `columns`, without bias.
pub(in crate::families) fn linear(
    tensors: &mut Tensors<'_>,
    name: &str,
    (rows, columns): (usize, usize),
    role: Role,
) -> Result<Linear, ModelError> {
    let weight = tensors.require(&format!("{name}.weight"), &[columns, rows], role)?;
    Ok(Linear { weight, bias: None, first_row: 0, rows, columns })
}
