//! What the writer writes, the reader reads back equal.

use proptest::prelude::*;
use turbospark_format::{Array, BlockType, FormatError, Gguf, GgufWriter, Value, quantize};

fn array() -> impl Strategy<Value = Array> {
    let leaf = prop_oneof![
        any::<Vec<u8>>().prop_map(Array::U8),
        any::<Vec<i8>>().prop_map(Array::I8),
        any::<Vec<u16>>().prop_map(Array::U16),
        any::<Vec<i16>>().prop_map(Array::I16),
        any::<Vec<u32>>().prop_map(Array::U32),
        any::<Vec<i32>>().prop_map(Array::I32),
        any::<Vec<f32>>().prop_map(Array::F32),
        any::<Vec<bool>>().prop_map(Array::Bool),
        prop::collection::vec("\\PC{0,8}", 0..8).prop_map(Array::String),
        any::<Vec<u64>>().prop_map(Array::U64),
        any::<Vec<i64>>().prop_map(Array::I64),
        any::<Vec<f64>>().prop_map(Array::F64),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Array::Array))
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u8>().prop_map(Value::U8),
        any::<i8>().prop_map(Value::I8),
        any::<u16>().prop_map(Value::U16),
        any::<i16>().prop_map(Value::I16),
        any::<u32>().prop_map(Value::U32),
        any::<i32>().prop_map(Value::I32),
        any::<f32>().prop_map(Value::F32),
        any::<bool>().prop_map(Value::Bool),
        "\\PC{0,20}".prop_map(Value::String),
        array().prop_map(Value::Array),
        any::<u64>().prop_map(Value::U64),
        any::<i64>().prop_map(Value::I64),
        any::<f64>().prop_map(Value::F64),
    ]
}

/// A shape, a format, and a byte that the data repeats.
fn tensor() -> impl Strategy<Value = (Vec<usize>, BlockType, u8)> {
    let ty = prop::sample::select(BlockType::ALL.to_vec());
    (prop::collection::vec(1usize..4, 1..5), ty, any::<u8>()).prop_map(|(mut shape, ty, fill)| {
        shape[0] *= ty.block_len();
        (shape, ty, fill)
    })
}

proptest! {
    #[test]
    fn a_written_file_reads_back_equal(
        keys in prop::collection::btree_map("[a-z.]{1,12}", value(), 0..8),
        tensors in prop::collection::btree_map("[a-z.]{1,12}", tensor(), 0..6),
        alignment in prop::option::of(0u32..10),
    ) {
        let mut writer = GgufWriter::new();
        for (key, value) in &keys {
            writer.set(key.as_str(), value.clone());
        }
        if let Some(shift) = alignment {
            writer.set("general.alignment", 1u32 << shift);
        }
        for (name, (shape, ty, fill)) in &tensors {
            let len = ty.row_bytes(shape.iter().product()).unwrap();
            writer.tensor(name.as_str(), shape, *ty, vec![*fill; len]);
        }
        let mut file = Vec::new();
        writer.write(&mut file).unwrap();
        let gguf = Gguf::from_bytes(file).unwrap();

        prop_assert_eq!(gguf.metadata().len(), keys.len() + usize::from(alignment.is_some()));
        for (key, value) in &keys {
            prop_assert_eq!(gguf.metadata().get(key), Some(value));
        }
        prop_assert_eq!(gguf.tensors().len(), tensors.len());
        for ((name, (shape, ty, fill)), info) in tensors.iter().zip(gguf.tensors()) {
            prop_assert_eq!(gguf.tensor(name), Some(info));
            prop_assert_eq!((&info.name, &info.shape, info.block_type), (name, shape, *ty));
            prop_assert!(info.offset.is_multiple_of(1 << alignment.unwrap_or(5)));
            prop_assert_eq!(gguf.bytes(info).len(), ty.row_bytes(info.elements()).unwrap());
            prop_assert!(gguf.bytes(info).iter().all(|b| b == fill));
        }
    }

    /// No byte that a stranger may flip makes the reader panic, and what it accepts it can also lend.
    #[test]
    fn damaged_files_are_refused_or_readable(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut file = sample();
        for (at, byte) in flips {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()));
        }
        if let Ok(gguf) = Gguf::from_bytes(file) {
            for info in gguf.tensors() {
                prop_assert_eq!(gguf.bytes(info).len() as u64, info.bytes);
            }
        }
    }
}

fn sample() -> Vec<u8> {
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", "llama").set("list", vec![1u32, 2, 3]);
    writer.set("nested", Value::Array(Array::Array(vec![Array::U8(vec![1, 2]), Array::Bool(vec![true])])));
    writer.tensor("w", &[32, 2], BlockType::Q8_0, quantize(BlockType::Q8_0, &[0.25; 64]).unwrap());
    writer.tensor("b", &[2], BlockType::F32, vec![0; 8]);
    let mut file = Vec::new();
    writer.write(&mut file).unwrap();
    file
}

#[test]
fn data_is_streamed_in_order_and_checked_for_length() {
    let mut writer = GgufWriter::new();
    writer.tensor_from("a", &[4], BlockType::F16, |out| (0..8u8).try_for_each(|b| out.write_all(&[b])));
    writer.tensor("b", &[1], BlockType::F32, &[9u8; 4][..]);
    let mut file = Vec::new();
    writer.write(&mut file).unwrap();
    let gguf = Gguf::from_bytes(file).unwrap();
    assert_eq!(gguf.bytes(&gguf.tensors()[0]), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(gguf.bytes(&gguf.tensors()[1]), [9; 4]);

    let mut short = GgufWriter::new();
    short.tensor("a", &[4], BlockType::F16, vec![0; 7]);
    let error = short.write(&mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "cannot write \"a\": its data has 7 bytes, its shape 8");
}

#[test]
fn what_the_reader_would_refuse_is_not_written() {
    let refused = |build: fn(&mut GgufWriter<'_>)| {
        let mut writer = GgufWriter::new();
        build(&mut writer);
        let mut out = Vec::new();
        let error = writer.write(&mut out).unwrap_err();
        assert!(out.is_empty(), "{error}");
        error
    };
    let unwritable = |build| assert!(matches!(refused(build), FormatError::Unwritable { .. }));
    unwritable(|w| _ = w.set("", 1u32));
    unwritable(|w| _ = w.set("k".repeat(65_536), 1u32));
    unwritable(|w| _ = w.set("general.alignment", 48u32));
    unwritable(|w| _ = w.tensor("", &[1], BlockType::F32, vec![0; 4]));
    unwritable(|w| _ = w.tensor("a", &[], BlockType::F32, vec![0; 4]));
    unwritable(|w| _ = w.tensor("a", &[1, 0], BlockType::F32, vec![]));
    unwritable(|w| _ = w.tensor("a", &[1; 5], BlockType::F32, vec![0; 4]));
    unwritable(|w| {
        _ = w.tensor("a", &[1], BlockType::F32, vec![0; 4]).tensor("a", &[1], BlockType::F32, vec![0; 4]);
    });
    unwritable(|w| _ = w.tensor("a", &[usize::MAX, 8], BlockType::F32, vec![]));
    unwritable(|w| {
        let deep = (0..8).fold(Array::U8(vec![]), |inner, _| Array::Array(vec![inner]));
        w.set("deep", Value::Array(deep));
    });
    assert!(matches!(
        refused(|w| _ = w.tensor("a", &[31], BlockType::Q8_0, vec![])),
        FormatError::PartialBlock { len: 31, .. }
    ));
}

#[test]
fn a_file_is_replaced_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    let write = |value: u32, bytes: Vec<u8>| {
        let mut writer = GgufWriter::new();
        writer.set("k", value).tensor("a", &[1], BlockType::F32, bytes);
        writer.write_file(&path)
    };
    write(1, vec![0; 4]).unwrap();
    let old = Gguf::open(&path).unwrap();
    assert!(write(2, vec![0; 3]).is_err());
    assert_eq!(Gguf::open(&path).unwrap().metadata().u32("k").unwrap(), Some(1));
    write(3, vec![1; 4]).unwrap();
    assert_eq!(Gguf::open(&path).unwrap().metadata().u32("k").unwrap(), Some(3));
    assert_eq!(old.bytes(&old.tensors()[0]), [0; 4]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
