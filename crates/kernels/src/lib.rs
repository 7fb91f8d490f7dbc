//! CPU arithmetic: dot products, matrix products, attention, the delta rule, norms, rotary embedding, activations and the
//! choice of experts.
//!
//! [`Cpu`] is the front door: a thread pool and an instruction set, with one method per operation. Every
//! operation has a scalar twin ([`Cpu::scalar`]) that the SIMD code must match bit for bit, and every row's result is
//! independent of the rows beside it, of the number of threads and of how the rows are tiled:
//!
//! * an output of a quantised product is one chain of fused multiply-adds over blocks of 32, in block order, of exact
//!   integer block sums;
//! * an output of a float product is eight interleaved chains that are added in one fixed tree;
//! * attention cuts the cached positions at fixed places and merges the parts in order;
//! * the delta rule takes a sequence's positions one after the other, each value column for itself.
#![allow(unsafe_code)]

mod activation;
mod attention;
#[cfg(target_arch = "x86_64")]
mod avx2;
mod conv;
mod cpu;
mod delta;
mod frequencies;
mod kv;
mod matrix;
mod norm;
mod pool;
mod quantized;
mod rope;
mod route;
mod scalar;

pub use attention::{AttnParams, AttnRow, AttnScratch};
pub use cpu::{Cpu, Isa, default_threads};
pub use delta::{DeltaGates, DeltaShape, DeltaState, DeltaWeights, HeadOrder};
pub use frequencies::{frequencies, yarn_frequencies};
pub use kv::{KvKind, KvLayer, Values};
pub use matrix::{Mat, MatJob, MatScratch};
pub use pool::Pool;
pub use rope::{Pairing, RopeRows};
pub use route::{Groups, NotFinite, RouterParams, Routes, Scoring};
