//! Logits and greedy continuations against the reference, within the fixtures' stated tolerances.

use turbospark_engine::{GenerateOptions, SamplingParams, argmax};

use crate::fixtures::{FLOAT, description, distance, engine, ids, logits, numbers, reference};

/// Float weights, float cache: the fixtures' tolerance.
const FLOAT_TOLERANCE: f64 = 1e-3;

#[test]
fn float_models_match_the_reference_on_prompts_and_continuations() {
    for name in FLOAT {
        let engine = engine(&format!("{name}-f32.gguf"));
        let (text, reference) = (description(name), reference(name));
        for (p, prompt) in text["prompts"].as_array().unwrap().iter().enumerate() {
            let (prompt_ids, greedy) = (ids(&prompt["ids"]), ids(&prompt["greedy"]));
            let n_vocab = engine.spec().n_vocab;
            let all = logits(&engine, &[prompt_ids.clone(), greedy].concat(), 512);
            let rows = all.chunks_exact(n_vocab).collect::<Vec<_>>();
            let expected = reference.f32(&format!("p{p}_logits")).unwrap();
            for (position, row) in ids(&prompt["logits_positions"]).iter().zip(expected.chunks_exact(n_vocab))
            {
                let d = distance(rows[*position as usize], row);
                assert!(d <= FLOAT_TOLERANCE, "{name} prompt {p} position {position}: off by {d}");
            }
            let expected = reference.f32(&format!("p{p}_gen_logits")).unwrap();
            for (g, row) in expected.chunks_exact(n_vocab).enumerate() {
                let d = distance(rows[prompt_ids.len() + g], row);
                assert!(d <= FLOAT_TOLERANCE, "{name} prompt {p} step {g}: off by {d}");
            }
        }
    }
}

#[test]
fn greedy_generation_repeats_the_reference_through_the_cache() {
    for name in FLOAT {
        let engine = engine(&format!("{name}-f32.gguf"));
        let mut session = engine.session();
        for (p, prompt) in description(name)["prompts"].as_array().unwrap().iter().enumerate() {
            let options = GenerateOptions {
                sampling: SamplingParams::greedy(),
                max_tokens: Some(24),
                ignore_stop_tokens: true,
                ..GenerateOptions::default()
            };
            let generation = session.generate(&ids(&prompt["ids"]), options).unwrap();
            let tokens: Vec<u32> = generation.filter_map(|piece| piece.unwrap().token).collect();
            assert_eq!(tokens.len(), 24);
            let expected = ids(&prompt["greedy"]);
            let margins = numbers(&prompt["margins"]);
            // A step whose margin is within the tolerance can go either way: what follows it says nothing.
            let sure = margins.iter().position(|&m| m < 0.01).unwrap_or(expected.len());
            assert!(sure >= 12, "{name} prompt {p} compares {sure} steps only");
            assert_eq!(tokens[..sure], expected[..sure], "{name} prompt {p}");
        }
    }
}

#[test]
fn half_precision_and_quantised_models_stay_within_their_bounds() {
    for name in ["llama_16-a", "llama_q-a"] {
        let (text, reference) = (description(name), reference(name));
        let mut checked = 0;
        for (kind, quant) in text["quants"].as_object().unwrap() {
            let file = quant["file"].as_str().unwrap();
            if !crate::fixtures::folder().join(file).exists() {
                continue;
            }
            checked += 1;
            let engine = engine(file);
            let native =
                quant["prompts"].as_array().unwrap().iter().map(|p| p["native_max_diff"].as_f64().unwrap());
            // Three times what the format's own engine differs by, whose activations are 8-bit as well.
            let tolerance = 3.0 * native.fold(0.0, f64::max);
            let (mut rows, mut same) = (0, 0);
            for (p, prompt) in text["prompts"].as_array().unwrap().iter().enumerate() {
                let n_vocab = engine.spec().n_vocab;
                let all = logits(&engine, &ids(&prompt["ids"]), 512);
                let expected = reference.f32(&format!("{kind}.p{p}_logits")).unwrap();
                for (position, row) in
                    ids(&prompt["logits_positions"]).iter().zip(expected.chunks_exact(n_vocab))
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
        assert!(checked >= 2, "{name}: only {checked} files are here");
    }
}
