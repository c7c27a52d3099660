//! M21TCP: the switches' TCP option limits the window of CUBIC. BPF programs on the hosts echo and apply it.

use super::live::LiveTechnique;

pub(super) const TECHNIQUE: LiveTechnique = LiveTechnique {
    edits_segments: true,
    beyond_loopback: Some("it takes a switch between the hosts"),
    ..LiveTechnique::kernel("cubic")
};
