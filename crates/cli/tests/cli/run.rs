//! `run`: what goes where, and how it ends.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use crate::support::{arg, command, small, turbospark, turbospark_with, with_template};

#[test]
fn text_alone_is_on_standard_output_and_the_statistics_on_standard_error() {
    let model = small();
    let ran = turbospark(&["run", arg(&model), "hello", "--greedy", "-n", "8"]).done();
    assert!(!ran.out.is_empty());
    for part in ["prefill ", "decode ", "tok/s", "first token ", " s"] {
        assert!(ran.err.contains(part), "{}", ran.err);
    }
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    let quiet = turbospark(&["run", arg(&model), "hello", "--greedy", "-n", "8", "--quiet"]).done();
    assert_eq!((quiet.out, quiet.err), (ran.out, String::new()));
}

#[test]
fn a_prompt_is_the_same_as_argument_file_and_standard_input() {
    let (model, dir) = (small(), tempfile::tempdir().unwrap());
    let file = dir.path().join("prompt.txt");
    fs::write(&file, "two words\n").unwrap();
    let tail = ["--greedy", "-n", "12", "-q"];
    let argument = turbospark(&[&["run", arg(&model), "two words"], &tail[..]].concat()).done().out;
    let from_file = turbospark(&[&["run", arg(&model), "--file", arg(&file)], &tail[..]].concat()).done().out;
    let piped = turbospark_with(&[&["run", arg(&model)], &tail[..]].concat(), "two words\n").done().out;
    assert_eq!(argument, from_file);
    assert_eq!(argument, piped);
}

#[test]
fn a_seed_repeats_an_answer_and_the_statistics_name_a_fresh_one() {
    let model = small();
    let run = |seed: &str| {
        turbospark(&["run", arg(&model), "a", "-n", "24", "--temperature", "2", "--seed", seed]).done()
    };
    assert_eq!(run("7").out, run("7").out);
    assert_ne!(run("7").out, run("8").out);
    let fresh = turbospark(&["run", arg(&model), "a", "-n", "24", "--temperature", "2"]).done();
    let seed = fresh.err.trim().rsplit_once("seed ").expect("the seed is named").1;
    assert_eq!(run(seed).out, fresh.out);
}

#[test]
fn threads_change_nothing_and_sampling_flags_do() {
    let model = small();
    let run = |more: &[&str]| {
        turbospark(&[&["run", arg(&model), "abc", "-n", "16", "-q"], more].concat()).done().out
    };
    assert_eq!(run(&["--greedy", "--threads", "1"]), run(&["--greedy", "--threads", "3"]));
    assert_eq!(run(&["--greedy"]), run(&["--top-k", "1", "--seed", "5"]));
    assert_ne!(run(&["--greedy"]), run(&["--greedy", "--frequency-penalty", "50"]));
}

#[test]
fn a_stop_text_ends_the_answer_before_it() {
    let model = small();
    let base = ["run", arg(&model), "hello", "--greedy", "-n", "16", "-q"];
    let whole = turbospark(&base).done().out;
    let stop: String = whole.chars().skip(3).take(2).collect();
    let stopped = turbospark(&[&base[..], &["--stop", &stop]].concat()).done().out;
    assert_eq!(stopped, whole[..whole.find(&stop).unwrap()]);
}

#[test]
fn the_template_is_applied_unless_raw() {
    let dir = tempfile::tempdir().unwrap();
    let model = with_template(dir.path());
    let run = |more: &[&str]| {
        turbospark(&[&["run", arg(&model), "-n", "12", "--greedy", "-q"], more].concat()).done().out
    };
    let templated = run(&["hi", "--system", "be brief"]);
    assert_eq!(templated, run(&["[system] be brief\n[user] hi\n", "--raw"]));
    assert_ne!(templated, run(&["hi", "--raw"]));
}

#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let mut child = command(&["run", arg(&small()), "hello", "--greedy", "-n", "400", "-q"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(err, "");
}

#[test]
fn pages_and_completions_come_from_the_flags() {
    let dir = tempfile::tempdir().unwrap();
    assert!(turbospark(&["man"]).done().out.contains("turbospark"));
    turbospark(&["man", "--dir", arg(dir.path())]).done();
    let page = fs::read_to_string(dir.path().join("turbospark-run.1")).unwrap();
    assert!(page.contains("top\\-k") && page.contains("system"), "{page}");
    for shell in ["bash", "zsh", "fish"] {
        assert!(turbospark(&["completions", shell]).done().out.contains("max-tokens"), "{shell}");
    }
    for help in
        [vec!["--help"], vec!["run", "--help"], vec!["eval", "perplexity", "--help"], vec!["--version"]]
    {
        assert!(!turbospark(&help).done().out.is_empty());
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_with_status_130() {
    use std::os::unix::process::ExitStatusExt;
    let Some(model) = crate::support::real("smollm2-135m-instruct-q4_1.gguf") else { return };
    let mut child = command(&["run", arg(&model), "Count to a million.", "--greedy", "--raw"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first text shows that it generates.
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0]).unwrap();
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    out.read_to_string(&mut String::new()).unwrap();
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    let status = child.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(130), None));
    assert!(err.contains("decode "), "{err}");
}
