//! The papers' claims, compared with the simulator's results.
//!
//! A [`Claim`] names the runs that it needs ([`ClaimRun`]s) and judges their results. Claims share runs: each run is simulated
//! once. A claim that fails for an understood reason has a [`Known`]: the reason, and the range of each figure. Such a claim
//! counts as failed if it holds after all, or if a figure leaves its range.

#![forbid(unsafe_code)]

mod claim;
mod compare;
mod icc15;
mod judge;
mod lab;
mod lcn15;
mod m21tcp;
mod multihost;
mod needs;
mod pause;
mod thesis;
mod windows;

pub use claim::Claim;
pub use compare::{Compared, ComparedSettings, Figures, Row, TECHNIQUES, Technique, compare};
pub use judge::{Judged, Known, Status};
pub use lab::{ClaimRun, DURATION, LabError, OnProgress, PointResult, reproduce};
pub use needs::{TECHNIQUE_NEEDS, TechniqueNeeds};

/// Returns all claims of the papers that a simulation can check, in the order of the papers and their sections.
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
            if let Some(known) = &claim.known {
                assert!(!known.ranges.is_empty(), "{} has no range", claim.id);
                assert!(known.ranges.iter().all(|(least, most)| least <= most), "{}", claim.id);
            }
            for point in &claim.points {
                let loaded = point.scenario(None).unwrap_or_else(|error| panic!("{}: {error}", claim.id));
                // A setting without effect would not test the claim.
                assert_eq!(loaded.warnings.render(false), "", "{} {:?}", claim.id, point);
            }
        }
    }
}
