//! Static windows: a BPF program that holds the congestion window.

use super::live::LiveTechnique;

pub(super) const TECHNIQUE: LiveTechnique =
    LiveTechnique { is_program: true, ..LiveTechnique::kernel("fanin_static") };
