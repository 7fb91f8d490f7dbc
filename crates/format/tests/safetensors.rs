//! Safetensors: reading, writing, and files that break the format.

use proptest::prelude::*;
use turbospark_format::{Dtype, Fault, FormatError, SafeTensors, write_safetensors};

fn file(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

fn fault(bytes: Vec<u8>) -> Fault {
    match SafeTensors::from_bytes(bytes) {
        Err(FormatError::Malformed { fault, .. }) => fault,
        other => panic!("expected a malformed file, got {other:?}"),
    }
}

#[test]
fn tensors_are_read_with_their_dtypes() {
    let header = r#"{"__metadata__":{"format":"pt"},
        "h":{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]},
        "b":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]},
        "i":{"dtype":"I64","shape":[],"data_offsets":[8,16]},
        "none":{"dtype":"F32","shape":[0,7],"data_offsets":[16,16]}}"#;
    let data = [0x00, 0x3c, 0x00, 0xc0, 0x80, 0x3f, 0x00, 0xc0, 5, 0, 0, 0, 0, 0, 0, 0];
    let read = SafeTensors::from_bytes(file(header, &data)).unwrap();
    assert_eq!(read.names().collect::<Vec<_>>(), ["h", "b", "i", "none"]);
    assert_eq!(read.f32("h").unwrap(), [1.0, -2.0]);
    assert_eq!(read.f32("b").unwrap(), [1.0, -2.0]);
    assert_eq!(read.f32("none").unwrap(), [0.0; 0]);
    let tensor = read.tensor("i").unwrap();
    assert_eq!((tensor.dtype, tensor.shape, tensor.bytes), (Dtype::I64, &[][..], &data[8..]));
    assert!(read.f32("i").unwrap_err().to_string().contains("dtype I64"));
    assert!(matches!(read.f32("absent"), Err(FormatError::NoTensor { .. })));
    assert!(read.tensor("__metadata__").is_none());
}

#[test]
fn broken_files_are_refused() {
    let one = |fields: &str| file(&format!(r#"{{"a":{{{fields}}}}}"#), &[0; 16]);
    assert!(matches!(fault(vec![1, 2, 3]), Fault::Truncated { needed: 8, left: 3, .. }));
    assert!(matches!(fault(u64::MAX.to_le_bytes().to_vec()), Fault::Truncated { needed: u64::MAX, .. }));
    for header in ["", "{", "[]", "{}}", r#"{"a":1}"#, r#"{"a":{}}"#, &"[".repeat(100_000)] {
        let fault = fault(file(header, &[]));
        assert!(matches!(fault, Fault::SafetensorsHeader { .. }), "{fault}");
    }
    for (fields, expected) in [
        (r#""dtype":"F99","shape":[4],"data_offsets":[0,16]"#, r#"unknown dtype "F99""#),
        (r#""dtype":"F32","shape":[-4],"data_offsets":[0,16]"#, "-4"),
        (r#""dtype":"F32","shape":[4],"data_offsets":[0,12]"#, "need 16 bytes"),
        (r#""dtype":"F32","shape":[4],"data_offsets":[16,0]"#, "need 16 bytes"),
        (r#""dtype":"F32","shape":[5],"data_offsets":[0,20]"#, "cut short"),
        (r#""dtype":"F32","shape":[5],"data_offsets":[0,18446744073709551615]"#, "cut short"),
        (r#""dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]"#, "overflows"),
    ] {
        let fault = fault(one(fields)).to_string();
        assert!(fault.contains(expected), "{fault}");
    }
    let entry = |begin, end| format!(r#"{{"dtype":"U8","shape":[8],"data_offsets":[{begin},{end}]}}"#);
    let two =
        |a: &str, b: &str| file(&format!(r#"{{"{a}":{},"{b}":{}}}"#, entry(0, 8), entry(4, 12)), &[0; 16]);
    assert!(matches!(fault(two("a", "b")), Fault::Overlap { .. }));
    assert!(matches!(fault(two("a", "a")), Fault::DuplicateTensor { .. }));
}

proptest! {
    #[test]
    fn a_written_file_reads_back_equal(
        tensors in prop::collection::btree_map("\\PC{1,8}", prop::collection::vec(any::<f32>(), 0..20), 0..5),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.safetensors");
        let shapes: Vec<[usize; 2]> = tensors.values().map(|values| [1, values.len()]).collect();
        let listed: Vec<(&str, &[usize], &[f32])> = tensors
            .iter()
            .zip(&shapes)
            .map(|((name, values), shape)| (name.as_str(), &shape[..], values.as_slice()))
            .collect();
        write_safetensors(&path, &listed).unwrap();
        let read = SafeTensors::open(&path).unwrap();
        prop_assert_eq!(read.names().len(), tensors.len());
        for (name, shape, values) in listed {
            prop_assert_eq!(read.tensor(name).unwrap().shape, shape);
            prop_assert_eq!(read.f32(name).unwrap(), values);
        }
    }

    #[test]
    fn damaged_files_never_panic(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let header = r#"{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"b":{"dtype":"I8","shape":[3],"data_offsets":[16,19]}}"#;
        let mut bytes = file(header, &[0; 19]);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes.truncate(cut.index(bytes.len() + 1));
        if let Ok(read) = SafeTensors::from_bytes(bytes) {
            for name in read.names() {
                prop_assert!(read.tensor(name).is_some());
            }
        }
    }
}

#[test]
fn values_that_do_not_fill_the_shape_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.safetensors");
    let error = write_safetensors(&path, &[("a", &[2, 2], &[1.0])]).unwrap_err();
    assert_eq!(error.to_string(), "cannot write \"a\": 1 values do not fill shape [2, 2]");
    assert!(write_safetensors(&path, &[("a", &[1], &[1.0]), ("a", &[1], &[1.0])]).is_err());
    assert!(!path.exists());
}
