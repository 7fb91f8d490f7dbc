//! Keys in order of a rank: what every policy keeps its queues in.
//!
//! Flat arrays by layer and expert, and for each layer the least rank, found again when asked for after a change. A request
//! changes its own layer alone, so finding the least of all looks at one number a layer and goes through few layers whole. Nothing
//! is allocated after the start.
//!
//! Invariant: of equal ranks the first layer's first expert comes first.

use super::CacheShape;
use crate::Key;

/// Some of a model's experts, each with a rank.
pub(crate) struct Ranks<R> {
    experts: usize,
    /// `[layers, experts]`; `None`: not in here.
    ranks: Vec<Option<R>>,
    /// By layer, the expert of least rank.
    least: Vec<Least>,
    len: usize,
}

#[derive(Clone, Copy)]
enum Least {
    Unknown,
    None,
    Expert(u32),
}

impl<R: Copy + PartialOrd> Ranks<R> {
    pub(crate) fn new(shape: CacheShape) -> Ranks<R> {
        Ranks {
            experts: shape.experts,
            ranks: vec![None; shape.layers * shape.experts],
            least: vec![Least::None; shape.layers],
            len: 0,
        }
    }

    fn at(&self, key: Key) -> usize {
        key.layer as usize * self.experts + key.expert as usize
    }

    pub(crate) fn get(&self, key: Key) -> Option<R> {
        self.ranks[self.at(key)]
    }

    pub(crate) fn has(&self, key: Key) -> bool {
        self.get(key).is_some()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Puts `key` in, or gives it another rank.
    pub(crate) fn set(&mut self, key: Key, rank: R) {
        let at = self.at(key);
        if self.ranks[at].replace(rank).is_none() {
            self.len += 1;
        }
        self.least[key.layer as usize] = Least::Unknown;
    }

    /// Gives `key` another rank if it is in.
    pub(crate) fn update(&mut self, key: Key, rank: R) {
        if self.has(key) {
            self.set(key, rank);
        }
    }

    /// Whether it was in.
    pub(crate) fn remove(&mut self, key: Key) -> bool {
        let at = self.at(key);
        let there = self.ranks[at].take().is_some();
        if there {
            self.len -= 1;
            self.least[key.layer as usize] = Least::Unknown;
        }
        there
    }

    /// The key of least rank of those for which `fine` holds.
    pub(crate) fn least(&mut self, fine: &dyn Fn(Key) -> bool) -> Option<Key> {
        self.least_by(fine, |_, rank| rank)
    }

    /// The key of least `value` of those for which `fine` holds. Within a layer, values must be in the order of ranks.
    pub(crate) fn least_by<V: PartialOrd>(
        &mut self,
        fine: &dyn Fn(Key) -> bool,
        value: impl Fn(u32, R) -> V,
    ) -> Option<Key> {
        let mut best: Option<(V, Key)> = None;
        for layer in 0..self.least.len() {
            let Some(mut key) = self.least_of(layer) else { continue };
            if !fine(key) {
                // The layer's other experts may be fine.
                let Some(other) = self.scan(layer, fine) else { continue };
                key = other;
            }
            let Some(rank) = self.get(key) else { continue };
            let value = value(key.layer, rank);
            if best.as_ref().is_none_or(|(least, _)| value < *least) {
                best = Some((value, key));
            }
        }
        best.map(|(_, key)| key)
    }

    fn least_of(&mut self, layer: usize) -> Option<Key> {
        if matches!(self.least[layer], Least::Unknown) {
            self.least[layer] = self.scan(layer, &|_| true).map_or(Least::None, |k| Least::Expert(k.expert));
        }
        match self.least[layer] {
            Least::Expert(expert) => Some(Key { layer: layer as u32, expert }),
            _ => None,
        }
    }

    fn scan(&self, layer: usize, fine: &dyn Fn(Key) -> bool) -> Option<Key> {
        let mut best: Option<(R, Key)> = None;
        for (expert, rank) in self.ranks[layer * self.experts..][..self.experts].iter().enumerate() {
            let Some(rank) = *rank else { continue };
            let key = Key { layer: layer as u32, expert: expert as u32 };
            if best.is_none_or(|(least, _)| rank < least) && fine(key) {
                best = Some((rank, key));
            }
        }
        best.map(|(_, key)| key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_what_a_walk_over_everything_finds() {
        let shape = CacheShape { layers: 5, experts: 7, slots: 35 };
        let mut ranks = Ranks::new(shape);
        let mut random = crate::trace::SplitMix64::new(3);
        for step in 0..20_000 {
            let key = Key { layer: random.below(5) as u32, expert: random.below(7) as u32 };
            if random.below(3) == 0 {
                ranks.remove(key);
            } else {
                ranks.set(key, random.below(10));
            }
            let barred = random.below(4) as u32;
            let fine = |key: Key| key.expert % 4 != barred;
            let keys = (0..35).map(|i| Key { layer: i / 7, expert: i % 7 });
            let expected =
                keys.filter(|&k| fine(k)).filter_map(|k| Some((ranks.get(k)?, k))).min().map(|(_, k)| k);
            assert_eq!(ranks.least(&fine), expected, "step {step}");
            let there = ranks.ranks.iter().flatten().count();
            assert_eq!(ranks.len(), there);
        }
    }
}
