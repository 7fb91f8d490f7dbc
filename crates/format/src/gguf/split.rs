//! Split sets: models published as `NAME-00001-of-0000N.gguf` and so on.
//!
//! The first file holds the model's metadata; every file holds `split.no` (from 0), `split.count` and
//! `split.tensors.count`, its own tensors, and its own data section.

use super::value::Metadata;
use crate::FormatError;
use std::path::{Path, PathBuf};

/// A file name of the form `{stem}-{number:05}-of-{count:05}.gguf`, numbered from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShardName {
    stem: String,
    pub(super) count: u32,
    folder: PathBuf,
}

impl ShardName {
    /// The set that `path` belongs to by its name.
    pub(super) fn parse(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.strip_suffix(".gguf")?;
        let (rest, count) = name.rsplit_once("-of-")?;
        let (stem, number) = rest.rsplit_once('-')?;
        let (number, count) = (five_digits(number)?, five_digits(count)?);
        if !(1..=count).contains(&number) {
            return None;
        }
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Some(Self { stem: stem.to_owned(), count, folder })
    }

    /// The files of the set in order, all of which exist.
    pub(super) fn paths(&self) -> Result<Vec<PathBuf>, FormatError> {
        let paths: Vec<PathBuf> = (1..=self.count)
            .map(|number| self.folder.join(format!("{}-{number:05}-of-{:05}.gguf", self.stem, self.count)))
            .collect();
        let mut missing = paths.iter().filter(|path| !path.exists());
        match missing.next() {
            None => Ok(paths),
            Some(path) => Err(FormatError::MissingShard {
                path: path.clone(),
                count: self.count,
                missing: 1 + missing.count() as u32,
            }),
        }
    }
}

fn five_digits(text: &str) -> Option<u32> {
    if text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// Checks what file `number` (from 0) of `count` says about its place; returns the set's tensor count.
pub(super) fn check_place(
    path: &Path,
    metadata: &Metadata,
    number: u32,
    count: u32,
) -> Result<Option<u64>, FormatError> {
    let fail = |problem| Err(FormatError::Split { path: path.to_owned(), problem });
    match metadata.u64("split.count")? {
        None if count == 1 => return Ok(None),
        None => return fail(format!("it is named as one of {count} files but has no split.count")),
        // Zero is what some writers leave in a file that is whole.
        Some(0) if count == 1 => return Ok(None),
        Some(said) if said != u64::from(count) => {
            return fail(format!("its split.count is {said}, by its name the set has {count}"));
        }
        Some(_) => {}
    }
    match metadata.u64("split.no")? {
        Some(said) if said == u64::from(number) => {}
        Some(said) => return fail(format!("its split.no is {said}, by its name it is number {number}")),
        None => return fail("it has no split.no".to_owned()),
    }
    metadata.u64("split.tensors.count")
}
