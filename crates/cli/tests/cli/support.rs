//! Running the binary, and fixtures with something changed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use turbospark_format::{Gguf, GgufWriter, Value};

/// A fixture of testdata/oracle.
pub(crate) fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle").join(name)
}

/// The small model that most tests use.
pub(crate) fn small() -> PathBuf {
    fixture("llama-a-f32.gguf")
}

/// A real model under models/, or a loud note that the test is skipped.
pub(crate) fn real(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name);
    if path.exists() {
        return Some(path);
    }
    skipped(&format!("models/{name} is not there; tools/fetch-models downloads it"));
    None
}

/// Says that a test is skipped, also where the test runner hides what passing tests print.
pub(crate) fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// What a run of the binary gave.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Ran {
        Ran {
            status: output.status.code().expect("ended by a signal"),
            out: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
            err: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
        }
    }

    /// The same, if it succeeded.
    #[track_caller]
    pub(crate) fn done(self) -> Ran {
        assert_eq!(self.status, 0, "{}", self.err);
        self
    }

    /// Asserts that it failed with one clear message that has all of `parts`, and nothing on standard output.
    #[track_caller]
    pub(crate) fn refused(&self, status: i32, parts: &[&str]) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.out, "", "{self:?}");
        assert!(self.err.starts_with("error: "), "{self:?}");
        for part in parts {
            assert!(self.err.contains(part), "`{part}` is not in {:?}", self.err);
        }
        assert!(!self.err.contains("panicked") && !self.err.contains("backtrace"), "{self:?}");
    }
}

/// The binary with its arguments, away from the user's folders.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_turbospark"));
    command.args(args).stdin(Stdio::null()).env("TURBOSPARK_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// Runs the binary to its end.
pub(crate) fn turbospark(args: &[&str]) -> Ran {
    Ran::of(command(args).output().expect("the binary starts"))
}

/// Runs the binary with `input` on standard input.
pub(crate) fn turbospark_with(args: &[&str], input: &str) -> Ran {
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // A binary that refuses its arguments never reads its input.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    Ran::of(child.wait_with_output().expect("the binary ends"))
}

/// A path as an argument.
pub(crate) fn arg(path: &Path) -> &str {
    path.to_str().expect("test paths are UTF-8")
}

/// Writes `source` to `target` with metadata changed (`None` removes a key) and without the tensor `left_out`.
pub(crate) fn rewrite(
    source: &Path,
    target: &Path,
    changes: &[(&str, Option<Value>)],
    left_out: Option<&str>,
) {
    let gguf = Gguf::open(source).unwrap();
    let mut writer = GgufWriter::new();
    for (key, value) in gguf.metadata().iter() {
        match changes.iter().find(|(k, _)| *k == key) {
            Some((_, None)) => {}
            Some((_, Some(changed))) => {
                writer.set(key, changed.clone());
            }
            None => {
                writer.set(key, value.clone());
            }
        }
    }
    for (key, value) in changes {
        if let (None, Some(value)) = (gguf.metadata().get(key), value) {
            writer.set(*key, value.clone());
        }
    }
    for t in gguf.tensors().iter().filter(|t| Some(t.name.as_str()) != left_out) {
        writer.tensor(t.name.as_str(), &t.shape, t.block_type, gguf.bytes(t));
    }
    writer.write_file(target).unwrap();
}

/// A chat template that shows each message.
pub(crate) const TEMPLATE: &str = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}";

/// A copy of the small model that has a chat template.
pub(crate) fn with_template(folder: &Path) -> PathBuf {
    let path = folder.join("chat.gguf");
    let template = Value::String(TEMPLATE.to_owned());
    rewrite(&small(), &path, &[("tokenizer.chat_template", Some(template))], None);
    path
}
