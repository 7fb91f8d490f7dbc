//! All experts in mapped memory: nothing is ever fetched, the operating system keeps what it can.

use std::sync::Arc;

use turbospark_format::Gguf;

use crate::{ExpertError, ExpertLayout, Lease, Residency, Stats};

/// Experts where the file's mapping has them.
pub struct Mapped {
    gguf: Arc<Gguf>,
    layout: ExpertLayout,
    requests: u64,
}

impl Mapped {
    /// The experts of `layout`, which was made for `gguf`.
    pub fn new(gguf: Arc<Gguf>, layout: ExpertLayout) -> Mapped {
        Mapped { gguf, layout, requests: 0 }
    }
}

impl Residency for Mapped {
    fn make_resident(&mut self, layer: usize, experts: &[u32]) -> Result<Lease<'_>, ExpertError> {
        let mut lease = Lease { per_expert: 0, parts: Vec::new() };
        for &expert in experts {
            let found = self.layout.layer(layer, expert)?;
            lease.per_expert = found.tensors.len();
            for &tensor in &found.tensors {
                let bytes = self.gguf.bytes(&self.gguf.tensors()[tensor]);
                let size = bytes.len() / found.n_experts;
                lease.parts.push(&bytes[expert as usize * size..][..size]);
            }
        }
        self.requests += experts.len() as u64;
        Ok(lease)
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

    fn layout(gguf: &Gguf, n_experts: usize) -> Result<ExpertLayout, ExpertError> {
        ExpertLayout::new(gguf, vec![None, Some(LayerExperts { n_experts, tensors: vec![0, 1] })])
    }

    #[test]
    fn a_lease_has_each_experts_own_bytes_in_the_order_asked() {
        let gguf = file();
        let mut mapped = Mapped::new(gguf.clone(), layout(&gguf, 3).unwrap());
        let lease = mapped.make_resident(1, &[2, 0]).unwrap();
        assert_eq!((lease.part(0, 0)[0], lease.part(1, 0)[0], lease.part(0, 1)[0]), (64, 0, 164));
        assert_eq!(lease.part(0, 1).len(), 32);
        drop(lease);
        assert_eq!(mapped.stats(), Stats { requests: 2, hits: 2, bytes_read: 0 });
    }

    #[test]
    fn experts_that_are_not_there_are_refused_by_name() {
        let gguf = file();
        let mut mapped = Mapped::new(gguf.clone(), layout(&gguf, 3).unwrap());
        for (layer, expert) in [(0, 0), (1, 3), (2, 0)] {
            let error = mapped.make_resident(layer, &[expert]).err().unwrap().to_string();
            assert_eq!(error, format!("layer {layer} has no expert {expert}"));
        }
        assert!(matches!(layout(&gguf, 5), Err(ExpertError::UnevenTensor { .. })));
    }
}
