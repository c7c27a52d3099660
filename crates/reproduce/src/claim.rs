//! A checkable result of a paper.

use crate::judge::{Judged, Known};
use crate::lab::{ClaimRun, PointResult};

/// One checkable result of a paper.
pub struct Claim {
    /// Its number in the list of claims: a letter for the paper, and three digits.
    pub id: &'static str,
    /// The place in the paper.
    pub place: &'static str,
    /// The result, in a few words.
    pub says: &'static str,
    /// The expected figure, with its tolerance.
    pub expected: &'static str,
    /// The runs that it needs.
    pub points: Vec<ClaimRun>,
    /// Judges the runs' results, in the order of `points`.
    pub judge: fn(&[&PointResult]) -> Judged,
    /// The reason why it does not hold here, if it does not.
    pub known: Option<Known>,
}
