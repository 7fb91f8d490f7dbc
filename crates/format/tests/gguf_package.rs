//! A file by another writer: `testdata/package.gguf`, written by `tools/fixtures/gguf_file.py`.

use turbospark_format::{Array, BlockType, Gguf, Value, dequantize, quantize};

#[test]
fn a_file_of_another_writer_is_read_value_by_value() {
    let gguf = Gguf::open(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/package.gguf")).unwrap();
    let strings = |texts: &[&str]| Array::String(texts.iter().map(|t| (*t).to_owned()).collect());
    let expected = [
        ("general.architecture", Value::from("llama")),
        ("u8", Value::U8(200)),
        ("i8", Value::I8(-100)),
        ("u16", Value::U16(60_000)),
        ("i16", Value::I16(-30_000)),
        ("u32", Value::U32(4_000_000_000)),
        ("i32", Value::I32(-2_000_000_000)),
        ("u64", Value::U64(1 << 63)),
        ("i64", Value::I64(-(1 << 62))),
        ("f32", Value::F32(0.1)),
        ("f64", Value::F64(0.1)),
        ("bool", Value::Bool(true)),
        ("string", Value::from("Grüße, 世界")),
        ("strings", Value::Array(strings(&["", "a", "▁b"]))),
        ("numbers", Value::Array(Array::I32(vec![1, -2, 3]))),
        ("floats", Value::Array(Array::F32(vec![0.5, -1.5]))),
        ("nested", Value::Array(Array::Array(vec![Array::I32(vec![1, 2]), Array::I32(vec![3])]))),
        ("general.alignment", Value::U32(64)),
    ];
    let read: Vec<_> = gguf.metadata().iter().map(|(key, value)| (key, value.clone())).collect();
    assert_eq!(read, expected);

    let ramp: Vec<f32> = (0..96u8).map(f32::from).collect();
    let described: Vec<_> =
        gguf.tensors().iter().map(|t| (t.name.as_str(), t.shape.as_slice(), t.block_type)).collect();
    assert_eq!(
        described,
        [
            ("ramp", &[32, 3][..], BlockType::F32),
            ("half", &[5], BlockType::F16),
            ("blocks", &[32, 3], BlockType::Q8_0)
        ]
    );
    for (info, values) in gguf.tensors().iter().zip([&ramp[..], &ramp[..5], &ramp[..]]) {
        assert!(info.offset.is_multiple_of(64), "{}", info.name);
        assert_eq!(gguf.bytes(info), quantize(info.block_type, values).unwrap(), "{}", info.name);
        let mut expanded = vec![0.0; info.elements()];
        dequantize(info.block_type, gguf.bytes(info), &mut expanded);
        let widest = expanded.iter().zip(values).fold(0f32, |max, (a, b)| max.max((a - b).abs()));
        assert!(widest <= 0.5, "{}: {widest}", info.name);
    }
}
