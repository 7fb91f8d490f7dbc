//! Any bytes as a GGUF: an error or a model whose tensors can be read, and a model that is written again reads back
//! equal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use turbospark_format::{Gguf, GgufWriter, dequantize};

fuzz_target!(|bytes: &[u8]| {
    let Ok(gguf) = Gguf::from_bytes(bytes.to_vec()) else { return };
    let mut writer = GgufWriter::new();
    for (key, value) in gguf.metadata().iter() {
        writer.set(key, value.clone());
        // Getters take any value: they convert or refuse.
        let _ = (gguf.metadata().u32(key), gguf.metadata().i64s(key), gguf.metadata().f32s(key));
    }
    for info in gguf.tensors() {
        let stored = gguf.bytes(info);
        assert_eq!(stored.len() as u64, info.bytes);
        let mut values = vec![0.0; info.elements()];
        dequantize(info.block_type, stored, &mut values);
        writer.tensor(info.name.as_str(), &info.shape, info.block_type, stored);
    }
    // Padding to a huge alignment would only fill memory.
    if gguf.metadata().u32("general.alignment").is_ok_and(|alignment| alignment.is_some_and(|n| n > 1 << 16)) {
        return;
    }
    let mut file = Vec::new();
    writer.write(&mut file).expect("what was read can be written");
    let again = Gguf::from_bytes(file).expect("what was written can be read");
    assert_eq!(format!("{:?}", gguf.metadata()), format!("{:?}", again.metadata()));
    for (a, b) in gguf.tensors().iter().zip(again.tensors()) {
        assert_eq!((&a.name, &a.shape, a.block_type), (&b.name, &b.shape, b.block_type));
        assert_eq!(gguf.bytes(a), again.bytes(b));
    }
});
