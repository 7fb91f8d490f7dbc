//! Files and blocks: GGUF and safetensors, and the quantised block formats with their scalar reference.
//!
//! Nothing here knows of models. A file from a stranger ends in data or in a [`FormatError`], never in a panic, and
//! never makes the reader allocate more than a small multiple of the bytes that are there.

mod block;
mod blocks;
mod error;
mod gguf;
mod map;
mod safetensors;

pub use block::BlockType;
pub use blocks::{FP4_VALUES, IQ4_NL_VALUES, dequantize, e8m0_half, quantize};
pub use error::{Fault, FormatError};
pub use gguf::{Array, Gguf, GgufWriter, Metadata, TensorInfo, Value};
pub use safetensors::{Dtype, SafeTensor, SafeTensors, write_safetensors};
