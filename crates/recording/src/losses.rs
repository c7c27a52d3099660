//! The frames that outputs dropped in the measured time: by output, and by output and connection.

use std::collections::BTreeMap;

use fanin_network::PortIndex;

/// Most pairs of output and connection with separate counts of losses.
const LOSS_FLOWS_MAX: usize = 1 << 16;

/// The losses of one output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PortLosses {
    pub(crate) frames: u64,
    /// Bytes on the wire.
    pub(crate) bytes: u64,
    /// Time of the first loss and of the last one, in picoseconds.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Bytes in the output's queue at the first loss.
    pub(crate) queue_bytes_first: u64,
}

/// The log of dropped frames; see the [module](self).
#[derive(Default)]
pub(crate) struct LossLog {
    by_port: BTreeMap<PortIndex, PortLosses>,
    /// Frames by output and receiving end.
    by_end: BTreeMap<(PortIndex, u32), u64>,
}

impl LossLog {
    /// Records a frame for `end` that an output dropped.
    pub(crate) fn note(&mut self, at: u64, port: PortIndex, queue_bytes: u64, end: u32, wire_bytes: u32) {
        let losses = self.by_port.entry(port).or_insert(PortLosses {
            first: at,
            queue_bytes_first: queue_bytes,
            ..PortLosses::default()
        });
        losses.frames += 1;
        losses.bytes += u64::from(wire_bytes);
        losses.last = at;
        if self.by_end.len() < LOSS_FLOWS_MAX || self.by_end.contains_key(&(port, end)) {
            *self.by_end.entry((port, end)).or_default() += 1;
        }
    }

    /// Returns the losses of one output.
    pub(crate) fn of(&self, port: PortIndex) -> PortLosses {
        self.by_port.get(&port).copied().unwrap_or_default()
    }

    /// Returns the receiving ends of the frames that an output dropped, each with its number of dropped frames.
    pub(crate) fn ends(&self, port: PortIndex) -> impl Iterator<Item = (u32, u64)> {
        self.by_end.range((port, 0)..=(port, u32::MAX)).map(|(&(_, end), &frames)| (end, frames))
    }

    /// Clears the log at the end of the warm-up.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
