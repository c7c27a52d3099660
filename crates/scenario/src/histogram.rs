//! Histograms of fragment sizes.

use fanin_units::Bytes;

/// Errors of a histogram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistogramError {
    /// The number of edges is not one above the number of counts.
    Lengths {
        /// Number of edges.
        edges: usize,
        /// Number of counts.
        counts: usize,
    },
    /// An edge is below the edge before it.
    Falling {
        /// The lower edge.
        edge: Bytes,
        /// The edge before it.
        before: Bytes,
    },
    /// All counts are zero, or their sum does not fit 64 bits.
    Total,
    /// The last edge is zero or beyond the largest fragment.
    Largest {
        /// The last edge.
        edge: Bytes,
    },
}

impl std::fmt::Display for HistogramError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Lengths { edges, counts } => write!(
                out,
                "`edges` has {edges} values and `counts` {counts}: each range between two edges has one count, so \
                 that `edges` has one value more"
            ),
            Self::Falling { edge, before } => {
                write!(out, "`edges` fall from {before} to {edge}: give them in ascending order")
            }
            Self::Total => write!(
                out,
                "`counts` add up to nothing, or to too much: give whole numbers, such as [70, 30]"
            ),
            Self::Largest { edge } => write!(out, "the last of `edges` is {edge}: give 1 B to 1 GiB"),
        }
    }
}

/// The largest fragment.
const FRAGMENT_MAX: Bytes = Bytes::new(1 << 30);

/// A histogram of sizes. All sizes between two edges are equally likely; two equal edges stand for one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeHistogram {
    edges: Vec<Bytes>,
    counts: Vec<u64>,
    total: u64,
}

impl SizeHistogram {
    /// Makes a histogram with one count for each range between two edges.
    ///
    /// # Errors
    /// If the lists do not belong together, edges fall, the last edge is zero or above 1 GiB, or the counts have no valid sum.
    pub fn new(edges: Vec<Bytes>, counts: Vec<u64>) -> Result<Self, HistogramError> {
        if counts.is_empty() || edges.len() != counts.len() + 1 {
            return Err(HistogramError::Lengths { edges: edges.len(), counts: counts.len() });
        }
        if let Some(pair) = edges.windows(2).find(|pair| pair[1] < pair[0]) {
            return Err(HistogramError::Falling { edge: pair[1], before: pair[0] });
        }
        let edge = edges[edges.len() - 1];
        if edge.is_zero() || edge > FRAGMENT_MAX {
            return Err(HistogramError::Largest { edge });
        }
        let total = counts.iter().try_fold(0_u64, |sum, &count| sum.checked_add(count));
        let total = total.filter(|&total| total > 0).ok_or(HistogramError::Total)?;
        Ok(Self { edges, counts, total })
    }

    /// Returns the edges of the ranges.
    pub fn edges(&self) -> &[Bytes] {
        &self.edges
    }

    /// Returns the counts of the ranges.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the size that a share of the fragments does not exceed, for a share from 0 to 1. At least one byte.
    pub fn at(&self, share: f64) -> Bytes {
        let mut wanted = share.clamp(0.0, 1.0) * self.total as f64;
        let last = self.counts.iter().rposition(|&count| count > 0).unwrap_or(0);
        for (place, &count) in self.counts.iter().enumerate() {
            if wanted <= count as f64 && count > 0 || place == last {
                let (from, to) = (self.edges[place].get() as f64, self.edges[place + 1].get() as f64);
                let part = (wanted / count as f64).min(1.0);
                return Bytes::new(((from + (to - from) * part).round() as u64).max(1));
            }
            wanted -= count as f64;
        }
        unreachable!("a histogram counts something")
    }

    /// Returns the mean size.
    pub fn mean(&self) -> Bytes {
        Bytes::new((self.moment(|from, to| (from + to) / 2.0).round() as u64).max(1))
    }

    /// Returns the standard deviation of the sizes, as a share of their mean.
    pub fn spread(&self) -> f64 {
        let mean = self.moment(|from, to| (from + to) / 2.0);
        let square = self.moment(|from, to| (from * from + from * to + to * to) / 3.0);
        if mean > 0.0 { (square - mean * mean).max(0.0).sqrt() / mean } else { 0.0 }
    }

    /// Returns the largest size.
    pub fn max(&self) -> Bytes {
        self.at(1.0)
    }

    /// Returns the mean of a function of each range's edges, weighted by the counts.
    fn moment(&self, of: impl Fn(f64, f64) -> f64) -> f64 {
        let ranges = self.edges.windows(2).zip(&self.counts);
        let sum: f64 = ranges
            .map(|(edges, &count)| of(edges[0].get() as f64, edges[1].get() as f64) * count as f64)
            .sum();
        sum / self.total as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(edges: &[u64], counts: &[u64]) -> Result<SizeHistogram, HistogramError> {
        SizeHistogram::new(edges.iter().map(|&edge| Bytes::new(edge)).collect(), counts.to_vec())
    }

    #[test]
    fn sizes_follow_the_counts() {
        let sizes = histogram(&[100, 200, 200, 1_000], &[50, 30, 20]).unwrap();
        for (share, size) in [(0.0, 100), (0.25, 150), (0.5, 200), (0.7, 200), (0.9, 600), (1.0, 1_000)] {
            assert_eq!(sizes.at(share).get(), size, "{share}");
        }
        assert_eq!((sizes.mean().get(), sizes.max().get()), (255, 1_000));
        let drawn: Vec<f64> =
            (0..100_000).map(|n| sizes.at((f64::from(n) + 0.5) / 1e5).get() as f64).collect();
        let mean = drawn.iter().sum::<f64>() / 1e5;
        let variance = drawn.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / 1e5;
        assert!((mean - 255.0).abs() < 0.1 && (variance.sqrt() / mean / sizes.spread() - 1.0).abs() < 1e-3);
    }

    #[test]
    fn ranges_without_a_count_are_never_drawn() {
        let sizes = histogram(&[0, 100, 200, 300], &[0, 7, 0]).unwrap();
        for share in [0.0, 1e-9, 0.5, 1.0] {
            assert!((100..=200).contains(&sizes.at(share).get()), "{share}");
        }
        assert_eq!(sizes.max().get(), 200);
        assert_eq!(histogram(&[0, 1], &[1]).unwrap().at(0.0).get(), 1, "a fragment has a byte");
    }

    #[test]
    fn a_wrong_histogram_says_why() {
        for (edges, counts, words) in [
            (&[1, 2][..], &[1, 2][..], "`edges` has one value more"),
            (&[2, 1], &[1], "fall from 2 B to 1 B"),
            (&[1, 2], &[0], "add up to nothing"),
            (&[0, 1, 2], &[u64::MAX, 1], "or to too much"),
            (&[0, 0], &[1], "1 B to 1 GiB"),
            (&[], &[], "`edges` has 0 values"),
        ] {
            let error = histogram(edges, counts).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
