//! Figures of flow control.

use fanin_queueing::Class;
use fanin_units::Duration;

use crate::fabric::Fabric;
use crate::fabric::output::OutputQueue;
use crate::index::NIL;

/// A pause that lasts so long is a storm: the least time after which switches' own watchdogs act.
const STORM: u64 = Duration::from_millis(100).get();

/// Figures of flow control.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(crate) struct PauseFigures {
    /// PAUSE and RESUME signals sent.
    pub(crate) pauses: u64,
    pub(crate) resumes: u64,
    /// Ports of hosts and of switches that were paused at least once.
    pub(crate) hosts_stopped: u64,
    pub(crate) switch_ports_stopped: u64,
    /// The longest pause, and the most of the whole time that a port was paused, in picoseconds.
    pub(crate) longest: u64,
    pub(crate) stopped_most: u64,
    /// Ports that were paused for a tenth of a second or longer in one go.
    pub(crate) storms: u64,
    /// The most ingress occupancy of a switch that pauses its neighbours.
    pub(crate) input_bytes_max: u64,
}

impl Fabric {
    /// Figures of flow control up to `now`; none in a network without PAUSE.
    pub(crate) fn pause_figures(&self, now: u64) -> Option<PauseFigures> {
        let flow_control = self.flow_control.as_ref()?;
        let mut figures = PauseFigures {
            pauses: flow_control.pauses,
            resumes: flow_control.resumes,
            input_bytes_max: flow_control.input_bytes_max,
            ..PauseFigures::default()
        };
        for port in &self.ports {
            let OutputQueue::Pausable(out) = &port.queue else { continue };
            let sender = &out.sender;
            let open = if out.output.is_paused(Class::Bulk) { now - sender.paused_since } else { 0 };
            let longest = sender.longest.max(open);
            if sender.pauses > 0 {
                *(if port.switch != NIL {
                    &mut figures.switch_ports_stopped
                } else {
                    &mut figures.hosts_stopped
                }) += 1;
            }
            figures.longest = figures.longest.max(longest);
            figures.stopped_most = figures.stopped_most.max(sender.paused_for + open);
            figures.storms += u64::from(longest >= STORM);
        }
        Some(figures)
    }
}
