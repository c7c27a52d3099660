//! What flow control has done.

use fanin_units::Duration;

use super::{BULK, HeldPorts};

/// A stop that lasts so long is a storm: the least time after which switches' own watchdogs act.
const STORM: u64 = Duration::from_millis(100).get();

/// What flow control has done.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(crate) struct PauseFigures {
    /// Signals to stop and to go on.
    pub(crate) pauses: u64,
    pub(crate) resumes: u64,
    /// Ports of hosts and of switches that were stopped at least once.
    pub(crate) hosts_stopped: u64,
    pub(crate) switch_ports_stopped: u64,
    /// The longest stop, and the most of the whole time that a port was stopped, in picoseconds.
    pub(crate) longest: u64,
    pub(crate) stopped_most: u64,
    /// Ports that were stopped for a tenth of a second or longer in one go.
    pub(crate) storms: u64,
    /// The most bytes that waited behind one input of a switch that stops its neighbours.
    pub(crate) input_bytes_max: u64,
}

impl HeldPorts {
    /// What was done up to `now`.
    pub(crate) fn figures(&self, now: u64) -> PauseFigures {
        let mut figures = PauseFigures {
            pauses: self.pauses,
            resumes: self.resumes,
            input_bytes_max: self.level_max,
            ..PauseFigures::default()
        };
        for held in &self.ports {
            let open = if held.stopped[BULK] { now - held.stopped_since } else { 0 };
            let longest = held.longest.max(open);
            if held.stops > 0 {
                *(if held.is_switch {
                    &mut figures.switch_ports_stopped
                } else {
                    &mut figures.hosts_stopped
                }) += 1;
            }
            figures.longest = figures.longest.max(longest);
            figures.stopped_most = figures.stopped_most.max(held.stopped_for + open);
            figures.storms += u64::from(longest >= STORM);
        }
        figures
    }
}
