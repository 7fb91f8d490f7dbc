//! Every GGUF in the workspace's `models/` folder, where there is one: bits, text and memory at real sizes.
//!
//! One test, so that the process's peak memory is that of one model at a time.

use std::io::Write;
use std::path::{Path, PathBuf};

use turbospark_engine::{Engine, EngineOptions, GenerateOptions, SamplingParams, Wanted};

const TEXT: &str = "The quick brown fox jumps over the lazy dog, and the dog, who had been asleep in the sun since the \
                    early morning, did not so much as open an eye to see what had passed over its head.";

/// Says that something is skipped, also where the test runner hides what passing tests print.
fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// Models in `models/`, smallest first: the peak of a process never falls.
fn models() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let mut models: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "gguf"))
        .collect();
    models.sort_by_key(|path| std::fs::metadata(path).map_or(0, |m| m.len()));
    models
}

/// Peak resident memory of this process in bytes, where the system says it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

fn last_logits(engine: &Engine, tokens: &[u32], chunk: usize) -> Vec<u32> {
    let mut bits = Vec::new();
    let mut sequence = engine.sequence();
    engine
        .feed(&mut sequence, tokens, Some(chunk), Wanted::Last, |_, logits| {
            bits = logits.iter().map(|x| x.to_bits()).collect();
        })
        .unwrap();
    bits
}

#[test]
fn real_models_keep_bits_text_and_memory() {
    let models = models();
    if models.is_empty() {
        skipped("no GGUF in models/; tools/fetch-models brings two");
    }
    for path in models {
        let name = path.display();
        let open = |threads| {
            Engine::open(
                &path,
                EngineOptions { threads: Some(threads), context: Some(1024), ..EngineOptions::default() },
            )
            .unwrap()
        };
        // Opened one after the other: a file that is mapped twice counts twice.
        let bits = {
            let engine = open(1);
            last_logits(&engine, &engine.encode(TEXT).unwrap(), 64)
        };
        let engine = open(2);
        let tokens = engine.encode(TEXT).unwrap();
        for chunk in [1, 7, tokens.len()] {
            assert_eq!(last_logits(&engine, &tokens, chunk), bits, "{name}: chunks of {chunk}");
        }

        let mut session = engine.session();
        let options = GenerateOptions {
            sampling: SamplingParams::greedy(),
            max_tokens: Some(8),
            ..GenerateOptions::default()
        };
        let prompt = engine.encode("The capital of France is").unwrap();
        let text: String = session.generate(&prompt, options).unwrap().map(|p| p.unwrap().text).collect();
        assert!(["Paris", "France"].iter().any(|word| text.contains(word)), "{name}: {text:?}");

        // A whole prefill chunk, which is when activations are largest.
        let long: Vec<u32> = tokens.iter().copied().cycle().take(600).collect();
        session.prompt(&long).unwrap();
        let files: u64 = engine.gguf().paths().iter().map(|p| std::fs::metadata(p).unwrap().len()).sum();
        // Every sequence above at the size of the largest.
        let bound = files + 5 * engine.kv_bytes(long.len()) + (100 << 20);
        match peak_memory() {
            Some(peak) => assert!(peak <= bound, "{name}: peak {peak} bytes, bound {bound}"),
            None => skipped("this system doesn't say what memory a process took at most"),
        }
    }
}
