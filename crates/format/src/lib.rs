//! Files and blocks: GGUF and safetensors, and the quantised block formats with their scalar reference.

mod block;

pub use block::BlockType;
