//! An architecture as data: one ModelSpec, one small file per family.
