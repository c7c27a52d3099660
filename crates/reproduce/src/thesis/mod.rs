//! Claims of the thesis, chapters 4 to 6. Burst sizes are given as credits: 1.1 kB a fragment, so 480 are 528 kB.

mod buffers;
mod fastpass;
mod measurements;
mod points;
mod policies;
mod retransmission;
mod shaping;

use crate::claim::Claim;

pub(crate) fn claims() -> Vec<Claim> {
    let mut all = measurements::claims();
    all.extend(shaping::claims());
    all.extend(policies::claims());
    all.extend(retransmission::claims());
    all.extend(fastpass::claims());
    all.extend(buffers::claims());
    all
}
