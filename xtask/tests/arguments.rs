//! What the command says to arguments that can't be meant.

use std::process::Command;

/// Exit status and standard error of `xtask synth` with these arguments and a file that must not appear.
fn refused(arguments: &[&str]) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("model.gguf");
    let done = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("synth")
        .args(arguments)
        .arg("--out")
        .arg(&out)
        .output()
        .unwrap();
    assert!(!out.exists(), "{arguments:?}");
    (done.status.code().unwrap(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn arguments_without_sense_are_refused_by_name() {
    let cases: [(&[&str], &str); 6] = [
        (&["gpt-oss-120b"], "gpt-oss-20b"),
        (&["gpt-oss-20b", "--layers", "0"], "--layers"),
        (&["gpt-oss-20b", "--vocab", "100"], "259"),
        (&["gpt-oss-20b", "--experts", "Q5_K"], "F32, F16, Q4_0, Q8_0, Q4_K, Q6_K, BF16, MXFP4"),
        (&["qwen3-30b-a3b", "--dense", "8bit"], "--dense"),
        (&["gpt-oss-20b", "--seed", "-1"], "-1"),
    ];
    for (arguments, expected) in cases {
        let (status, error) = refused(arguments);
        assert_eq!(status, 2, "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

#[test]
fn a_format_of_too_large_blocks_is_refused_with_the_reason() {
    let (status, error) = refused(&["gpt-oss-20b", "--experts", "q4_k"]);
    assert_eq!(status, 1);
    assert!(error.contains("rows of 2880 values, no whole number of Q4_K blocks of 256"), "{error}");
}
