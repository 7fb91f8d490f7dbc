//! Whatever is wrong, one clear message and the right exit status.

use std::fs;

use turbospark_format::{Array, Gguf, Value};

use crate::support::{
    arg, command, fixture, real, rewrite, skipped, small, turbospark, turbospark_with, with_template,
};

#[test]
fn files_that_are_no_models_are_refused_with_their_name() {
    let dir = tempfile::tempdir().unwrap();
    let whole = fs::read(small()).unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let mut magic = whole.clone();
    magic[..4].copy_from_slice(b"PK\x03\x04");
    let mut version = whole.clone();
    version[4] = 77;
    let cases = [
        (write("empty.gguf", b""), vec![]),
        (write("truncated-header.gguf", &whole[..200]), vec![]),
        (write("truncated-data.gguf", &whole[..whole.len() - 4096]), vec![]),
        (write("magic.gguf", &magic), vec!["GGUF"]),
        (write("version.gguf", &version), vec!["77"]),
        (dir.path().to_owned(), vec!["directory"]),
        (dir.path().join("missing.gguf"), vec!["No such file"]),
    ];
    for (path, parts) in cases {
        let parts = [vec![arg(&path)], parts].concat();
        for command in
            [vec!["run", arg(&path), "hello"], vec!["inspect", arg(&path)], vec!["bench", arg(&path)]]
        {
            turbospark(&command).refused(1, &parts);
        }
    }
}

#[cfg(unix)]
#[test]
fn an_unreadable_file_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("secret.gguf");
    fs::copy(small(), &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&path).is_ok() {
        skipped("this user reads files without permission to (root)");
        return;
    }
    turbospark(&["run", arg(&path), "hello"]).refused(1, &["secret.gguf", "ermission denied"]);
}

#[test]
fn models_with_something_missing_are_refused_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    let run = || turbospark(&["run", arg(&path), "hello"]);
    let text = |s: &str| Some(Value::String(s.to_owned()));

    rewrite(&small(), &path, &[("general.architecture", text("martian"))], None);
    run().refused(1, &["model.gguf", "martian", "supported: ", "llama"]);

    rewrite(&small(), &path, &[], Some("blk.0.attn_q.weight"));
    run().refused(1, &["model.gguf", "blk.0.attn_q.weight", "missing"]);

    rewrite(&fixture("qwen2-a-f32.gguf"), &path, &[("tokenizer.ggml.merges", None)], None);
    run().refused(1, &["merges"]);

    rewrite(&small(), &path, &[("llama.context_length", text("long"))], None);
    run().refused(1, &["llama.context_length"]);
}

#[test]
fn a_model_that_cannot_be_run_can_still_be_inspected() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    let architecture = Value::String("martian".to_owned());
    rewrite(&small(), &path, &[("general.architecture", Some(architecture))], None);
    let ran = turbospark(&["inspect", arg(&path)]).done();
    assert!(ran.out.contains("can't be run") && ran.out.contains("martian"), "{}", ran.out);
}

#[test]
fn text_of_a_file_cannot_steer_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    let evil = Value::String("\u{1b}[2Jgone".to_owned());
    let list = Value::Array(Array::String(vec!["\u{1b}]0;x".to_owned()]));
    rewrite(&small(), &path, &[("general.name", Some(evil)), ("general.tags", Some(list))], None);
    let ran = turbospark(&["inspect", arg(&path)]).done();
    assert!(!ran.out.contains('\u{1b}') && ran.out.contains("gone"), "{}", ran.out);
}

#[test]
fn a_message_quotes_a_file_without_its_control_characters_and_briefly() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    let evil = Value::String(format!("\u{1b}[2J{}", "x".repeat(100_000)));
    rewrite(&small(), &path, &[("general.architecture", Some(evil))], None);
    let ran = turbospark(&["run", arg(&path), "hello"]);
    ran.refused(1, &["model.gguf", "supported: "]);
    assert!(!ran.err.contains('\u{1b}') && ran.err.len() < 5000, "{}", ran.err.len());
}

#[test]
fn a_vocabulary_of_another_size_than_the_embedding_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    let tokens = Value::Array(Array::String((0..300).map(|i| format!("t{i}")).collect()));
    rewrite(&small(), &path, &[("tokenizer.ggml.tokens", Some(tokens))], None);
    turbospark(&["run", arg(&path), "hello"]).refused(1, &["tokenizer.ggml.tokens", "300", "384"]);
}

#[test]
fn weights_that_are_no_numbers_are_an_error_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let (path, ids, out) =
        (dir.path().join("model.gguf"), dir.path().join("ids.json"), dir.path().join("out.safetensors"));
    let mut bytes = fs::read(small()).unwrap();
    let gguf = Gguf::open(small()).unwrap();
    let norm = gguf.tensor("output_norm.weight").unwrap();
    bytes[norm.offset as usize..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    fs::write(&ids, "[1, 2, 3]").unwrap();
    let (path, ids, out) = (arg(&path), arg(&ids), arg(&out));
    for command in [
        vec!["run", path, "hello"],
        vec!["bench", path, "-p", "4", "-n", "0"],
        vec!["bench", path, "-p", "0", "-n", "4"],
        vec!["eval", "logits", path, "--tokens", ids, "--out", out],
        vec!["eval", "divergence", path, "--against", arg(&small()), "--tokens", ids],
    ] {
        turbospark(&command).refused(1, &["NaN", "weights are damaged"]);
    }
    assert!(!std::path::Path::new(out).exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_prompt_without_end_is_not_read_to_its_end() {
    turbospark(&["run", arg(&small()), "--file", "/dev/zero"]).refused(1, &["/dev/zero", "64.0 MB"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_and_a_full_log_is_none() {
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let model = small();
    let run = ["run", arg(&model), "hello", "--greedy", "-n", "3"];
    let ran = command(&run).stdout(full()).output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("standard output: No space left"), "{ran:?}");
    let ran = command(&run).stderr(full()).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
}

#[test]
fn extreme_penalties_still_choose_tokens() {
    let model = small();
    for flags in [
        &["--repetition-penalty", "1e-45"] as &[&str],
        &["--repetition-penalty", "3e38"],
        &["--presence-penalty", "-3e38", "--frequency-penalty", "-3e38"],
        &["--presence-penalty", "3e38", "--frequency-penalty", "3e38"],
    ] {
        let ran = turbospark(&[&["run", arg(&model), "hello", "--seed", "1", "-n", "8"], flags].concat());
        assert_eq!(ran.status, 0, "{flags:?}: {}", ran.err);
    }
}

#[test]
fn an_empty_prompt_is_refused() {
    let (model, dir) = (small(), tempfile::tempdir().unwrap());
    turbospark(&["run", arg(&model), ""]).refused(2, &["prompt is empty"]);
    turbospark_with(&["run", arg(&model)], "\n").refused(2, &["prompt is empty"]);
    let file = dir.path().join("prompt.txt");
    fs::write(&file, "").unwrap();
    turbospark(&["run", arg(&model), "--file", arg(&file)]).refused(2, &["prompt is empty"]);
}

#[test]
fn a_prompt_over_the_context_is_refused_with_both_numbers() {
    // 20 letters are 20 or more tokens of the small vocabulary's bytes, BOS not counted.
    let ran = turbospark(&["run", arg(&small()), "zqzqzqzqzqzqzqzqzqzq", "--raw", "--context", "7"]);
    ran.refused(1, &["tokens", "context of 7"]);
    let tokens: usize = ran.err.split_whitespace().find_map(|w| w.parse().ok()).unwrap();
    assert!(tokens > 7, "{}", ran.err);
}

#[test]
fn wrong_usage_is_status_2() {
    let model = small();
    let model = arg(&model);
    let cases: &[&[&str]] = &[
        &["run", model, "x", "--temperature", "-1"],
        &["run", model, "x", "--temperature", "hot"],
        &["run", model, "x", "--top-p", "0"],
        &["run", model, "x", "--top-p", "1.5"],
        &["run", model, "x", "--min-p", "-0.1"],
        &["run", model, "x", "--top-k", "-3"],
        &["run", model, "x", "--repetition-penalty", "0"],
        &["run", model, "x", "--seed", "abc"],
        &["run", model, "x", "--stop", ""],
        &["run", model, "x", "--kv", "f8"],
        &["run", model, "x", "--threads", "0"],
        &["run", model, "x", "--threads", "100000"],
        &["run", model, "x", "--context", "0"],
        &["run", model, "x", "--context", "99999999999"],
        &["run", model, "x", "--max-tokens", "0"],
        &["run", model, "x", "--greedy", "--temperature", "1"],
        &["run", model, "x", "--greedy", "--seed", "1"],
        &["run", model, "x", "--raw", "--system", "y"],
        &["run", model, "x", "--file", "y"],
        &["run", model, "x", "--frobnicate"],
        &["run"],
        &[],
        &["eval", "divergence", model, "--against", model],
        &["bench", model, "--runs", "0"],
        &["bench", model, "-p", "many"],
    ];
    for case in cases {
        let ran = turbospark(case);
        assert_eq!(ran.status, 2, "{case:?}: {ran:?}");
        assert_eq!(ran.out, "", "{case:?}");
        assert!(!ran.err.is_empty() && !ran.err.contains("panicked"), "{case:?}: {ran:?}");
    }
}

#[test]
fn flags_that_this_model_gives_no_effect_are_refused() {
    let model = small();
    turbospark(&["run", arg(&model), "x", "--system", "y"]).refused(2, &["no chat template", "--system"]);
    turbospark_with(&["chat", arg(&model)], "hello\n").refused(2, &["no chat template"]);
    turbospark(&["bench", arg(&model), "-p", "0", "-n", "0"]).refused(2, &["nothing to measure"]);
}

#[test]
fn a_template_that_fails_is_an_error_and_never_another_template() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    let template = Value::String("{{ raise_exception('no users please') }}".to_owned());
    rewrite(&small(), &path, &[("tokenizer.chat_template", Some(template))], None);
    turbospark(&["run", arg(&path), "x"]).refused(1, &["no users please"]);
    // The same model without its template's help.
    turbospark(&["run", arg(&path), "x", "--raw", "-n", "1"]).done();
}

#[test]
fn a_context_beyond_the_trained_one_is_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let ran =
        turbospark(&["run", arg(&with_template(dir.path())), "x", "-n", "1", "--context", "600"]).done();
    assert!(ran.err.contains("warning: ") && ran.err.contains("512"), "{}", ran.err);
}

#[test]
fn a_real_tokenizer_without_merges_is_refused() {
    let Some(model) = real("smollm2-135m-instruct-q4_1.gguf") else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    rewrite(&model, &path, &[("tokenizer.ggml.merges", None)], None);
    turbospark(&["run", arg(&path), "x"]).refused(1, &["merges"]);
}

#[test]
fn a_damaged_router_is_named_by_its_layer_and_position() {
    let dir = tempfile::tempdir().unwrap();
    for (name, layer) in
        [("qwen3_moe-b-f32.gguf", 0), ("deepseek_v3-b-f32.gguf", 1), ("qwen3_5_moe-b-f32.gguf", 0)]
    {
        let mut bytes = fs::read(fixture(name)).unwrap();
        let gguf = Gguf::open(fixture(name)).unwrap();
        let router = format!("blk.{layer}.ffn_gate_inp.weight");
        let tensor = gguf.tensors().iter().find(|t| t.name == router).unwrap();
        bytes[tensor.offset as usize..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        let ids = dir.path().join("ids.json");
        fs::write(&ids, "[5, 6, 7]").unwrap();
        let out = dir.path().join("out.safetensors");
        let parts = [&format!("layer {layer}, position "), "expert 0", "NaN"];
        turbospark(&["run", arg(&path), "hello"]).refused(1, &parts);
        let eval = ["eval", "logits", arg(&path), "--tokens", arg(&ids), "--out", arg(&out)];
        turbospark(&eval).refused(1, &parts);
        assert!(!out.exists(), "half a result would look like one");
    }
}
