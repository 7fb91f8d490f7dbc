//! Which tokens end a turn.
//!
//! Files name EOS and sometimes EOT and EOM, but many chat models end their turns with another token that only its text
//! tells. Several stop tokens are normal; stopping too late makes a model talk to itself.

use crate::vocab::Vocab;

const ENDERS: [&str; 16] = [
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|end_of_role|>",
    "<|eot|>",
    "<|eom|>",
    "<end_of_turn>",
    "<turn|>",
    "<EOT>",
    "[EOT]",
    "<｜end▁of▁sentence｜>",
];

/// Ids that end a turn, sorted: `named` by the file, and those that the vocabulary has.
pub(crate) fn turn_enders(vocab: &Vocab, named: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut ids: Vec<u32> = named.collect();
    ids.extend(ENDERS.iter().filter_map(|text| vocab.find_special(text)));
    // In the harmony format a turn has several messages, each of which ends in <|end|>.
    let harmony = vocab.find_special("<|return|>").is_some() && vocab.find_special("<|call|>").is_some();
    if harmony && let Some(end) = vocab.find_special("<|end|>") {
        ids.retain(|&id| id != end);
    }
    ids.sort_unstable();
    ids.dedup();
    ids
}
