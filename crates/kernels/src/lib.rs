//! CPU arithmetic: scalar reference beside SIMD, and the thread pool.
