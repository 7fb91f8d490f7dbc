//! [`FairQueue`]: requests that wait, in turns of their clients.
//!
//! Invariant: a client that took its turn comes after all others; within a client requests keep their order.

use std::collections::VecDeque;

/// What is to be done with the request at the head of a client's line.
pub(super) enum Verdict {
    Take,
    /// It must wait for something that others need not wait for.
    Skip,
    /// Nobody is taken before it.
    Stop,
}

/// Lines of waiting items, one a client.
pub(super) struct FairQueue<T> {
    lines: VecDeque<(u64, VecDeque<T>)>,
    len: usize,
}

impl<T> FairQueue<T> {
    pub(super) fn new() -> Self {
        FairQueue { lines: VecDeque::new(), len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, client: u64, item: T) {
        self.len += 1;
        match self.lines.iter_mut().find(|line| line.0 == client) {
            Some((_, line)) => line.push_back(item),
            None => self.lines.push_back((client, VecDeque::from([item]))),
        }
    }

    /// The first item in turn that `verdict` takes.
    pub(super) fn pop(&mut self, mut verdict: impl FnMut(&T) -> Verdict) -> Option<T> {
        for i in 0..self.lines.len() {
            match verdict(self.lines[i].1.front()?) {
                Verdict::Skip => {}
                Verdict::Stop => return None,
                Verdict::Take => {
                    let (client, mut line) = self.lines.remove(i)?;
                    let item = line.pop_front();
                    if !line.is_empty() {
                        self.lines.push_back((client, line));
                    }
                    self.len -= 1;
                    return item;
                }
            }
        }
        None
    }

    /// Takes out every item for which `gone` holds.
    pub(super) fn remove(&mut self, gone: impl Fn(&T) -> bool) -> Vec<T> {
        let mut removed = Vec::new();
        for (_, line) in &mut self.lines {
            let (out, stay): (VecDeque<T>, VecDeque<T>) = std::mem::take(line).into_iter().partition(&gone);
            removed.extend(out);
            *line = stay;
        }
        self.lines.retain(|(_, line)| !line.is_empty());
        self.len -= removed.len();
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(items: &[(u64, u32)]) -> FairQueue<u32> {
        let mut queue = FairQueue::new();
        items.iter().for_each(|&(client, item)| queue.push(client, item));
        queue
    }

    fn all(mut queue: FairQueue<u32>) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop(|_| Verdict::Take)).collect()
    }

    #[test]
    fn clients_take_turns_however_many_requests_one_has() {
        let queue = queue(&[(1, 10), (1, 11), (1, 12), (2, 20), (3, 30), (2, 21)]);
        assert_eq!(queue.len(), 6);
        assert_eq!(all(queue), [10, 20, 30, 11, 21, 12]);
    }

    #[test]
    fn skipped_requests_keep_their_turn_and_stopping_lets_nobody_pass() {
        let mut queue = queue(&[(1, 10), (2, 20), (2, 21), (3, 30)]);
        let skip_ten = |item: &u32| if *item == 10 { Verdict::Skip } else { Verdict::Take };
        assert_eq!(queue.pop(skip_ten), Some(20));
        assert_eq!(queue.pop(|i| if *i == 10 { Verdict::Stop } else { Verdict::Take }), None);
        assert_eq!(queue.remove(|i| *i == 30), [30]);
        assert_eq!((queue.len(), all(queue)), (2, vec![10, 21]));
    }
}
