//! The `turbospark` command line.
fn main() {}
