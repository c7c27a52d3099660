//! A claim of a paper that simulations can check.

use crate::judge::{Judged, Known};
use crate::lab::{ClaimRun, PointResult};

/// One claim of a paper, with its runs and its judge.
pub struct Claim {
    /// Number of the claim: a letter for the paper, and three digits.
    pub id: &'static str,
    /// The section or figure in the paper.
    pub place: &'static str,
    /// The claim, in a few words.
    pub says: &'static str,
    /// The expected figure, with its tolerance.
    pub expected: &'static str,
    /// The runs that it needs.
    pub points: Vec<ClaimRun>,
    /// A function that judges the runs' results, given in the order of `points`.
    pub judge: fn(&[&PointResult]) -> Judged,
    /// The reason why the claim does not hold here, if it does not.
    pub known: Option<Known>,
}
