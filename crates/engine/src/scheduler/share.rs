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
        let mut clients: Vec<u64> = Vec::new();
        for (want, given) in wants.iter().zip(&given) {
            if *given < want.rows && !clients.contains(&want.client) {
                clients.push(want.client);
            }
        }
        if clients.is_empty() {
            break;
        }
        let each = (left / clients.len()).max(1);
        for client in clients {
            let mut part = each.min(left);
            for (want, given) in wants.iter().zip(&mut given).filter(|(w, _)| w.client == client) {
                let rows = part.min(want.rows - *given);
                *given += rows;
                part -= rows;
                left -= rows;
            }
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
