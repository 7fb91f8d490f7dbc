//! All experts in mapped memory: nothing is ever fetched, the operating system keeps what it can.

use std::sync::Arc;

use turbospark_format::Gguf;

use crate::{ExpertError, ExpertLayout, Few, Parts, Residency, RouteBatch, Stats, Wave};

/// Experts where the file's mapping has them.
pub struct Mapped {
    gguf: Arc<Gguf>,
    layout: ExpertLayout,
    /// What was asked for and not given yet.
    asked: Option<(usize, Few<u32>)>,
    requests: u64,
}

impl Mapped {
    /// The experts of `layout`, which was made for `gguf`.
    pub fn new(gguf: Arc<Gguf>, layout: ExpertLayout) -> Mapped {
        Mapped { gguf, layout, asked: None, requests: 0 }
    }
}

impl Residency for Mapped {
    fn request(&mut self, batch: &RouteBatch<'_>) -> Result<(), ExpertError> {
        let layer = batch.layer as usize;
        for &expert in batch.experts {
            self.layout.layer(layer, expert)?;
        }
        self.requests += batch.experts.len() as u64;
        self.asked = Some((layer, batch.experts.into()));
        Ok(())
    }

    fn next(&mut self, _cancelled: &dyn Fn() -> bool) -> Result<Option<Wave<'_>>, ExpertError> {
        let Some((layer, experts)) = self.asked.take().filter(|(_, e)| !e.is_empty()) else {
            return Ok(None);
        };
        let mut wave = Wave { indices: (0..experts.len()).collect(), per_expert: 0, parts: Parts::new() };
        for expert in experts {
            let found = self.layout.layer(layer, expert)?;
            wave.per_expert = found.tensors.len();
            for &tensor in &found.tensors {
                let bytes = self.gguf.bytes(&self.gguf.tensors()[tensor]);
                let size = bytes.len() / found.n_experts;
                wave.parts.push(&bytes[expert as usize * size..][..size]);
            }
        }
        Ok(Some(wave))
    }

    fn stats(&self) -> Stats {
        Stats { requests: self.requests, hits: self.requests, bytes_read: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LayerExperts;
    use turbospark_format::{BlockType, GgufWriter};

    fn file() -> Arc<Gguf> {
        let mut writer = GgufWriter::new();
        for (name, first) in [("gate", 0_u8), ("down", 100)] {
            let bytes: Vec<u8> = (0..3 * 2 * 4 * 4).map(|i| first + i as u8).collect();
            writer.tensor(name, &[4, 2, 3], BlockType::F32, bytes);
        }
        let mut bytes = Vec::new();
        writer.write(&mut bytes).unwrap();
        Arc::new(Gguf::from_bytes(bytes).unwrap())
    }

    fn batch(layer: u32, experts: &[u32]) -> RouteBatch<'_> {
        const ONES: [u32; 8] = [1; 8];
        RouteBatch { phase: crate::Phase::Decode, layer, n_rows: 1, experts, rows: &ONES[..experts.len()] }
    }

    fn layout(gguf: &Gguf, n_experts: usize) -> Result<ExpertLayout, ExpertError> {
        ExpertLayout::new(gguf, vec![None, Some(LayerExperts { n_experts, tensors: vec![0, 1] })])
    }

    #[test]
    fn a_wave_has_each_experts_own_bytes_in_the_order_asked() {
        let gguf = file();
        let mut mapped = Mapped::new(gguf.clone(), layout(&gguf, 3).unwrap());
        mapped.request(&batch(1, &[0, 2])).unwrap();
        let wave = mapped.next(&|| false).unwrap().unwrap();
        assert_eq!(wave.indices(), [0, 1]);
        assert_eq!((wave.part(0, 0)[0], wave.part(1, 0)[0], wave.part(1, 1)[0]), (0, 64, 164));
        assert_eq!(wave.part(0, 1).len(), 32);
        drop(wave);
        assert!(mapped.next(&|| false).unwrap().is_none());
        assert_eq!(mapped.stats(), Stats { requests: 2, hits: 2, bytes_read: 0 });
    }

    #[test]
    fn experts_that_are_not_there_are_refused_by_name() {
        let gguf = file();
        let mut mapped = Mapped::new(gguf.clone(), layout(&gguf, 3).unwrap());
        for (layer, expert) in [(0, 0), (1, 3), (2, 0)] {
            let error = mapped.request(&batch(layer, &[expert])).unwrap_err().to_string();
            assert_eq!(error, format!("layer {layer} has no expert {expert}"));
        }
        assert!(matches!(layout(&gguf, 5), Err(ExpertError::UnevenTensor { .. })));
    }
}
