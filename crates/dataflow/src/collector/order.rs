//! The order of requests under paced credits.

/// Returns the readouts from `first` on, in steps of the golden section of their number.
///
/// Neighbours share racks and uplinks. In this order, consecutive requests are spread over all of them, at every scale.
pub(super) fn spread(readouts: usize, first: usize) -> impl Iterator<Item = u16> {
    let mut step = (readouts * 618 / 1000).max(1);
    while greatest_common_divisor(step, readouts) > 1 {
        step += 1;
    }
    (0..readouts).map(move |place| ((first + place * step) % readouts) as u16)
}

fn greatest_common_divisor(mut a: usize, mut b: usize) -> usize {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn every_readout_has_its_turn() {
        for readouts in 1..300 {
            let first = readouts / 3;
            let mut order: Vec<u16> = spread(readouts, first).collect();
            assert_eq!(usize::from(order[0]), first);
            order.sort_unstable();
            assert!(order.iter().copied().eq(0..readouts as u16), "{readouts} readouts");
        }
        assert_eq!(spread(0, 0).count(), 0);
    }

    #[test]
    fn requests_that_follow_on_each_other_are_spread_over_groups() {
        // Ten groups of 16: ten consecutive requests reach at least seven of them, and none more than twice.
        let order: Vec<u16> = spread(160, 7).collect();
        for ten in order.windows(10) {
            let mut groups = [0; 10];
            ten.iter().for_each(|readout| groups[usize::from(readout / 16)] += 1);
            assert!(groups.iter().filter(|&&count| count > 0).count() >= 7, "{ten:?}");
            assert!(groups.iter().all(|&count| count <= 2), "{ten:?}");
        }
    }
}
