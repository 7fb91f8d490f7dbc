//! Any bytes as a safetensors file: an error, or tensors that can be read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use turbospark_format::SafeTensors;

fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = SafeTensors::from_bytes(bytes.to_vec()) else { return };
    for name in file.names() {
        let tensor = file.tensor(name).expect("a listed tensor is there");
        let elements: usize = tensor.shape.iter().product();
        assert_eq!(tensor.bytes.len(), elements * tensor.dtype.bytes());
        let _ = file.f32(name);
    }
});
