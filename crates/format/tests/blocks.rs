//! The block formats against other implementations: `testdata/blocks.safetensors`, written by
//! `tools/fixtures/blocks.py`.

use proptest::prelude::*;
use turbospark_format::{BlockType, FormatError, SafeTensors, dequantize, quantize};

fn fixture() -> SafeTensors {
    SafeTensors::open(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/blocks.safetensors")).unwrap()
}

fn bytes<'a>(fixture: &'a SafeTensors, name: &str) -> &'a [u8] {
    fixture.tensor(name).unwrap_or_else(|| panic!("the fixture has no {name}")).bytes
}

fn expand(ty: BlockType, bytes: &[u8]) -> Vec<f32> {
    let mut out = vec![0.0; bytes.len() / ty.block_bytes() * ty.block_len()];
    dequantize(ty, bytes, &mut out);
    out
}

fn root_mean_square_error(ty: BlockType, stored: &[u8], values: &[f32]) -> f64 {
    let squares = expand(ty, stored).iter().zip(values).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
    (squares / values.len() as f64).sqrt()
}

const WRITABLE: [BlockType; 8] = [
    BlockType::F32,
    BlockType::F16,
    BlockType::BF16,
    BlockType::Q8_0,
    BlockType::Q4_0,
    BlockType::Q4_K,
    BlockType::Q6_K,
    BlockType::MXFP4,
];

#[test]
fn every_format_expands_bit_for_bit_as_the_reference() {
    let fixture = fixture();
    for ty in BlockType::ALL {
        let ours = expand(ty, bytes(&fixture, &format!("{ty}.bytes")));
        let reference = fixture.f32(&format!("{ty}.values")).unwrap();
        assert_eq!(ours.len(), reference.len(), "{ty}");
        let finite = reference.iter().filter(|v| v.is_finite()).count();
        assert!(finite >= reference.len() / 2, "{ty}: the fixture shows too little");
        for (i, (a, b)) in ours.iter().zip(&reference).enumerate() {
            // A NaN's payload is nobody's promise.
            assert!(
                a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
                "{ty} element {i}: {a:?} != {b:?}"
            );
        }
    }
}

#[test]
fn simple_formats_quantise_bit_for_bit_as_the_reference() {
    let fixture = fixture();
    let source = fixture.f32("source").unwrap();
    for ty in [BlockType::F16, BlockType::BF16, BlockType::Q8_0, BlockType::Q4_0] {
        let ours = quantize(ty, &source).unwrap();
        let reference = bytes(&fixture, &format!("{ty}.quantized"));
        let differs = ours.iter().zip(reference).position(|(a, b)| a != b);
        assert!(ours.len() == reference.len() && differs.is_none(), "{ty}: first difference at {differs:?}");
    }
}

#[test]
fn searched_formats_lose_no_more_than_the_reference() {
    let fixture = fixture();
    let source = fixture.f32("source").unwrap();
    for ty in [BlockType::Q4_K, BlockType::Q6_K, BlockType::MXFP4] {
        let ours = quantize(ty, &source).unwrap();
        let reference = bytes(&fixture, &format!("{ty}.quantized"));
        assert_eq!(ours.len(), reference.len(), "{ty}");
        let row_bytes = ty.row_bytes(256).unwrap();
        for (row, values) in source.chunks(256).enumerate() {
            let at = row * row_bytes..(row + 1) * row_bytes;
            let our_error = root_mean_square_error(ty, &ours[at.clone()], values);
            let reference_error = root_mean_square_error(ty, &reference[at], values);
            assert!(
                our_error <= reference_error * 1.03,
                "{ty} row {row}: {our_error} above {reference_error}"
            );
        }
    }
}

#[test]
fn values_on_the_grid_survive() {
    let fixture = fixture();
    let mxfp4 = bytes(&fixture, "MXFP4.bytes");
    // The last blocks have exponents at the ends of the range, where an equal value has several encodings.
    let values = expand(BlockType::MXFP4, &mxfp4[..8 * 17]);
    assert_eq!(expand(BlockType::MXFP4, &quantize(BlockType::MXFP4, &values).unwrap()), values);
    for ty in WRITABLE {
        assert_eq!(expand(ty, &quantize(ty, &[0.0; 256]).unwrap()), [0.0; 256], "{ty}");
    }
}

#[test]
fn what_a_block_cannot_hold_is_named() {
    for ty in [BlockType::Q8_0, BlockType::Q4_0, BlockType::Q4_K, BlockType::Q6_K, BlockType::MXFP4] {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut values = [0.5; 512];
            values[300] = bad;
            let error = quantize(ty, &values).unwrap_err();
            assert!(matches!(error, FormatError::Unrepresentable { index: 300, .. }), "{ty}: {error}");
        }
    }
    for ty in [BlockType::Q8_0, BlockType::Q4_0, BlockType::Q4_K, BlockType::Q6_K, BlockType::F16] {
        let mut values = [0.5; 512];
        values[300] = 1e38;
        let error = quantize(ty, &values).unwrap_err();
        assert!(matches!(error, FormatError::Unrepresentable { index: 300, .. }), "{ty}: {error}");
    }
    let error = quantize(BlockType::Q8_0, &[0.0; 33]).unwrap_err();
    assert_eq!(error.to_string(), "33 elements are no whole number of Q8_0 blocks of 32");
    assert!(matches!(quantize(BlockType::Q5_K, &[0.0; 256]), Err(FormatError::NoQuantizer(BlockType::Q5_K))));
}

#[test]
fn float_formats_keep_nan_and_infinities() {
    for ty in [BlockType::F32, BlockType::F16, BlockType::BF16] {
        let back = expand(ty, &quantize(ty, &[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0]).unwrap());
        assert!(back[0].is_nan(), "{ty}");
        assert_eq!(back[1..3], [f32::INFINITY, f32::NEG_INFINITY], "{ty}");
        assert_eq!(back[3].to_bits(), (-0.0f32).to_bits(), "{ty}");
    }
}

proptest! {
    /// A step of a format is bounded by the block's range; so is its error. Magnitudes stay where f16 scales are
    /// normal numbers.
    #[test]
    fn errors_stay_within_the_formats_steps(
        magnitude in -2i32..8,
        values in prop::collection::vec(-1.0f32..1.0, 256),
    ) {
        let values: Vec<f32> = values.iter().map(|v| v * 4f32.powi(magnitude)).collect();
        let widest = values.iter().fold(0f32, |max, v| max.max(v.abs()));
        for (ty, share) in [
            (BlockType::F32, 0.0),
            (BlockType::F16, 1.0 / 2048.0),
            (BlockType::BF16, 1.0 / 256.0),
            (BlockType::Q8_0, 1.0 / 200.0),
            (BlockType::Q4_0, 1.0 / 7.0),
            (BlockType::Q4_K, 1.0 / 8.0),
            (BlockType::Q6_K, 1.0 / 24.0),
            (BlockType::MXFP4, 1.0 / 3.0),
        ] {
            let back = expand(ty, &quantize(ty, &values).unwrap());
            for (a, b) in back.iter().zip(&values) {
                prop_assert!((a - b).abs() <= share * widest, "{ty}: {b} became {a}, widest {widest}");
            }
        }
    }

    #[test]
    fn quantising_any_finite_values_gives_finite_values_or_an_error(
        bits in prop::collection::vec(any::<u32>(), 256),
    ) {
        let values: Vec<f32> = bits.iter().map(|b| f32::from_bits(*b)).map(|v| if v.is_finite() { v } else { 1.0 }).collect();
        for ty in WRITABLE {
            if let Ok(stored) = quantize(ty, &values) {
                prop_assert!(expand(ty, &stored).iter().all(|v| v.is_finite()), "{ty}");
            }
        }
        // Shrunk into f16's range every format takes them.
        let tame: Vec<f32> = values.iter().map(|v| v.clamp(-6e4, 6e4)).collect();
        for ty in WRITABLE {
            prop_assert!(quantize(ty, &tame).is_ok(), "{ty}");
        }
    }
}
