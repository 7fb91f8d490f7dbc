pub(super) struct Meddler;
impl Meddler {
    pub(super) fn call(&self, _o: u64, r: std::io::Result<usize>) -> std::io::Result<usize> {
        r
    }
}
impl std::fmt::Debug for Meddler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("m")
    }
}
