//! Frequencies of rotary embeddings, in radians per position.
//!
//! Each step is rounded to f32 where the models' own implementation rounds (PyTorch in single precision): at position
//! 100,000 a frequency's last bit is hundredths of a radian.

/// Plain frequencies of `dims` rotated elements, `[dims / 2]`: `theta^(-2i / dims) / scaling` (Su et al. 2021; linear
/// scaling: Chen et al. 2023).
pub fn frequencies(theta: f32, dims: usize, scaling: f32) -> Vec<f32> {
    powers(theta, dims).map(|power| 1.0 / power / scaling).collect()
}

/// Frequencies under YaRN (Peng et al. 2023, section 3.2), `[dims / 2]`: pairs that turn more than `beta_fast` times in
/// `original_context` positions keep theirs, those that turn less than `beta_slow` times divide it by `factor`, and between
/// the two a ramp over the pairs' indices blends. `round` widens the ramp to whole indices.
pub fn yarn_frequencies(
    theta: f32,
    dims: usize,
    factor: f32,
    original_context: usize,
    beta_fast: f32,
    beta_slow: f32,
    round: bool,
) -> Vec<f32> {
    let pair_that_turns = |times: f32| {
        let wavelength = original_context as f64 / (f64::from(times) * std::f64::consts::TAU);
        dims as f64 * wavelength.ln() / (2.0 * f64::from(theta).ln())
    };
    let (mut low, mut high) = (pair_that_turns(beta_fast), pair_that_turns(beta_slow));
    if round {
        (low, high) = (low.floor(), high.ceil());
    }
    (low, high) = (low.max(0.0), high.min(dims as f64 - 1.0));
    if low == high {
        high += 0.001;
    }
    let (low, width) = (low as f32, (high - low) as f32);
    powers(theta, dims)
        .enumerate()
        .map(|(pair, power)| {
            let kept = 1.0 - ((pair as f32 - low) / width).clamp(0.0, 1.0);
            1.0 / (factor * power) * (1.0 - kept) + 1.0 / power * kept
        })
        .collect()
}

/// `theta^(2i / dims)`, the exponent in f32.
fn powers(theta: f32, dims: usize) -> impl Iterator<Item = f32> {
    (0..dims / 2).map(move |i| {
        let exponent = (2 * i) as f32 / dims as f32;
        f64::from(theta).powf(f64::from(exponent)) as f32
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The constants are the definition's in double precision.
    #[test]
    fn yarn_blends_between_the_pairs_that_turn_often_and_those_that_do_not() {
        let exact = yarn_frequencies(150_000.0, 64, 32.0, 4096, 32.0, 1.0, false);
        let rounded = yarn_frequencies(150_000.0, 64, 32.0, 4096, 32.0, 1.0, true);
        let narrower = yarn_frequencies(10_000.0, 64, 40.0, 4096, 32.0, 1.0, true);
        let cases = [
            (
                &exact,
                [
                    (0, 1.0),
                    (8, 0.050_813_274_815_461_475),
                    (9, 0.031_705_696_184_663_77),
                    (12, 0.006_794_959_489_732_219),
                    (16, 0.000_456_483_919_223_240_86),
                    (17, 0.000_129_318_701_245_063_2),
                    (18, 3.830_881_237_375_338_4e-5),
                    (31, 3.023_511_428_119_214_4e-7),
                ],
            ),
            (
                &rounded,
                [
                    (0, 1.0),
                    (8, 0.050_813_274_815_461_475),
                    (9, 0.031_620_752_275_346_484),
                    (12, 0.007_015_713_910_504_388),
                    (16, 0.000_580_947_501_931_112_4),
                    (17, 0.000_227_947_795_795_125_24),
                    (18, 3.830_881_237_375_338_4e-5),
                    (31, 3.023_511_428_119_214_4e-7),
                ],
            ),
            (
                &narrower,
                [
                    (0, 1.0),
                    (10, 0.056_234_132_519_034_91),
                    (12, 0.026_879_360_111_431_223),
                    (16, 0.005_5),
                    (18, 0.002_249_365_300_761_396),
                    (23, 3.333_803_580_408_31e-5),
                    (24, 2.5e-5),
                    (31, 3.333_803_580_408_309_7e-6),
                ],
            ),
        ];
        for (got, want) in cases {
            assert_eq!(got.len(), 32);
            for (pair, want) in want {
                let got = f64::from(got[pair]);
                assert!((got - want).abs() <= 1e-6 * want, "pair {pair}: {got} instead of {want}");
            }
        }
    }

    #[test]
    fn a_ramp_without_width_and_one_past_the_last_pair_stay_finite() {
        for (context, fast, slow) in [(4096, 1.0, 1.0), (4, 32.0, 1.0), (1 << 28, 32.0, 1.0)] {
            for round in [false, true] {
                for f in yarn_frequencies(10_000.0, 64, 8.0, context, fast, slow, round) {
                    assert!(f > 0.0 && f <= 1.0, "context {context}: {f}");
                }
            }
        }
        // Where only the first pair turns once, all others are interpolated; where each turns often, none is.
        let plain = frequencies(10_000.0, 64, 1.0);
        for (pair, f) in yarn_frequencies(10_000.0, 64, 8.0, 7, 32.0, 1.0, true).iter().enumerate() {
            let want = if pair == 0 { plain[0] } else { plain[pair] / 8.0 };
            assert!((f - want).abs() <= 1e-6 * want, "pair {pair}");
        }
        assert_eq!(yarn_frequencies(10_000.0, 64, 8.0, 1 << 28, 32.0, 1.0, true), plain);
    }

    #[test]
    fn plain_frequencies_are_powers_divided_by_the_scaling() {
        for (theta, dims, scaling) in [(10_000.0, 128, 1.0), (1e6, 128, 4.0), (5e5, 80, 1.0)] {
            for (i, f) in frequencies(theta, dims, scaling).iter().enumerate() {
                let want = f64::from(theta).powf(-2.0 * i as f64 / dims as f64) / f64::from(scaling);
                assert!((f64::from(*f) - want).abs() <= 1e-6 * want);
            }
        }
    }
}
