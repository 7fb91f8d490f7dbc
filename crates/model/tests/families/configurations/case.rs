//! One fixture: its file, spec and configuration, and look-ups in them.

use std::path::Path;

use serde_json::Value as Json;
use turbospark_format::Gguf;
use turbospark_model::{
    Activation, Attention, DenseFeedForward, FeedForward, KeyValues, Linear, Mixer, ModelSpec, Norm,
    TensorRef,
};

/// A checkpoint's configuration.
pub(crate) struct Config(Json);

impl Config {
    pub(crate) fn read(path: &Path) -> Config {
        let text = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut whole: Json = serde_json::from_slice(&text).unwrap();
        let mut config = whole["config"].take();
        match config.get_mut("text_config").map(Json::take) {
            Some(text) => Config(text),
            None => Config(config),
        }
    }

    /// A value that is there and not null.
    pub(crate) fn get(&self, key: &str) -> Option<&Json> {
        self.0.get(key).filter(|x| !x.is_null())
    }

    pub(crate) fn n(&self, key: &str) -> usize {
        let found = self.get(key).and_then(Json::as_u64);
        found.unwrap_or_else(|| panic!("no {key} in {}", self.0)) as usize
    }

    pub(crate) fn f(&self, key: &str) -> f32 {
        self.get(key).and_then(Json::as_f64).unwrap_or_else(|| panic!("no {key} in {}", self.0)) as f32
    }

    /// A value of `rope_parameters`.
    pub(crate) fn rope(&self, key: &str) -> Option<&Json> {
        self.get("rope_parameters").and_then(|rope| rope.get(key)).filter(|x| !x.is_null())
    }
}

pub(crate) struct Case {
    pub(crate) file: String,
    pub(crate) config: Config,
    pub(crate) gguf: Gguf,
    pub(crate) spec: ModelSpec,
}

impl Case {
    pub(crate) fn layers(&self) -> std::ops::Range<usize> {
        0..self.spec.layers.len()
    }

    /// The name of a tensor.
    pub(crate) fn name(&self, tensor: TensorRef) -> &str {
        &self.gguf.tensors()[tensor.index].name
    }

    pub(crate) fn head_dim(&self) -> usize {
        let c = &self.config;
        c.get("head_dim").map_or_else(|| c.n("hidden_size") / c.n("num_attention_heads"), |_| c.n("head_dim"))
    }

    /// The sizes that every configuration has, the tie of embedding and head, and the eps of norms.
    pub(crate) fn dimensions(&self) {
        let (spec, c) = (&self.spec, &self.config);
        let sizes = [spec.n_vocab, spec.hidden, spec.layers.len(), spec.context_length];
        let keys = ["vocab_size", "hidden_size", "num_hidden_layers", "max_position_embeddings"];
        assert_eq!(sizes, keys.map(|key| c.n(key)), "{}", self.file);
        if let Some(tied) = c.get("tie_word_embeddings").and_then(Json::as_bool) {
            assert_eq!(
                spec.head.projection.weight.index == spec.embedding.weight.index,
                tied,
                "{}",
                self.file
            );
        }
        for norm in spec.layers.iter().flat_map(|l| [l.mixer_norm, l.ff_norm]).chain([spec.head.norm]) {
            assert_eq!((norm.eps, norm.width), (c.f("rms_norm_eps"), spec.hidden), "{}", self.file);
            assert!(norm.weight.is_some());
        }
    }

    pub(crate) fn attention(&self, layer: usize) -> &Attention {
        match &self.spec.layers[layer].mixer {
            Mixer::Attention(attention) => attention,
            other => panic!("{} layer {layer}: {other:?}", self.file),
        }
    }

    /// A layer's own keys and values: projections and the keys' norm.
    pub(crate) fn own(&self, layer: usize) -> (Linear, Linear, Option<Norm>) {
        match &self.attention(layer).kv {
            KeyValues::Own { k, v: Some(v), k_norm, v_norm: None } => (*k, *v, *k_norm),
            other => panic!("{} layer {layer}: {other:?}", self.file),
        }
    }

    pub(crate) fn no_biases(&self, layer: usize) {
        let (a, (k, v, _)) = (self.attention(layer), self.own(layer));
        assert!([a.q, k, v, a.o].iter().all(|l| l.bias.is_none()), "{} layer {layer}", self.file);
    }

    pub(crate) fn dense_network(
        &self,
        layer: usize,
        width: &str,
        activation: Activation,
    ) -> &DenseFeedForward {
        let FeedForward::Dense(ff) = &self.spec.layers[layer].feed_forward else {
            panic!("{} layer {layer} isn't dense", self.file)
        };
        assert_eq!((ff.width, ff.activation), (self.config.n(width), activation), "{}", self.file);
        assert_eq!((ff.gate.rows, ff.up.rows, ff.down.columns), (ff.width, ff.width, ff.width));
        assert_eq!(self.name(ff.down.weight), format!("blk.{layer}.ffn_down.weight"));
        ff
    }

    /// A dense feed-forward of its own tensors, as wide as the key `width` says.
    pub(crate) fn dense(&self, layer: usize, width: &str, activation: Activation) {
        let ff = self.dense_network(layer, width, activation);
        assert_eq!(self.name(ff.gate.weight), format!("blk.{layer}.ffn_gate.weight"));
        assert_eq!(self.name(ff.up.weight), format!("blk.{layer}.ffn_up.weight"));
    }

    /// Norms after both branches too.
    pub(crate) fn sandwich(&self, layer: usize) {
        let l = &self.spec.layers[layer];
        let names = [l.mixer_post_norm, l.ff_post_norm].map(|n| self.name(n.unwrap().weight.unwrap()));
        let expected = ["post_attention_norm", "post_ffw_norm"].map(|n| format!("blk.{layer}.{n}.weight"));
        assert_eq!(names, expected.each_ref().map(String::as_str), "{}", self.file);
    }
}
