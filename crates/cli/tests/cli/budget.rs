//! A model several times its budget: what memory the process takes, that nothing else changes, and how it ends when the disk or the user
//! says so.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use turbospark_format::{BlockType, GgufWriter};

use crate::support::{Ran, arg, command, skipped, turbospark};

/// What the tests' runs may take: several times less than the model's experts.
pub(crate) const BUDGET: u64 = 72 << 20;
/// Layers, experts of each, and the width of all that has one.
const LAYERS: u32 = 8;
const EXPERTS: u32 = 64;
const WIDTH: usize = 512;

/// A mixture of experts as gpt-oss has them, of 216 MB, nearly all of it experts; written once for all tests.
pub(crate) fn model() -> &'static Path {
    static MODEL: OnceLock<PathBuf> = OnceLock::new();
    MODEL.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("budget.gguf");
        writer().write_file(&path).unwrap();
        path
    })
}

/// Values that repeat only after many rows.
fn values(n: usize, seed: u32, scale: f32) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..n).flat_map(|_| (next() * scale).to_le_bytes()).collect()
}

/// MXFP4 blocks with random codes and one of four small scales.
fn experts(seed: u32) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as u8
    };
    let blocks = WIDTH * WIDTH / 32 * EXPERTS as usize;
    let mut bytes = Vec::with_capacity(blocks * 17);
    for _ in 0..blocks {
        // E8M0: 2^(e - 127), a fraction of the inverse root of the width.
        bytes.push(119 + next() % 4);
        bytes.extend((0..16).map(|_| next()));
    }
    bytes
}

fn writer() -> GgufWriter<'static> {
    let mut w = GgufWriter::new();
    w.set("general.architecture", "gpt-oss");
    for (key, value) in [
        ("block_count", LAYERS),
        ("context_length", 1 << 20),
        ("embedding_length", WIDTH as u32),
        ("feed_forward_length", WIDTH as u32),
        ("expert_feed_forward_length", WIDTH as u32),
        ("attention.head_count", 8),
        ("attention.head_count_kv", 2),
        ("attention.key_length", 64),
        ("attention.value_length", 64),
        ("expert_count", EXPERTS),
        ("expert_used_count", 4),
        ("attention.sliding_window", 128),
    ] {
        w.set(format!("gpt-oss.{key}"), value);
    }
    w.set("gpt-oss.attention.layer_norm_rms_epsilon", 1e-5_f32);
    w.set("gpt-oss.rope.freq_base", 10_000_f32);
    // A vocabulary of single bytes, none of which ends an answer.
    let printable = |b: &u8| matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let shown = (0..=255).filter(printable).map(char::from);
    let hidden = (0..=255).filter(|b| !printable(b)).zip('\u{100}'..).map(|(_, c)| c);
    let mut tokens: Vec<String> = shown.chain(hidden).map(String::from).collect();
    tokens.extend(["!!", "<|end|>"].map(str::to_owned));
    let n_vocab = tokens.len();
    let mut types = vec![1_i32; n_vocab - 1];
    types.push(3);
    w.set("tokenizer.ggml.model", "gpt2").set("tokenizer.ggml.pre", "gpt-4o");
    w.set("tokenizer.ggml.tokens", tokens).set("tokenizer.ggml.token_type", types);
    w.set("tokenizer.ggml.merges", vec!["! !".to_owned()]);
    w.set("tokenizer.ggml.eos_token_id", n_vocab as u32 - 1);

    let mut seed = 0;
    let mut add = |w: &mut GgufWriter<'_>, name: &str, shape: &[usize], scale: f32| {
        seed += 1;
        let n = shape.iter().product();
        w.tensor(name, shape, BlockType::F32, values(n, seed, scale));
    };
    let norm = |w: &mut GgufWriter<'_>, name: String| {
        let ones: Vec<u8> = (0..WIDTH).flat_map(|_| 1_f32.to_le_bytes()).collect();
        w.tensor(name, &[WIDTH], BlockType::F32, ones);
    };
    add(&mut w, "token_embd.weight", &[WIDTH, n_vocab], 1.0);
    for layer in 0..LAYERS {
        let blk = |name: &str| format!("blk.{layer}.{name}");
        for (name, rows) in [("attn_q", 512), ("attn_k", 128), ("attn_v", 128), ("attn_output", WIDTH)] {
            add(&mut w, &blk(&format!("{name}.weight")), &[512, rows], 0.02);
            add(&mut w, &blk(&format!("{name}.bias")), &[rows], 0.1);
        }
        add(&mut w, &blk("attn_sinks.weight"), &[8], 1.0);
        add(&mut w, &blk("ffn_gate_inp.weight"), &[WIDTH, EXPERTS as usize], 0.2);
        add(&mut w, &blk("ffn_gate_inp.bias"), &[EXPERTS as usize], 0.1);
        for name in ["ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"] {
            add(&mut w, &blk(&format!("{name}.bias")), &[WIDTH, EXPERTS as usize], 0.1);
        }
        norm(&mut w, blk("attn_norm.weight"));
        norm(&mut w, blk("post_attention_norm.weight"));
    }
    norm(&mut w, "output_norm.weight".to_owned());
    add(&mut w, "output.weight", &[WIDTH, n_vocab], 0.05);
    // Last, so that a shorter file lacks experts and nothing else.
    for layer in 0..LAYERS {
        for (i, name) in ["gate", "up", "down"].into_iter().enumerate() {
            let name = format!("blk.{layer}.ffn_{name}_exps.weight");
            let shape = [WIDTH, WIDTH, EXPERTS as usize];
            w.tensor(name, &shape, BlockType::MXFP4, experts(layer * 3 + i as u32 + 1000));
        }
    }
    w
}

/// A run of `path` that generates `n` tokens.
fn generate<'a>(path: &'a Path, n: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let base = ["run", arg(path), "Streams of experts", "--raw", "--greedy", "-c", "512", "-n", n];
    [&base[..], more].concat()
}

fn memory() -> String {
    BUDGET.to_string()
}

/// A memory cgroup of a test, version 1 or 2.
pub(crate) struct Group {
    path: PathBuf,
    second: bool,
}

impl Group {
    /// One with `limit`, or a loud note that the test is skipped.
    pub(crate) fn new(limit: u64) -> Option<Group> {
        let root = Path::new("/sys/fs/cgroup");
        let second = !root.join("memory").is_dir();
        let parent = if second { root.to_owned() } else { root.join("memory") };
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("turbospark-test-{}-{number}", std::process::id()));
        let made = || {
            if second {
                fs::write(root.join("cgroup.subtree_control"), "+memory")?;
            }
            fs::create_dir(&path)?;
            fs::write(
                path.join(if second { "memory.max" } else { "memory.limit_in_bytes" }),
                limit.to_string(),
            )
        };
        match made() {
            Ok(()) => Some(Group { path, second }),
            Err(error) => {
                skipped(&format!("a memory cgroup can't be made: {error}"));
                let _ = fs::remove_dir(&path);
                None
            }
        }
    }

    /// The binary, which moves into the group before it begins.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let inner = command(args);
        let mut outer = Command::new("sh");
        outer.arg("-c").arg("echo $$ > \"$0\" && exec \"$@\"").arg(self.path.join("cgroup.procs"));
        outer.arg(inner.get_program()).args(inner.get_args());
        outer.envs(inner.get_envs().filter_map(|(key, value)| Some((key, value?)))).stdin(Stdio::null());
        outer
    }

    /// What its processes hold and can't give back: anonymous memory and mapped pages of files.
    fn held(&self) -> u64 {
        let stat = fs::read_to_string(self.path.join("memory.stat")).unwrap_or_default();
        let names = if self.second { ["anon", "file_mapped"] } else { ["total_rss", "total_mapped_file"] };
        let of = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            names.contains(&name).then(|| value.parse::<u64>().ok())?
        };
        stat.lines().filter_map(of).sum()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..100 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The bytes after `peak memory ` in the statistics.
pub(crate) fn peak(err: &str) -> f64 {
    let told = err.split_once("peak memory ").expect("the statistics tell the peak").1;
    let mut words = told.split_whitespace();
    let number: f64 = words.next().unwrap().parse().unwrap();
    number * if words.next().unwrap().starts_with("GB") { 1e9 } else { 1e6 }
}

#[test]
fn the_process_stays_in_its_budget_and_says_the_same() {
    let whole = turbospark(&generate(model(), "24", &["--memory", "100000000000", "-q"])).done().out;
    assert!(!whole.is_empty());
    let Some(group) = Group::new(BUDGET) else { return };
    let memory = memory();
    let args = generate(model(), "24", &["--memory", &memory]);
    let started = Instant::now();
    let mut child = group.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        most = most.max(group.held());
        std::thread::sleep(Duration::from_millis(2));
    }
    let took = started.elapsed();
    let ran = Ran::of(child.wait_with_output().unwrap()).done();
    assert_eq!(ran.out, whole);
    assert!(ran.err.contains("hits"), "the experts were not streamed: {}", ran.err);
    assert!(most > 0 && most <= BUDGET, "held {most} of {BUDGET}: {}", ran.err);
    assert!(peak(&ran.err) <= BUDGET as f64, "{BUDGET}: {}", ran.err);
    assert!(took < Duration::from_secs(60), "{took:?}");
}

#[test]
fn two_processes_stream_one_file() {
    let memory = memory();
    let args = generate(model(), "12", &["--memory", &memory, "-q"]);
    let start = || command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let both = [start(), start()].map(|child| Ran::of(child.wait_with_output().unwrap()).done().out);
    assert_eq!(both[0], both[1]);
    assert_eq!(both[0], turbospark(&args).done().out);
}

#[test]
fn a_model_on_a_read_only_file_system_streams() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let [from, to] = ["writable", "read-only"].map(|name| dir.path().join(name));
    [&from, &to].into_iter().for_each(|folder| fs::create_dir(folder).unwrap());
    fs::hard_link(model(), from.join("model.gguf")).unwrap();
    let mount = |args: &[&str]| Command::new("mount").args(args).output().is_ok_and(|o| o.status.success());
    // The kernel may hold the file for a moment after its reader is gone.
    let unmount = || Command::new("umount").args(["--lazy", arg(&to)]).output();
    if !mount(&["--bind", arg(&from), arg(&to)]) || !mount(&["-o", "remount,bind,ro", arg(&to)]) {
        let _ = unmount();
        return skipped("this process may not mount, so there is no read-only file system");
    }
    let path = to.join("model.gguf");
    let read_only = File::options().append(true).open(&path).is_err();
    let memory = memory();
    let ran = turbospark(&generate(&path, "4", &["--memory", &memory]));
    assert!(unmount().is_ok_and(|o| o.status.success()));
    assert!(read_only);
    assert!(!ran.done().out.is_empty());
}

#[test]
fn a_file_system_without_direct_reads_is_read_buffered_and_that_is_said() {
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else { return skipped("there is no /dev/shm") };
    let path = dir.path().join("model.gguf");
    if fs::copy(model(), &path).is_err() {
        return skipped("/dev/shm has no room for the model");
    }
    let memory = memory();
    let bench = ["bench", arg(&path), "-p", "0", "-n", "4", "-r", "1", "--memory", &memory, "--json"];
    let report: serde_json::Value = serde_json::from_str(&turbospark(&bench).done().out).unwrap();
    let choice = report["io"]["choice"].as_str().unwrap();
    if !choice.contains("buffered") {
        return skipped(&format!("this system reads /dev/shm directly: {choice}"));
    }
    assert!(report["results"][0]["experts"]["bytes_per_token"].as_f64().unwrap() > 0.0, "{report}");
    let same = |path: &Path| turbospark(&generate(path, "8", &["--memory", &memory, "-q"])).done().out;
    assert_eq!(same(&path), same(model()));
    turbospark(&generate(&path, "8", &["--memory", &memory, "--io", "direct"]))
        .refused(1, &["direct", arg(&path)]);
}

/// A long generation that streams, after its first text.
pub(crate) fn running(path: &Path) -> Child {
    let memory = memory();
    let mut child = command(&generate(path, "500", &["--memory", &memory]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let first = child.stdout.as_mut().unwrap().read(&mut [0; 16]).unwrap();
    assert!(first > 0, "{:?}", child.wait_with_output());
    child
}

#[test]
fn ctrl_c_amid_reads_ends_it_soon_with_status_130() {
    let child = running(model());
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let started = Instant::now();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.status, 130, "{ran:?}");
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
}

#[test]
fn a_file_that_gets_shorter_while_it_is_read_is_an_error_that_names_it() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("shrinks.gguf");
    fs::copy(model(), &path).unwrap();
    let child = running(&path);
    // The first half has all that is no expert.
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    let _ = std::io::stderr().flush();
    assert_eq!(ran.status, 1, "{ran:?}");
    let last = ran.err.lines().last().unwrap_or_default();
    assert!(last.starts_with("error: ") && last.contains("shrinks.gguf"), "{ran:?}");
}
