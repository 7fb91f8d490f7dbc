//! S3-FIFO (Yang et al. 2023): newcomers queue in a tenth of the slots; who is used again there goes on to the main
//! queue, the others leave, and their names are remembered, as many as the main queue has slots. In the main queue, uses buy
//! further rounds.

use super::ranks::Ranks;
use super::{CacheShape, Policy};
use crate::{Key, RouteBatch};

/// Uses that are counted.
const MOST_USES: u8 = 3;

pub(super) struct S3Fifo {
    experts: usize,
    /// Newcomers, by arrival.
    small: Ranks<u64>,
    /// By arrival or last round.
    main: Ranks<u64>,
    /// Names, by departure.
    gone: Ranks<u64>,
    /// `[layers, experts]`: uses since the arrival.
    uses: Vec<u8>,
    most_small: usize,
    most_gone: usize,
    /// Grows with each move.
    moves: u64,
}

impl S3Fifo {
    pub(super) fn new(shape: CacheShape) -> S3Fifo {
        let most_small = (shape.slots / 10).max(1);
        S3Fifo {
            experts: shape.experts,
            small: Ranks::new(shape),
            main: Ranks::new(shape),
            gone: Ranks::new(shape),
            uses: vec![0; shape.layers * shape.experts],
            most_small,
            most_gone: shape.slots.saturating_sub(most_small).max(1),
            moves: 0,
        }
    }

    fn at(&self, key: Key) -> usize {
        key.layer as usize * self.experts + key.expert as usize
    }

    fn next_move(&mut self) -> u64 {
        self.moves += 1;
        self.moves
    }

    /// Who leaves the newcomers' queue; those used more than once go on.
    fn leaves_small(&mut self, may_leave: &dyn Fn(Key) -> bool) -> Option<Key> {
        while let Some(key) = self.small.least(may_leave) {
            let at = self.at(key);
            if self.uses[at] <= 1 {
                return Some(key);
            }
            self.uses[at] = 0;
            self.small.remove(key);
            let moves = self.next_move();
            self.main.set(key, moves);
        }
        None
    }

    fn leaves_main(&mut self, may_leave: &dyn Fn(Key) -> bool) -> Option<Key> {
        while let Some(key) = self.main.least(may_leave) {
            let at = self.at(key);
            if self.uses[at] == 0 {
                return Some(key);
            }
            self.uses[at] -= 1;
            let moves = self.next_move();
            self.main.set(key, moves);
        }
        None
    }
}

impl Policy for S3Fifo {
    fn name(&self) -> &'static str {
        "s3-fifo"
    }

    fn requested(&mut self, batch: &RouteBatch<'_>) {
        for key in batch.keys() {
            if self.small.has(key) || self.main.has(key) {
                let at = self.at(key);
                self.uses[at] = (self.uses[at] + 1).min(MOST_USES);
            }
        }
    }

    fn placed(&mut self, key: Key) {
        let (at, moves) = (self.at(key), self.next_move());
        self.uses[at] = 0;
        let queue = if self.gone.remove(key) { &mut self.main } else { &mut self.small };
        queue.set(key, moves);
    }

    fn removed(&mut self, key: Key) {
        self.main.remove(key);
        if self.small.remove(key) {
            let moves = self.next_move();
            self.gone.set(key, moves);
            if self.gone.len() > self.most_gone
                && let Some(oldest) = self.gone.least(&|_| true)
            {
                self.gone.remove(oldest);
            }
        }
    }

    fn victim(&mut self, may_leave: &dyn Fn(Key) -> bool) -> Option<Key> {
        if self.small.len() >= self.most_small {
            self.leaves_small(may_leave).or_else(|| self.leaves_main(may_leave))
        } else {
            self.leaves_main(may_leave).or_else(|| self.leaves_small(may_leave))
        }
    }
}
