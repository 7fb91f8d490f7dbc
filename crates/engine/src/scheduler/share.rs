//! How the prompt rows of a step are shared out.
//!
//! Invariant: clients get equal parts of the step as long as they have rows to feed, and within a client the oldest request
//! comes first; no row is left out while the step has room.

/// Prompt rows that a request still has to feed.
pub(super) struct Want {
    pub(super) client: u64,
    pub(super) rows: usize,
}

/// How many of `budget` rows each of `wants` gets, which are in order of age.
pub(super) fn share(wants: &[Want], budget: usize) -> Vec<usize> {
    let mut given = vec![0; wants.len()];
    let mut left = budget;
    while left > 0 {
        let mut oldest: Vec<usize> = Vec::new();
        for (i, want) in wants.iter().enumerate() {
            if given[i] < want.rows && oldest.iter().all(|&o| wants[o].client != want.client) {
                oldest.push(i);
            }
        }
        if oldest.is_empty() {
            break;
        }
        let each = (left / oldest.len()).max(1);
        for i in oldest {
            let rows = each.min(wants[i].rows - given[i]).min(left);
            given[i] += rows;
            left -= rows;
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(wants: &[(u64, usize)], budget: usize) -> Vec<usize> {
        let wants: Vec<Want> = wants.iter().map(|&(client, rows)| Want { client, rows }).collect();
        share(&wants, budget)
    }

    #[test]
    fn clients_get_equal_parts_and_their_oldest_request_first() {
        assert_eq!(shared(&[(1, 100), (1, 100), (2, 100)], 60), [30, 0, 30]);
        assert_eq!(shared(&[(1, 10), (1, 100), (2, 100)], 60), [10, 20, 30]);
        assert_eq!(shared(&[(1, 100), (2, 5), (3, 100)], 60), [28, 5, 27]);
        assert_eq!(shared(&[(1, 1), (2, 1), (3, 1)], 2), [1, 1, 0]);
        assert_eq!(shared(&[(1, 4), (2, 4)], 100), [4, 4]);
        assert!(shared(&[], 10).is_empty());
    }
}
