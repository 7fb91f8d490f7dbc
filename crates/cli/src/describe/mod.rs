//! A [`ModelSpec`] in words and as JSON: what the forward pass will compute, nothing left out.

mod feed_forward;
mod json;
mod mixer;

use std::fmt::{Result, Write};

use turbospark_engine::KvKind;
use turbospark_engine::device::CpuCache;
use turbospark_model::{Layer, Mixer, ModelSpec, SideBranch};

use crate::output::{bytes, count};
pub(crate) use json::json;

/// What a sequence takes of memory: so much a position, and so much whatever its length.
struct CacheSize {
    a_token: u64,
    fixed: u64,
}

impl CacheSize {
    fn of(spec: &ModelSpec, kind: KvKind) -> CacheSize {
        let windows = spec.layers.iter().filter_map(|l| match &l.mixer {
            Mixer::Attention(a) => a.window,
            Mixer::Latent(_) | Mixer::Delta(_) => None,
        });
        // Beyond every window, and a whole number of the cache's pages.
        let positions = (2 * windows.max().unwrap_or(0)).next_multiple_of(1024) + 1024;
        let [once, twice] = [1, 2].map(|n| CpuCache::bytes_for(spec, kind, n * positions, 1));
        let a_token = (twice - once) / positions as u64;
        CacheSize { a_token, fixed: once - a_token * positions as u64 }
    }
}

/// Writes the spec as indented lines.
pub(crate) fn describe(spec: &ModelSpec, out: &mut String) -> Result {
    let named = spec.name.as_ref().map(|n| format!(" ({})", n.escape_debug())).unwrap_or_default();
    writeln!(out, "  architecture   {}{named}", spec.architecture)?;
    writeln!(out, "  vocabulary     {}", count(spec.n_vocab))?;
    writeln!(out, "  context        {}", count(spec.context_length))?;
    writeln!(out, "  hidden         {}", count(spec.hidden))?;
    if spec.embedding.scale != 1.0 {
        writeln!(out, "  embedding      times {}", spec.embedding.scale)?;
    }
    if let Some(side) = &spec.side {
        let projected = "the layer's part of the embedded rows' projection";
        writeln!(
            out,
            "  side embedding {} elements a layer: the token's, times {}, and {projected}, times {}, normed; times {}",
            count(side.width),
            side.embedding.scale,
            side.projection_scale,
            side.scale,
        )?;
    }
    for (range, layer) in groups(&spec.layers) {
        let mut lines = lines(layer).into_iter();
        writeln!(out, "  {range:14} {}", lines.next().unwrap_or_default())?;
        for line in lines {
            writeln!(out, "  {:14} {line}", "")?;
        }
    }
    writeln!(out, "  head           {}", head(spec))?;
    let [f16, f32] = [KvKind::F16, KvKind::F32].map(|kind| CacheSize::of(spec, kind));
    let (a, b) = (bytes(f16.a_token), bytes(f32.a_token));
    writeln!(out, "  KV cache       {a} a token (f16), {b} (f32)")?;
    if f16.fixed > 0 {
        let (a, b) = (bytes(f16.fixed), bytes(f32.fixed));
        writeln!(out, "                 and {a} (f16), {b} (f32) for windows and recurrent states")?;
    }
    Ok(())
}

fn head(spec: &ModelSpec) -> String {
    let head = &spec.head;
    let tied = head.projection.weight.index == spec.embedding.weight.index;
    let mut text = if tied { "the embedding's tensor" } else { "its own tensor" }.to_owned();
    if head.logit_scale != 1.0 {
        text += &format!(", logits times {}", head.logit_scale);
    }
    if let Some(cap) = head.soft_cap {
        text += &format!(", soft cap {cap}");
    }
    text
}

/// A layer in lines: mixer, feed-forward, and what is around them.
fn lines(layer: &Layer) -> Vec<String> {
    let mut lines = vec![mixer::words(&layer.mixer)];
    lines.extend(feed_forward::lines(&layer.feed_forward));
    let mut around = Vec::new();
    if layer.mixer_post_norm.is_some() && layer.ff_post_norm.is_some() {
        around.push("norms before and after both".to_owned());
    } else if layer.mixer_post_norm.is_some() || layer.ff_post_norm.is_some() {
        around.push("norms before both and after one".to_owned());
    }
    if layer.residual_scale != 1.0 {
        around.push(format!("each branch times {}", layer.residual_scale));
    }
    if let Some(SideBranch { activation, .. }) = &layer.side {
        around.push(format!("side embedding gated by {}", feed_forward::activation(*activation)));
    }
    if layer.output_scale.is_some() {
        around.push("the stream times a factor of the layer".to_owned());
    }
    if !around.is_empty() {
        lines.push(around.join(", "));
    }
    lines
}

/// Layers that read alike, with their numbers: `layers 0-4, 6-10`.
fn groups(layers: &[Layer]) -> Vec<(String, &Layer)> {
    let mut groups: Vec<(Vec<usize>, Vec<String>, &Layer)> = Vec::new();
    for (i, layer) in layers.iter().enumerate() {
        let text = lines(layer);
        match groups.iter_mut().find(|(_, first, _)| *first == text) {
            Some((members, ..)) => members.push(i),
            None => groups.push((vec![i], text, layer)),
        }
    }
    let named = |members: &[usize]| match members {
        [one] => format!("layer {one}"),
        several => format!("layers {}", ranges(several)),
    };
    groups.into_iter().map(|(members, _, layer)| (named(&members), layer)).collect()
}

/// `0-4, 6` for 0, 1, 2, 3, 4, 6; `0, 2, .. 46` for a long row of equal steps.
fn ranges(numbers: &[usize]) -> String {
    if let [first, second, .., last] = numbers {
        let step = second - first;
        if step > 1 && numbers.len() > 3 && numbers.windows(2).all(|pair| pair[1] - pair[0] == step) {
            return format!("{first}, {second}, .. {last}");
        }
    }
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let text = runs.map(|run| match run {
        [one] => one.to_string(),
        _ => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    text.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_join_to_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 3, 4, 6]), "0-4, 6");
        assert_eq!(ranges(&[3]), "3");
        assert_eq!(ranges(&[0, 2]), "0, 2");
    }

    #[test]
    fn long_rows_of_equal_steps_are_abbreviated() {
        assert_eq!(ranges(&[1, 3, 5, 7]), "1, 3, .. 7");
        assert_eq!(ranges(&[0, 1, 2, 4, 5, 6]), "0-2, 4-6");
    }
}
