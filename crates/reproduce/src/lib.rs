//! The papers' checkable results: what each says, and what the simulator gives.
//!
//! A [`Claim`] names the runs that it needs ([`Point`]s) and judges what they gave. Claims share runs: each point is
//! simulated once, however many claims look at it. Where a claim does not hold here and the reason is understood, the
//! claim says so and `docs/papers.md` explains it; such a claim that suddenly holds is reported as well, so that the
//! explanation does not outlive its cause.

#![forbid(unsafe_code)]

mod compare;
mod icc15;
mod judge;
mod lab;
mod lcn15;
mod m21tcp;
mod multihost;
mod pause;
mod thesis;
mod windows;

pub use compare::{Compared, Figures, Row, TECHNIQUES, Technique, compare};
pub use judge::{Judged, Status};
pub use lab::{DURATION, Got, LabError, Point, Progress, reproduce};

/// One checkable result of a paper.
pub struct Claim {
    /// Its number in the list of claims: a letter for the paper, and three digits.
    pub id: &'static str,
    /// Where the paper says it.
    pub place: &'static str,
    /// What it says, in a few words.
    pub says: &'static str,
    /// What is expected, with its tolerance.
    pub expected: &'static str,
    /// The runs it needs.
    pub points: Vec<Point>,
    /// Judges what they gave, in the order of `points`.
    pub judge: fn(&[&Got]) -> Judged,
    /// Why it does not hold here, where that is understood; `docs/papers.md` says more.
    pub known: Option<&'static str>,
}

/// All claims of the papers that a simulation can check, paper by paper in their order.
pub fn claims() -> Vec<Claim> {
    let mut claims = thesis::claims();
    claims.extend(icc15::claims());
    claims.extend(windows::claims());
    claims.extend(m21tcp::claims());
    claims.extend(lcn15::claims());
    claims.extend(multihost::claims());
    claims.extend(pause::claims());
    claims
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn every_claim_is_well_formed() {
        let mut ids = BTreeSet::new();
        for claim in super::claims() {
            assert!(ids.insert(claim.id), "{} is there twice", claim.id);
            assert!(!claim.points.is_empty(), "{} needs no run", claim.id);
            for point in &claim.points {
                let loaded = point.scenario(None).unwrap_or_else(|error| panic!("{}: {error}", claim.id));
                // A setting without effect is not what the claim is about.
                assert_eq!(loaded.warnings.render(false), "", "{} {:?}", claim.id, point);
            }
        }
    }
}
