//! Random numbers and an exponential that are the same on every platform.

/// The generator that the sampler draws from: SplitMix64 (Steele, Lea and Flood 2014).
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The sequence that `seed` starts.
    pub fn new(seed: u64) -> Self {
        SplitMix64(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0..bound`, to within `bound / 2^64`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// `exp(x)` for `x` in `-60..=0` from additions and multiplications alone: platforms' own differ in the last bit.
pub(super) fn exp(x: f64) -> f64 {
    // exp(x) = exp(x / 64)^64, with the series cut where the term is below 1e-16.
    let y = x / 64.0;
    let mut term = 1.0;
    let mut sum = 1.0;
    for n in 1..=18 {
        term *= y / f64::from(n);
        sum += term;
    }
    (0..6).fold(sum, |s, _| s * s)
}
