//! DCTCP: a BPF program, since the kernel's own has other parameters.

use super::live::LiveTechnique;

pub(super) const TECHNIQUE: LiveTechnique =
    LiveTechnique { is_program: true, ..LiveTechnique::kernel("fanin_dctcp") };
