//! Logits and greedy continuations against the reference, within the fixtures' stated tolerances.

use std::collections::BTreeSet;

use serde_json::Value;
use turbospark_engine::{GenerateOptions, SamplingParams, argmax};

use crate::fixtures::{
    FLOAT, FLOAT_TOLERANCE, REDUCED, description, distance, engine, files, folder, ids, logits, name,
    numbers, off, reference,
};

#[test]
fn the_tables_name_every_model_in_the_folder() {
    let listed: BTreeSet<String> = files().map(str::to_owned).collect();
    let there: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|file| file.ends_with(".gguf"))
        .collect();
    assert_eq!(listed, there);
}

#[test]
fn float_models_match_the_reference_on_prompts_and_continuations() {
    for file in FLOAT {
        let off = off(&engine(file), file, "");
        assert!(off <= FLOAT_TOLERANCE, "{file}: off by {off}");
    }
}

#[test]
fn greedy_generation_repeats_the_reference_through_the_cache() {
    for file in FLOAT {
        let engine = engine(file);
        let mut session = engine.session();
        for (p, prompt) in description(file)["prompts"].as_array().unwrap().iter().enumerate() {
            let expected = ids(&prompt["greedy"]);
            let options = GenerateOptions {
                sampling: SamplingParams::greedy(),
                max_tokens: Some(expected.len()),
                ignore_stop_tokens: true,
                ..GenerateOptions::default()
            };
            let generation = session.generate(&ids(&prompt["ids"]), options).unwrap();
            let tokens: Vec<u32> = generation.filter_map(|piece| piece.unwrap().token).collect();
            assert_eq!(tokens.len(), expected.len());
            // A step whose margin is within the tolerance can go either way: what follows it says nothing.
            let sure = numbers(&prompt["margins"]).iter().position(|&m| m < 0.01).unwrap_or(expected.len());
            assert!(sure >= 8, "{file} prompt {p} compares {sure} steps only");
            assert_eq!(tokens[..sure], expected[..sure], "{file} prompt {p}");
        }
    }
}

/// What stands before the names of a file's logits in the reference, and how far the format's own engine is off on its prompts.
fn peer(text: &Value, file: &str) -> (String, f64) {
    let quants = text["quants"].as_object().into_iter().flatten();
    if let Some((kind, quant)) = quants.into_iter().find(|(_, quant)| quant["file"] == file) {
        let prompts = quant["prompts"].as_array().unwrap().iter();
        let native = prompts.map(|p| p["native_max_diff"].as_f64().unwrap());
        return (format!("{kind}."), native.fold(0.0, f64::max));
    }
    // The same values as the float file: its reference is theirs.
    let (kind, _) = text["gguf"].as_object().unwrap().iter().find(|(_, f)| **f == file).unwrap();
    (String::new(), text["llama_cpp_max_abs_diff"][kind]["prompt"].as_f64().unwrap())
}

#[test]
fn half_precision_and_quantised_models_stay_within_their_bounds() {
    for file in REDUCED {
        let (text, reference, engine) = (description(file), reference(file), engine(file));
        let (prefix, peer) = peer(&text, file);
        // Its activations are 8-bit as well.
        let tolerance = 3.0 * peer;
        let (mut rows, mut same) = (0, 0);
        for (p, prompt) in text["prompts"].as_array().unwrap().iter().enumerate() {
            let n_vocab = engine.spec().n_vocab;
            let all = logits(&engine, &ids(&prompt["ids"]), 512);
            let expected = reference.f32(&format!("{prefix}p{p}_logits")).unwrap();
            for (position, row) in ids(&prompt["logits_positions"]).iter().zip(expected.chunks_exact(n_vocab))
            {
                let ours = &all[*position as usize * n_vocab..][..n_vocab];
                let d = distance(ours, row);
                assert!(
                    d <= tolerance,
                    "{file} prompt {p} position {position}: off by {d}, bound {tolerance}"
                );
                rows += 1;
                same += usize::from(argmax(ours) == argmax(row));
            }
        }
        assert!(same * 10 >= rows * 8, "{file}: the likeliest token agrees in {same} of {rows} rows");
    }
}

#[test]
fn blocks_that_predict_further_tokens_change_no_bit() {
    let with: Vec<_> = FLOAT.iter().filter(|file| file.contains("-mtp-")).collect();
    assert!(with.len() >= 2);
    for file in with {
        let plain = format!("{}-f32.gguf", name(file));
        let (with, without) = (engine(file), engine(&plain));
        assert!(with.gguf().tensors().len() > without.gguf().tensors().len(), "{file} has no further block");
        let tokens = crate::fixtures::longest(file);
        assert_eq!(logits(&with, &tokens, 512), logits(&without, &tokens, 512), "{file}");
    }
}
