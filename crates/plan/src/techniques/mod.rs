//! The techniques against incast in a plan, one file each. Their formulas are in `bounds`, in files of the same names.

mod barrel_shifter;
mod bbr;
mod credits;
mod cubic;
mod dctcp;
mod diatcp;
mod fastpass;
mod ictcp;
mod m21tcp;
mod paced_credits;
mod planned;
mod sird;
mod static_window;
mod swift;

pub(crate) use planned::{PlannedTechnique, WarningFigures};

/// Every technique that has an effect on a plan, in the order of their rows.
pub(crate) const TECHNIQUES: [PlannedTechnique; 13] = [
    credits::TECHNIQUE,
    diatcp::TECHNIQUE,
    m21tcp::TECHNIQUE,
    static_window::TECHNIQUE,
    cubic::TECHNIQUE,
    dctcp::TECHNIQUE,
    ictcp::TECHNIQUE,
    swift::TECHNIQUE,
    bbr::TECHNIQUE,
    sird::TECHNIQUE,
    fastpass::TECHNIQUE,
    barrel_shifter::TECHNIQUE,
    paced_credits::TECHNIQUE,
];
