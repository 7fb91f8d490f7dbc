//! The model that comes with the program: it is found by name, tells a story, and tells the same one out of the smallest memory that opens.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Ran, arg, command, turbospark, turbospark_with};

const GREEDY: [&str; 4] = ["run", "demo", "Once upon a time", "--greedy"];

/// The binary with a store of its own.
fn at_home(home: &Path, args: &[&str]) -> Ran {
    Ran::of(command(args).env("TURBOSPARK_HOME", home).output().unwrap())
}

/// The shares of hits in prefill and decode, in percent.
fn hits(err: &str) -> [f64; 2] {
    let told = err.split_once("experts ").unwrap_or_else(|| panic!("nothing was streamed: {err}")).1;
    let mut shares = told.split(" %").map(|part| part.rsplit(' ').next().unwrap().parse().unwrap());
    [shares.next().unwrap(), shares.next().unwrap()]
}

#[test]
fn it_is_unpacked_into_the_store_and_tells_a_whole_story() {
    let home = tempfile::tempdir().unwrap();
    let first = at_home(home.path(), &GREEDY).done();
    assert!(first.out.starts_with("Once upon a time") && first.out.ends_with(['.', '!', '"']), "{first:?}");
    assert!(first.out.len() > 500, "{first:?}");
    let asset = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/demo.gguf");
    assert!(fs::read(home.path().join("models/demo.gguf")).unwrap() == fs::read(asset).unwrap());
    assert_eq!(at_home(home.path(), &GREEDY).done().out, first.out);
}

#[cfg(target_os = "linux")]
#[test]
fn the_smallest_budget_tells_the_same_story_with_experts_from_the_disk() {
    use crate::budget::{Group, peak};

    let report: Value =
        serde_json::from_str(&turbospark(&["plan", "demo", "--threads", "2", "--json"]).done().out).unwrap();
    let floor = report["floor"].as_u64().expect("the plan names the floor");
    let whole = turbospark(&[&GREEDY[..], &["--threads", "2", "--memory", "4GiB"]].concat()).done();
    assert!(!whole.err.contains("hits"), "{}", whole.err);
    let memory = floor.to_string();
    let small = [&GREEDY[..], &["--threads", "2", "--memory", &memory]].concat();
    // The first run of a home also unpacks.
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let Some(group) = Group::new(floor) else { return };
    for _ in 0..2 {
        let mut run = group.command(&small);
        let ran = Ran::of(run.env("TURBOSPARK_HOME", home.path()).output().unwrap()).done();
        assert_eq!(ran.out, whole.out);
        assert!(hits(&ran.err)[1] > 0.0 && hits(&ran.err)[1] < 100.0, "{}", ran.err);
        assert!(peak(&ran.err) <= floor as f64, "{floor}: {}", ran.err);
    }
    let below = (floor - (1 << 20)).to_string();
    turbospark(&["run", "demo", "x", "--threads", "2", "--memory", &below]).refused(1, &["MiB"]);
}

#[test]
fn two_that_start_at_once_both_find_it() {
    let home = tempfile::tempdir().unwrap();
    let start = || {
        command(&[&GREEDY[..], &["-n", "8", "-q"]].concat())
            .env("TURBOSPARK_HOME", home.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let both = [start(), start()].map(|child| Ran::of(child.wait_with_output().unwrap()).done().out);
    assert_eq!(both[0], both[1]);
}

#[test]
fn every_command_knows_it() {
    let dir = tempfile::tempdir().unwrap();
    let [text, trace] = ["text", "trace"].map(|name| dir.path().join(name));
    fs::write(&text, "Once upon a time, there was a small fox. ".repeat(20)).unwrap();
    for args in [
        &["inspect", "demo"][..],
        &["bench", "demo", "-p", "8", "-n", "8", "-r", "1"],
        &["eval", "perplexity", "demo", "--file", arg(&text), "-c", "32"],
        &["eval", "divergence", "demo", "--against", "demo", "--file", arg(&text)],
        &["trace", "record", "demo", "--out", arg(&trace), "A story", "-n", "4"],
    ] {
        assert!(!turbospark(args).done().out.is_empty(), "{args:?}");
    }
}

#[test]
fn chat_without_a_model_takes_it_and_says_so() {
    let tail = ["--greedy", "-n", "12", "-q"];
    let ran = turbospark_with(&[&["chat"], &tail[..]].concat(), "Tell me a story.\n").done();
    assert!(ran.err.contains("`demo`"), "{ran:?}");
    let named = turbospark_with(&[&["chat", "demo"], &tail[..]].concat(), "Tell me a story.\n").done();
    assert_eq!((named.out, named.err), (ran.out, String::new()));
}

#[test]
fn names_that_are_not_there_and_homes_that_cannot_be_written_are_refused() {
    turbospark(&["run", "dmeo", "x"]).refused(1, &["`dmeo`", "demo"]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    at_home(&file, &["run", "demo", "x"]).refused(1, &[arg(&file), "TURBOSPARK_HOME"]);
}
