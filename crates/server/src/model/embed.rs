//! Embeddings, by models whose file says how rows become a vector.

use std::sync::Arc;

use turbospark_engine::Pooling;
use turbospark_text::Specials;

use super::{InUse, Model, blocking, refusal_of};
use crate::{Prompt, Refusal};

/// One text's vector.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// Of length 1.
    pub vector: Vec<f32>,
    /// Tokens of the text.
    pub tokens: usize,
}

impl Model {
    /// How this model pools; an error where its file doesn't say that it is made for embeddings.
    pub(crate) fn pooling(&self) -> Result<Pooling, Refusal> {
        let architecture = &self.engine().spec().architecture;
        let kind = self.engine().gguf().metadata().u64(&format!("{architecture}.pooling_type"));
        match kind {
            Ok(Some(1)) => Ok(Pooling::Mean),
            Ok(Some(3)) => Ok(Pooling::Last),
            Ok(Some(kind @ (2 | 4..))) => Err(Refusal::bad(
                "model",
                format!("{} pools in a way ({kind}) that is not supported", self.name),
            )),
            _ => Err(Refusal::bad(
                "model",
                format!(
                    "{} makes no embeddings: its file names no way of pooling ({architecture}.pooling_type)",
                    self.name
                ),
            )),
        }
    }

    /// The vectors of texts or token lists.
    pub(crate) async fn embed(self: Arc<Model>, inputs: Vec<Prompt>) -> Result<Vec<Embedding>, Refusal> {
        let pooling = self.pooling()?;
        let in_use = InUse::new(self.clone());
        let Ok(_turn) = self.embedding.acquire().await else {
            return Err(Refusal::Unavailable("the server is shutting down".to_owned()));
        };
        let mut vectors = Vec::with_capacity(inputs.len());
        for (i, input) in inputs.into_iter().enumerate() {
            let model = in_use.model().clone();
            // One at a time: who has gone asks for no more.
            let vector = blocking(move || one(&model, input, pooling)).await?;
            vectors.push(vector.map_err(|e| match e {
                Refusal::Bad { message, .. } => Refusal::bad(format!("input[{i}]"), message),
                other => other,
            })?);
        }
        Ok(vectors)
    }
}

fn one(model: &Model, input: Prompt, pooling: Pooling) -> Result<Embedding, Refusal> {
    let tokens = match input {
        Prompt::Tokens(tokens) => tokens,
        Prompt::Text(text) => model
            .tokenizer()
            .encode(&text, Specials { add_bos_eos: true, parse: false })
            .map_err(|e| Refusal::Bad { field: None, message: e.to_string() })?,
        Prompt::Chat { .. } => return Err(Refusal::Internal("a conversation has no embedding".to_owned())),
    };
    let mut vector = model.engine().embed(&tokens, pooling).map_err(|e| refusal_of(&e))?;
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    }
    Ok(Embedding { vector, tokens: tokens.len() })
}
