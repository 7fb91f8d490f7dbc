//! Files that break the format: each kind of fault has its own error, which says what and where.

use std::io::Write;

use turbospark_format::{BlockType, Fault, FormatError, Gguf, GgufWriter, Value, quantize};

/// A file put together field by field, with none of the writer's checks.
struct Raw(Vec<u8>);

impl Raw {
    fn new(n_tensors: u64, n_keys: u64) -> Self {
        Self(b"GGUF".to_vec()).u32(3).u64(n_tensors).u64(n_keys)
    }

    fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    fn str(self, text: &str) -> Self {
        self.u64(text.len() as u64).bytes(text.as_bytes())
    }

    fn tensor(self, name: &str, dims: &[u64], block_type: u32, offset: u64) -> Self {
        let described = self.str(name).u32(dims.len() as u32);
        dims.iter().fold(described, |raw, dim| raw.u64(*dim)).u32(block_type).u64(offset)
    }

    /// Pads the header and appends data.
    fn data(mut self, len: usize) -> Vec<u8> {
        self.0.resize(self.0.len().next_multiple_of(32) + len, 0);
        self.0
    }
}

fn fault(bytes: Vec<u8>) -> (u64, Fault) {
    match Gguf::from_bytes(bytes) {
        Err(FormatError::Malformed { offset, fault, .. }) => (offset, fault),
        other => panic!("expected a malformed file, got {other:?}"),
    }
}

fn one_tensor(dims: &[u64], block_type: u32, offset: u64, data: usize) -> Vec<u8> {
    Raw::new(1, 0).tensor("w", dims, block_type, offset).data(data)
}

/// Keys of several types, two tensors.
fn sound() -> Vec<u8> {
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", "llama").set("a.count", 7u32).set("a.list", vec![1.5f32, 2.5]);
    writer.set("tokens", vec!["a".to_owned(), "bc".to_owned()]).set("flag", true);
    writer.tensor("one", &[32, 2], BlockType::Q8_0, quantize(BlockType::Q8_0, &[0.5; 64]).unwrap());
    writer.tensor("two", &[3], BlockType::F32, quantize(BlockType::F32, &[1.0, 2.0, 3.0]).unwrap());
    let mut out = Vec::new();
    writer.write(&mut out).unwrap();
    out
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let whole = sound();
    let two = Gguf::from_bytes(whole.clone()).unwrap().tensor("two").unwrap().clone();
    let end = (two.offset + two.bytes) as usize;
    for len in 0..end {
        let (offset, fault) = fault(whole[..len].to_vec());
        assert!(offset <= len as u64, "cut at {len}: {fault} at {offset}");
        let expected = matches!(fault, Fault::Truncated { .. } | Fault::Count { .. } | Fault::Outside { .. });
        assert!(expected, "cut at {len}: {fault}");
    }
    // The padding behind the last tensor may be missing: some writers leave it out.
    assert!(Gguf::from_bytes(whole[..end].to_vec()).is_ok());
}

#[test]
fn truncation_is_told_with_its_section() {
    let (offset, fault) = fault(Raw::new(0, 1).str("general.name").u32(8).u64(100).bytes(b"short").0);
    assert_eq!(offset, 24 + 8 + 12 + 4 + 8);
    assert_eq!(
        fault.to_string(),
        "the file ends inside metadata \"general.name\": 100 bytes needed, 5 left; it is cut short, download it again"
    );
}

#[test]
fn wrong_magic_and_versions_are_named() {
    assert!(matches!(fault(Vec::new()), (0, Fault::Truncated { left: 0, .. })));
    for (beginning, hint) in [
        (&b"PK\x03\x04............"[..], "ZIP"),
        (b"version https://git-lfs", "LFS"),
        (b"<!DOCTYPE html>", "web page"),
        (b"tjgg............", "before GGUF"),
        (b"FUGG............", "big-endian"),
        (b"\x00\x00\x00\x00\x00\x00", "did not finish"),
        (b"anything", "name a .gguf file"),
    ] {
        let (offset, fault) = fault(beginning.to_vec());
        assert!(offset == 0 && fault.to_string().contains(hint), "{fault}");
    }
    let versioned = |version: u32| Raw(b"GGUF".to_vec()).u32(version).u64(0).u64(0).0;
    assert!(Gguf::from_bytes(versioned(2)).is_ok());
    for version in [0, 1, 4, 0x0101_0101, u32::MAX] {
        assert_eq!(fault(versioned(version)), (4, Fault::Version { version }));
    }
    assert_eq!(fault(versioned(3u32.swap_bytes())), (4, Fault::BigEndian { version: 3 }));
}

#[test]
fn counts_beyond_the_file_are_refused() {
    for count in [1 << 60, u64::MAX, u64::MAX / 33 + 1, 1000] {
        assert!(matches!(fault(Raw::new(count, 0).data(0)), (8, Fault::Count { .. })));
        assert!(matches!(fault(Raw::new(0, count).data(0)), (16, Fault::Count { .. })));
        for element in 0..=12 {
            let raw = Raw::new(0, 1).str("k").u32(9).u32(element).u64(count).data(0);
            let (offset, fault) = fault(raw);
            assert!(
                offset == 24 + 9 + 8 && matches!(fault, Fault::Count { .. }),
                "{element} {count}: {fault}"
            );
        }
    }
    let (offset, fault) = fault(Raw::new(0, 1).str("k").u32(8).u64(u64::MAX).data(0));
    assert!(offset == 24 + 9 + 12 && matches!(fault, Fault::Truncated { needed: u64::MAX, .. }));
}

#[test]
fn bad_keys_and_values_are_named() {
    let key = |key: &str| Raw::new(0, 1).str(key);
    assert!(matches!(fault(key("").u32(4).u64(1).data(0)), (24, Fault::EmptyName { .. })));
    let long = "k".repeat(65_536);
    assert!(matches!(fault(key(&long).u32(4).u64(1).data(0)), (24, Fault::LongName { len: 65_536, .. })));
    assert!(matches!(fault(key("k").u32(13).u64(1).data(0)), (33, Fault::ValueType { number: 13, .. })));
    assert!(matches!(
        fault(key("k").u32(9).u32(99).u64(0).data(0)),
        (37, Fault::ValueType { number: 99, .. })
    ));
    assert!(matches!(fault(key("k").u32(7).bytes(&[2]).data(0)), (37, Fault::Bool { byte: 2, .. })));
    assert!(matches!(
        fault(key("k").u32(8).u64(2).bytes(&[0xc3, 0x28]).data(0)),
        (45, Fault::NotUtf8 { .. })
    ));
    let twice = Raw::new(0, 2).str("k").u32(4).u32(1).str("k").u32(4).u32(2).data(0);
    assert_eq!(fault(twice), (41, Fault::DuplicateKey { key: "k".to_owned() }));
    for (kind, value) in [(4, 0u64), (4, 3), (4, 33), (8, 0), (6, 32)] {
        let raw = key("general.alignment").u32(kind).u64(value).data(0);
        assert!(matches!(fault(raw), (24, Fault::Alignment { .. })), "{kind} {value}");
    }
}

#[test]
fn arrays_nest_to_a_limit() {
    let nested = |depth: usize| {
        let raw = (0..depth - 1).fold(Raw::new(0, 1).str("k").u32(9), |raw, _| raw.u32(9).u64(1));
        raw.u32(4).u64(1).u32(7).data(0)
    };
    assert!(Gguf::from_bytes(nested(8)).is_ok());
    for depth in [9, 100, 100_000] {
        assert!(matches!(fault(nested(depth)).1, Fault::Nesting { limit: 8, .. }));
    }
}

#[test]
fn impossible_shapes_are_refused() {
    assert!(matches!(fault(one_tensor(&[], 0, 0, 64)).1, Fault::Dimensions { dims: 0, .. }));
    assert!(matches!(fault(one_tensor(&[1; 5], 0, 0, 64)).1, Fault::Dimensions { dims: 5, .. }));
    assert!(matches!(fault(one_tensor(&[1; 9], 0, 0, 64)).1, Fault::Dimensions { dims: 9, .. }));
    let million = Raw::new(1, 0).str("w").u32(1_000_000).data(64);
    assert!(matches!(fault(million).1, Fault::Dimensions { dims: 1_000_000, .. }));
    assert!(matches!(fault(one_tensor(&[4, 0], 0, 0, 64)), (_, Fault::ZeroDimension { dim: 1, .. })));
    for dims in [&[1 << 62, 4][..], &[u64::MAX], &[1 << 32, 1 << 32], &[1 << 16, 1 << 16, 1 << 16, 1 << 16]] {
        let fault = fault(one_tensor(dims, 0, 0, 64)).1;
        assert!(matches!(fault, Fault::Overflow { .. }), "{dims:?}: {fault}");
    }
    // Four bits an element: the bytes fit 64 bits, the element count does not.
    assert!(matches!(fault(one_tensor(&[1 << 32, 1 << 32], 2, 0, 64)).1, Fault::Overflow { .. }));
    let fault = fault(one_tensor(&[33], 8, 0, 64)).1;
    assert_eq!(
        fault.to_string(),
        "rows of tensor \"w\" have 33 elements, no multiple of the 32 of a Q8_0 block"
    );
}

#[test]
fn unknown_block_types_are_told_from_those_not_yet_supported() {
    for (number, name) in [
        (16, "IQ2_XXS"),
        (17, "IQ2_XS"),
        (18, "IQ3_XXS"),
        (19, "IQ1_S"),
        (21, "IQ3_S"),
        (22, "IQ2_S"),
        (26, "I32"),
        (29, "IQ1_M"),
        (34, "TQ1_0"),
        (35, "TQ2_0"),
        (40, "NVFP4"),
    ] {
        let tensor = "w".to_owned();
        assert_eq!(fault(one_tensor(&[256], number, 0, 4096)).1, Fault::NotYet { tensor, name });
    }
    for number in [99, u32::MAX] {
        let fault = fault(one_tensor(&[256], number, 0, 4096)).1;
        assert!(fault.to_string().contains(&format!("unknown block type {number}")), "{fault}");
    }
}

#[test]
fn tensors_lie_inside_the_file_and_apart() {
    assert!(Gguf::from_bytes(one_tensor(&[8], 0, 0, 32)).is_ok());
    assert!(matches!(fault(one_tensor(&[8], 0, 0, 31)).1, Fault::Outside { .. }));
    assert!(matches!(fault(one_tensor(&[8], 0, 32, 63)).1, Fault::Outside { .. }));
    for offset in [u64::MAX - 31, 1 << 63, u64::MAX - 63] {
        assert!(matches!(fault(one_tensor(&[8], 0, offset, 64)).1, Fault::Outside { .. }));
    }
    assert!(matches!(
        fault(one_tensor(&[8], 0, 4, 64)).1,
        Fault::Misaligned { offset: 4, alignment: 32, .. }
    ));
    let two = |second| Raw::new(2, 0).tensor("a", &[16], 0, 0).tensor("b", &[8], 0, second).data(128);
    assert!(Gguf::from_bytes(two(64)).is_ok());
    for second in [0, 32] {
        let fault = fault(two(second)).1;
        assert!(matches!(fault, Fault::Overlap { .. }), "{fault}");
    }
}

#[test]
fn tensor_names_are_unique_and_not_empty() {
    let same = Raw::new(2, 0).tensor("a", &[8], 0, 0).tensor("a", &[8], 0, 32).data(64);
    assert_eq!(fault(same).1, Fault::DuplicateTensor { tensor: "a".to_owned() });
    assert!(matches!(fault(Raw::new(1, 0).tensor("", &[8], 0, 0).data(64)).1, Fault::EmptyName { .. }));
}

#[test]
fn what_is_no_readable_file_is_said_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let message = |path: &std::path::Path| Gguf::open(path).unwrap_err().to_string();
    assert!(message(folder.path()).contains("is a directory, not a file"));
    let absent = folder.path().join("absent.gguf");
    assert!(message(&absent).starts_with(&format!("cannot open {}", absent.display())));
    let empty = folder.path().join("empty.gguf");
    std::fs::write(&empty, b"").unwrap();
    assert!(message(&empty).contains("byte 0: the file ends inside the header"));
    #[cfg(unix)]
    {
        assert!(message(std::path::Path::new("/dev/zero")).contains("is a device or a pipe"));
        use std::os::unix::fs::PermissionsExt;
        let locked = folder.path().join("locked.gguf");
        std::fs::write(&locked, sound()).unwrap();
        std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o000)).unwrap();
        if std::fs::File::open(&locked).is_ok() {
            // Not eprintln: the test runner hides what passing tests print by it.
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: unreadable file, because this user may read every file"
            );
        } else {
            assert!(message(&locked).starts_with(&format!("cannot open {}", locked.display())));
        }
    }
}

#[test]
fn metadata_of_another_type_is_an_error_and_not_a_guess() {
    let mut writer = GgufWriter::new();
    writer.set("negative", -1i32).set("wide", 1u64 << 40).set("text", "x").set("floats", vec![1.0f64, 2.0]);
    writer.set("flags", vec![true, false]).set("small", 5u8);
    let mut out = Vec::new();
    writer.write(&mut out).unwrap();
    let gguf = Gguf::from_bytes(out).unwrap();
    let metadata = gguf.metadata();
    assert_eq!(metadata.u64("wide").unwrap(), Some(1 << 40));
    assert_eq!(metadata.u32("small").unwrap(), Some(5));
    assert_eq!(metadata.u32("absent").unwrap(), None);
    assert_eq!(metadata.f32s("floats").unwrap(), Some(vec![1.0, 2.0]));
    assert_eq!(metadata.i64s("flags").unwrap(), Some(vec![1, 0]));
    assert_eq!(metadata.get("text"), Some(&Value::from("x")));
    let message = |result: Result<Option<u32>, FormatError>| result.unwrap_err().to_string();
    assert!(
        message(metadata.u32("negative"))
            .contains("\"negative\" is -1 (i32), expected an integer that fits u32")
    );
    assert!(message(metadata.u32("wide")).contains("1099511627776 (u64)"));
    assert!(message(metadata.u32("text")).contains("\"text\" is string"));
    assert!(metadata.strings("floats").unwrap_err().to_string().contains("\"floats\" is array of f64"));
    assert!(
        metadata.f32("small").is_err() && metadata.bool("small").is_err() && metadata.str("flags").is_err()
    );
}
