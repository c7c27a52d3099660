//! One port's receiving side: its VLANs, storm control, link state and counters.

use fanin_units::Instant;

use crate::address::Vlan;
use crate::config::{PortSpec, StormSpec};
use crate::driver::Received;
use crate::snapshot::{Cause, Dropped, Drops, Tally};

use super::storm::StormControl;

/// State and counters of one port, without its queues.
#[derive(Debug)]
pub(super) struct PortState {
    vlans: PortVlans,
    storm: StormControl,
    is_up: bool,
    floods_unknown: bool,
    reflects: bool,
    table: u16,
    counters: PortCounters,
}

/// The VLANs that a port carries.
#[derive(Debug)]
struct PortVlans {
    /// The VLAN of untagged frames, 0 if the port carries none.
    untagged: u16,
    tagged: Vec<u16>,
}

/// Frames of a port.
#[derive(Debug, Default)]
struct PortCounters {
    received: Tally,
    sent: Tally,
    flooded: Tally,
    drops: Drops,
}

impl PortState {
    /// Makes a port with a link. `has_vlans` is true if the switch separates VLANs.
    pub(super) fn new(spec: &PortSpec, has_vlans: bool) -> Self {
        let untagged = match (has_vlans, spec.untagged) {
            (true, Some(vlan)) => vlan.get(),
            // A port that names only tagged VLANs carries no untagged frames; one that names none is in the first VLAN.
            (true, None) if spec.tagged.is_empty() => Vlan::DEFAULT.get(),
            _ => 0,
        };
        Self {
            vlans: PortVlans { untagged, tagged: spec.tagged.iter().map(|vlan| vlan.get()).collect() },
            storm: StormControl::new(&spec.storm),
            is_up: true,
            floods_unknown: spec.flood,
            reflects: spec.reflect,
            table: spec.table,
            counters: PortCounters::default(),
        }
    }

    /// Returns the VLAN of a frame with this tag; `None` if the port does not carry it.
    #[inline]
    pub(super) fn vlan_of(&self, tag: Option<u16>) -> Option<u16> {
        match tag.map_or(0, |tag| tag & 0xfff) {
            // Untagged, or with a priority tag.
            0 => (self.vlans.untagged != 0).then_some(self.vlans.untagged),
            vlan => self.vlans.tagged.contains(&vlan).then_some(vlan),
        }
    }

    /// Returns true if the port carries a VLAN.
    pub(super) fn carries(&self, vlan: u16) -> bool {
        self.vlans.untagged == vlan || self.vlans.tagged.contains(&vlan)
    }

    /// Returns true if frames of a VLAN leave this port without a tag.
    pub(super) const fn is_untagged(&self, vlan: u16) -> bool {
        self.vlans.untagged == vlan
    }

    /// Returns true if every frame leaves by its input port.
    #[inline]
    pub(super) const fn reflects(&self) -> bool {
        self.reflects
    }

    /// Returns the table of ways for the port's frames; 0 if the switch learns stations for them.
    #[inline]
    pub(super) const fn table(&self) -> u16 {
        self.table
    }

    /// Returns true if flooded frames leave by this port: frames to groups, or with `is_unknown` frames to unknown stations.
    pub(super) const fn takes_floods(&self, is_unknown: bool) -> bool {
        self.is_up && !self.reflects && (self.floods_unknown || !is_unknown)
    }

    /// Returns true if storm control lets a frame be flooded.
    pub(super) fn admits_flood(&mut self, now: Instant, destination: u64, bytes: u32) -> bool {
        self.storm.admit(now, destination, bytes)
    }

    /// Returns true if the port has a link.
    pub(super) const fn is_up(&self) -> bool {
        self.is_up
    }

    /// Notes the state of the link. Returns true if it has just gone down.
    pub(super) const fn set_up(&mut self, is_up: bool) -> bool {
        let has_gone_down = self.is_up && !is_up;
        self.is_up = is_up;
        has_gone_down
    }

    /// Changes storm control and flooding of unknown stations.
    pub(super) fn set(&mut self, storm: Option<&StormSpec>, floods_unknown: bool) {
        if let Some(storm) = storm {
            self.storm = StormControl::new(storm);
        }
        self.floods_unknown = floods_unknown;
    }

    /// Counts received frames.
    #[inline]
    pub(super) fn count_received<H>(&mut self, frames: &[Received<H>]) {
        self.counters.received.add_all(frames.iter().map(|frame| frame.bytes));
    }

    /// Counts frames that the driver accepted for transmission.
    #[inline]
    pub(super) fn count_sent<H>(&mut self, frames: &[Received<H>]) {
        self.counters.sent.add_all(frames.iter().map(|frame| frame.bytes));
    }

    /// Counts a flooded frame of this input.
    pub(super) const fn count_flooded(&mut self, bytes: u32) {
        self.counters.flooded.add(bytes);
    }

    /// Counts a dropped frame.
    pub(super) fn count_drop(&mut self, cause: Cause, bytes: u32) {
        self.counters.drops.add(cause, bytes);
    }

    /// Returns the tallies of frames received, sent and flooded, in this order.
    pub(super) const fn tallies(&self) -> (Tally, Tally, Tally) {
        (self.counters.received, self.counters.sent, self.counters.flooded)
    }

    /// Returns the dropped frames by cause.
    pub(super) fn drops(&self) -> Vec<Dropped> {
        self.counters.drops.list()
    }
}
