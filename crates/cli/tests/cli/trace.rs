//! `trace`: recorded, replayed and drawn by the real binary.

use std::fs;

use serde_json::Value;

use crate::support::{arg, fixture, small, turbospark};

#[test]
fn a_recorded_run_is_replayed_and_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let (trace, plots) = (dir.path().join("run.trace"), dir.path().join("plots"));
    let model = fixture("olmoe-b-f32.gguf");
    let record =
        ["trace", "record", arg(&model), "--out", arg(&trace), "--raw", "--greedy", "-n", "20", "hello"];
    turbospark(&record).done();

    let replay = turbospark(&["trace", "replay", arg(&trace), "--slots", "3,1000000", "--json"]).done();
    let report: Value = serde_json::from_str(&replay.out).unwrap();
    let (experts, requests) = (report["experts"].as_u64().unwrap(), report["requests"].as_u64().unwrap());
    let rows = report["results"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 10);
    for row in rows {
        let sum = |what: &str| row["prefill"][what].as_u64().unwrap() + row["decode"][what].as_u64().unwrap();
        assert_eq!(sum("requests"), requests);
        assert_eq!(sum("hits") + sum("misses"), requests);
        if row["slots"].as_u64().unwrap() == experts {
            assert!(sum("misses") <= experts, "{row}");
        }
    }

    let one = turbospark(&["trace", "replay", arg(&trace), "--policy", "optimum", "--memory", "1GB"]).done();
    assert!(one.out.contains("optimum") && !one.out.contains("lru"), "{}", one.out);

    turbospark(&["trace", "plot", arg(&trace), "--out", arg(&plots)]).done();
    for name in ["experts.svg", "hit-rates.svg"] {
        let svg = fs::read_to_string(plots.join(name)).unwrap();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{name}");
    }
}

#[test]
fn what_cannot_be_recorded_or_replayed_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("run.trace");
    let dense = small();
    turbospark(&["trace", "record", arg(&dense), "--out", arg(&trace), "hello"])
        .refused(1, &["no routed experts"]);
    assert!(!trace.exists());
    turbospark(&["trace", "replay", arg(&dense)]).refused(1, &["no routing trace"]);
    turbospark(&["trace", "replay", arg(&dense), "--policy", "mru"]).refused(2, &["mru", "decayed, lru"]);
    turbospark(&["trace", "replay", arg(&trace)]).refused(1, &["run.trace", "No such file"]);
}
