//! Split sets: any file opens the whole, and every contradiction is told with the file that makes it.

use std::path::{Path, PathBuf};
use turbospark_format::{BlockType, Fault, FormatError, Gguf, GgufWriter};

/// What one file of a set says; the sound values are those of [`write_set`].
struct Shard {
    number: Option<u16>,
    count: Option<u16>,
    tensors: i32,
    name: String,
}

fn write_set(folder: &Path, change: impl Fn(usize, &mut Shard)) -> Vec<PathBuf> {
    (0..3)
        .map(|i| {
            let mut shard =
                Shard { number: Some(i as u16), count: Some(3), tensors: 3, name: format!("t{i}") };
            change(i, &mut shard);
            let mut writer = GgufWriter::new();
            if i == 0 {
                writer.set("general.architecture", "llama");
            }
            if let Some(number) = shard.number {
                writer.set("split.no", number);
            }
            if let Some(count) = shard.count {
                writer.set("split.count", count);
            }
            writer.set("split.tensors.count", shard.tensors);
            writer.tensor(shard.name, &[4], BlockType::F32, vec![i as u8; 16]);
            let path = folder.join(format!("my-model-{:05}-of-00003.gguf", i + 1));
            writer.write_file(&path).unwrap();
            path
        })
        .collect()
}

#[test]
fn any_file_opens_the_set() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write_set(folder.path(), |_, _| {});
    for path in &paths {
        let gguf = Gguf::open(path).unwrap();
        assert_eq!(gguf.paths(), paths);
        assert_eq!(gguf.metadata().str("general.architecture").unwrap(), Some("llama"));
        for (i, info) in gguf.tensors().iter().enumerate() {
            assert_eq!((info.name.as_str(), info.shard), (format!("t{i}").as_str(), i));
            assert_eq!(gguf.bytes(info), [i as u8; 16]);
            gguf.prefetch(info);
        }
    }
}

#[test]
fn a_missing_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write_set(folder.path(), |_, _| {});
    std::fs::remove_file(&paths[1]).unwrap();
    let error = Gguf::open(&paths[2]).unwrap_err();
    assert!(matches!(&error, FormatError::MissingShard { path, count: 3, missing: 1 } if *path == paths[1]));
    assert!(error.to_string().contains("my-model-00002-of-00003.gguf is missing"));
    // The file that was named is missing itself: the plain answer.
    assert!(matches!(Gguf::open(&paths[1]), Err(FormatError::Io { .. })));
}

#[test]
fn contradictions_name_the_file_that_makes_them() {
    type Change = fn(&mut Shard);
    let cases: [(Change, &str); 5] = [
        (|shard| shard.number = Some(0), "split.no is 0, by its name it is number 1"),
        (|shard| shard.number = None, "has no split.no"),
        (|shard| shard.count = Some(4), "split.count is 4, by its name the set has 3"),
        (|shard| shard.count = None, "has no split.count"),
        (|shard| shard.tensors = 4, "split.tensors.count is 4, the first file's is another"),
    ];
    for (change, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let paths = write_set(folder.path(), |i, shard| {
            if i == 1 {
                change(shard);
            }
        });
        let error = Gguf::open(&paths[0]).unwrap_err();
        assert!(matches!(&error, FormatError::Split { path, .. } if *path == paths[1]), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let paths = write_set(folder.path(), |_, shard| shard.tensors = 5);
    let error = Gguf::open(&paths[0]).unwrap_err();
    assert!(error.to_string().contains("split.tensors.count is 5, the set has 3"), "{error}");
}

#[test]
fn a_renamed_file_of_a_set_is_not_taken_for_a_whole_model() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write_set(folder.path(), |_, _| {});
    let renamed = folder.path().join("renamed.gguf");
    std::fs::copy(&paths[0], &renamed).unwrap();
    let error = Gguf::open(&renamed).unwrap_err();
    assert!(error.to_string().contains("split.count is 3"), "{error}");
}

#[test]
fn a_name_in_two_files_is_a_duplicate() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write_set(folder.path(), |_, shard| shard.name = "same".to_owned());
    match Gguf::open(&paths[0]).unwrap_err() {
        FormatError::Malformed { path, fault: Fault::DuplicateTensor { tensor }, .. } => {
            assert_eq!((path, tensor.as_str()), (paths[1].clone(), "same"));
        }
        other => panic!("{other}"),
    }
}
