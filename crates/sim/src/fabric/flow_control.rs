//! Flow control: the ingress occupancy of each input, and the inputs with paused neighbours.

use fanin_network::PortIndex;
use fanin_queueing::{Class, Ingress, Memory, PauseSignal, PauseThresholds};

use super::parcel::Parcel;

/// A switch of a network with PAUSE.
pub(super) struct PausingSwitch {
    /// The memory that the frames of its outputs take, under its scheme.
    pub(super) memory: Memory,
    /// True if only bulk data count as ingress occupancy, as with priority flow control.
    pub(super) counts_bulk_only: bool,
    /// Bookkeeping that it stores with each frame.
    pub(super) overhead: u32,
    /// Inputs with paused neighbours, in the order of the PAUSEs.
    pub(super) paused_inputs: Vec<PortIndex>,
    /// Time of their next check.
    pub(super) check_at: u64,
}

/// The class of each frame.
#[derive(Clone, Copy)]
pub(super) struct Classes {
    has_priorities: bool,
    /// Ends below this belong to connections with bulk data from their second ends.
    pub(super) bulk_ends: u32,
}

impl Classes {
    #[inline]
    pub(super) fn of(self, parcel: Parcel) -> Class {
        let is_bulk = || parcel.end() < self.bulk_ends && parcel.end().is_multiple_of(2);
        if self.has_priorities && !is_bulk() { Class::Urgent } else { Class::Bulk }
    }
}

/// Flow control in a network with PAUSE.
pub(super) struct FlowControl {
    /// Occupancy by the sending port of the frames' link.
    pub(super) ingress: Vec<Ingress>,
    pub(super) switches: Vec<PausingSwitch>,
    pub(super) classes: Classes,
    /// High-water mark of the ingress occupancy of all inputs with pausable neighbours.
    pub(super) input_bytes_max: u64,
    pub(super) pauses: u64,
    pub(super) resumes: u64,
    pub(super) is_check_scheduled: bool,
    /// The ports of a deadlock, if any: each waits for the next, the last for the first.
    pub(super) deadlock: Vec<PortIndex>,
}

impl FlowControl {
    /// Makes flow control from the switches and, for each port, the thresholds at the far end of its link.
    pub(super) fn new(
        switches: Vec<PausingSwitch>,
        thresholds: Vec<Option<PauseThresholds>>,
        has_priorities: bool,
    ) -> Self {
        Self {
            ingress: thresholds.into_iter().map(Ingress::new).collect(),
            switches,
            classes: Classes { has_priorities, bulk_ends: u32::MAX },
            input_bytes_max: 0,
            pauses: 0,
            resumes: 0,
            is_check_scheduled: false,
            deadlock: Vec::new(),
        }
    }

    /// The memories of all switches.
    pub(super) fn memories(&self) -> impl Iterator<Item = &Memory> {
        self.switches.iter().map(|switch| &switch.memory)
    }

    pub(super) fn reset_marks(&mut self) {
        self.switches.iter_mut().for_each(|switch| switch.memory.reset_marks());
    }

    /// Bytes that a frame adds to the ingress occupancy in a switch.
    #[inline]
    pub(super) fn counted(&self, switch: usize, parcel: Parcel, unstored_bytes: u32) -> u64 {
        let PausingSwitch { counts_bulk_only, overhead, .. } = self.switches[switch];
        let counts = !counts_bulk_only || self.classes.of(parcel) == Class::Bulk;
        if counts { u64::from(parcel.wire_bytes() - unstored_bytes + overhead) } else { 0 }
    }

    /// A frame adds to an ingress occupancy. Returns whether the neighbour has to be paused.
    #[inline]
    pub(super) fn charge_ingress(&mut self, switch: usize, input: PortIndex, counted: u64) -> bool {
        let ingress = &mut self.ingress[input as usize];
        ingress.arrive(counted);
        if ingress.thresholds().is_some() {
            self.input_bytes_max = self.input_bytes_max.max(ingress.occupancy(0));
        }
        // A RESUME that is due at this instant is sent when the instant's departures are over.
        if ingress.signal_due(0) != Some(PauseSignal::Pause) {
            return false;
        }
        ingress.poll_signal(0);
        assert!(!self.switches[switch].paused_inputs.contains(&input), "a neighbour is paused twice");
        self.switches[switch].paused_inputs.push(input);
        true
    }

    /// A frame leaves the switch's memory. Returns true if a RESUME is due.
    #[inline]
    pub(super) fn credit_ingress(&mut self, input: PortIndex, counted: u64) -> bool {
        let ingress = &mut self.ingress[input as usize];
        ingress.depart(counted);
        ingress.signal_due(0) == Some(PauseSignal::Resume)
    }
}
