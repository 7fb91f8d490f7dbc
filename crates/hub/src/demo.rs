//! The demo model: its bytes in the program, and its file in the store.
//!
//! Invariant: what is returned has the embedded bytes. They are compared by length and SHA-256 each time, which takes a few milliseconds.
//!
//! The bytes are pages of the program's file. Copied out of memory they would stay mapped and count as the process's, against a budget
//! that may be as small as the model's floor; so they are read from the file instead, where it can be found.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::{HubError, place};

/// The file's bytes.
static BYTES: &[u8] = include_bytes!("../../../assets/demo.gguf");
/// Their SHA-256 in hexadecimal, and the file's name.
const CHECKSUM: &str = include_str!("../../../assets/demo.sha256");
const FILE: &str = "demo.gguf";
/// Bytes that are copied and hashed at once.
const PIECE: usize = 1 << 16;

/// The model's file in `folder`, which is written unless it is there.
pub(crate) fn unpacked(folder: &Path) -> Result<PathBuf, HubError> {
    let path = folder.join(FILE);
    if is_whole(&path) {
        return Ok(path);
    }
    fs::create_dir_all(folder).map_err(unwritten(folder))?;
    let copied = match place::in_file(BYTES) {
        Some(source) => put(source, &path)?,
        None => false,
    };
    if copied || put(BYTES, &path)? { Ok(path) } else { Err(HubError::Damaged { path }) }
}

/// Whether `path` has the model's bytes.
fn is_whole(path: &Path) -> bool {
    let length = |file: &File| file.metadata().is_ok_and(|m| m.is_file() && m.len() == BYTES.len() as u64);
    File::open(path)
        .is_ok_and(|file| length(&file) && copy(file, io::sink()).is_ok_and(|sum| CHECKSUM.starts_with(&sum)))
}

/// Puts `source` at `path` if its bytes are the model's; the file appears there whole.
fn put(source: impl Read, path: &Path) -> Result<bool, HubError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix("demo.").suffix(".part");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    let mut part = builder.tempfile_in(folder).map_err(unwritten(folder))?;
    let sum = copy(source.take(BYTES.len() as u64), &mut part).map_err(unwritten(path))?;
    if !CHECKSUM.starts_with(&sum) {
        return Ok(false);
    }
    part.as_file().sync_all().map_err(unwritten(path))?;
    part.persist(path).map_err(|e| e.error).map_err(unwritten(path))?;
    // Not every file system lets a folder be written back; the file is whole in any case.
    #[cfg(unix)]
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(true)
}

/// The error of writing at `path`.
fn unwritten(path: &Path) -> impl FnOnce(io::Error) -> HubError {
    let path = path.to_owned();
    move |source| HubError::Write { path, source }
}

/// Copies all of `from` and returns its SHA-256 in hexadecimal.
fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<String> {
    let (mut hash, mut piece) = (Sha256::new(), vec![0; PIECE]);
    loop {
        let n = match from.read(&mut piece) {
            Ok(0) => return Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        hash.update(&piece[..n]);
        to.write_all(&piece[..n])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(folder: &Path) -> PathBuf {
        folder.join("models").join(FILE)
    }

    #[test]
    fn the_checksum_is_that_of_the_embedded_bytes() {
        assert_eq!(CHECKSUM, format!("{}  {FILE}\n", copy(BYTES, io::sink()).unwrap()));
    }

    #[test]
    fn it_is_unpacked_once_and_again_when_it_differs() {
        let dir = tempfile::tempdir().unwrap();
        let path = model(dir.path());
        let unpack = || unpacked(&dir.path().join("models")).unwrap();
        assert_eq!(unpack(), path);
        assert!(fs::read(&path).unwrap() == BYTES);
        let written = || fs::metadata(&path).unwrap().modified().unwrap();
        let first = written();
        unpack();
        assert_eq!(written(), first);
        let mut other = BYTES.to_vec();
        *other.last_mut().unwrap() ^= 1;
        for damaged in [&other[..], &BYTES[1..], &[]] {
            fs::write(&path, damaged).unwrap();
            unpack();
            assert!(fs::read(&path).unwrap() == BYTES, "{} bytes before", damaged.len());
        }
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn many_at_once_all_get_the_whole_file() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("models");
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| assert!(fs::read(unpacked(&folder).unwrap()).unwrap() == BYTES));
            }
        });
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
    }

    #[test]
    fn bytes_that_are_not_the_models_leave_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        assert!(!put(&BYTES[..BYTES.len() - 1], &path).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_store_that_cannot_be_written_says_where_and_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let error = unpacked(&file.join("models")).unwrap_err().to_string();
        assert!(error.contains("file/models") && error.contains("TURBOSPARK_HOME"), "{error}");
    }
}
