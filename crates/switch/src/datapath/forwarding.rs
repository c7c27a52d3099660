//! Forwarding: learns the stations' ports, and finds the output of a frame (IEEE 802.1Q §8.7, §8.8).
//!
//! `switch/path.rs` carries the frame there.

use fanin_units::Instant;

use crate::address::Vlan;
use crate::config::{Config, StationSpec, WaySpec};
use crate::frame::{Ethernet, TAG_BYTES};
use crate::snapshot::{Cause, Station};
use crate::workers::{PeerMessage, Peers};

use super::ports::PortState;
use super::stations::{Learned, Stations, station_key, way_vlan};

/// Key of no station. Real keys have 48 bits of address and 12 of VLAN.
const NO_STATION: u64 = u64::MAX;

/// Destination of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameRoute {
    /// Out of one port, in this VLAN.
    To(usize, u16),
    /// Out of every port of this VLAN.
    Flood(u16),
    /// Out of no port, for this cause.
    Drop(Cause),
    /// Out of no port: the frame is for bridges only (IEEE 802.1Q, table 8-1), like a PAUSE frame.
    Control,
}

/// Forwarding state: learned and configured stations, and ways.
#[derive(Debug)]
pub(super) struct Forwarding {
    stations: Stations,
    has_vlans: bool,
    /// The most bytes of an Ethernet payload.
    payload_max: u32,
    /// The source of the previous frame of the burst. Frames arrive in trains: a repeated source is not looked up again.
    last_source: u64,
}

impl Forwarding {
    /// Makes the state with the stations and ways of a configuration.
    pub(super) fn new(config: &Config, now: Instant) -> Self {
        let spec = &config.switch;
        let shares: Vec<u32> = config.port.iter().map(|port| port.stations_max(spec)).collect();
        let mut forwarding = Self {
            stations: Stations::new(spec.mac_entries, spec.mac_age, spec.mac_hold, &shares),
            has_vlans: config.has_vlans(),
            payload_max: spec.mtu.get() as u32,
            last_source: NO_STATION,
        };
        for station in &config.station {
            forwarding.add_station(now, station, config);
        }
        for way in &config.way {
            forwarding.add_way(now, way, config);
        }
        forwarding
    }

    /// Returns true if the switch separates VLANs.
    #[inline]
    pub(super) const fn has_vlans(&self) -> bool {
        self.has_vlans
    }

    /// Starts a burst. The source of its first frame is looked up.
    #[inline]
    pub(super) const fn begin_burst(&mut self) {
        self.last_source = NO_STATION;
    }

    /// Decides the route of a frame, and learns its source.
    #[inline(always)]
    pub(super) fn route<H: Copy + Send>(
        &mut self,
        now: Instant,
        input: usize,
        port: &PortState,
        bytes: u32,
        ethernet: &Ethernet,
        peers: &mut Peers<H>,
    ) -> FrameRoute {
        if ethernet.is_from_group() {
            return FrameRoute::Drop(Cause::Malformed);
        }
        let is_for_group = ethernet.is_for_group();
        // Checked before VLANs: frames for bridges carry no tag, whatever VLANs the port has (IEEE 802.1Q §6.13).
        if is_for_group && ethernet.is_link_local() {
            return FrameRoute::Control;
        }
        let vlan = match self.has_vlans {
            true => match port.vlan_of(ethernet.tag) {
                Some(vlan) => vlan,
                None => return FrameRoute::Drop(Cause::Vlan),
            },
            false => 0,
        };
        // A second tag does not count.
        if bytes - ethernet.payload as u32 > self.payload_max + TAG_BYTES as u32 {
            return FrameRoute::Drop(Cause::TooLong);
        }
        if port.reflects() {
            return FrameRoute::To(input, vlan);
        }
        let destination = if port.table() == 0 {
            let source = station_key(ethernet.source, vlan);
            if source != self.last_source && !self.learn(now, source, input, peers) {
                return FrameRoute::Drop(Cause::Loop);
            }
            station_key(ethernet.destination, vlan)
        } else {
            station_key(ethernet.destination, way_vlan(port.table()))
        };
        if is_for_group {
            return FrameRoute::Flood(vlan);
        }
        match self.stations.find(destination) {
            Some(output) if output == input => FrameRoute::Drop(Cause::Filtered),
            Some(output) => FrameRoute::To(output, vlan),
            None if port.table() == 0 => FrameRoute::Flood(vlan),
            None => FrameRoute::Drop(Cause::NoPort),
        }
    }

    /// Learns the source of a frame. Returns false if the station belongs to another port: the frame came through a loop.
    #[inline(always)]
    fn learn<H: Copy + Send>(
        &mut self,
        now: Instant,
        source: u64,
        input: usize,
        peers: &mut Peers<H>,
    ) -> bool {
        match self.stations.learn(now, source, input) {
            Learned::Known => self.last_source = source,
            Learned::New => {
                peers.announce(PeerMessage::Learned { station: source, port: input as u16 });
                self.last_source = source;
            }
            Learned::Refused => {}
            Learned::Elsewhere => return false,
        }
        true
    }

    /// Learns a station behind another worker's port.
    pub(super) fn learn_from_peer(&mut self, now: Instant, station: u64, port: usize) {
        self.stations.set(now, station, port);
    }

    /// Learns the source of a frame, as [`Self::learn_from_peer`] does.
    pub(super) fn learn_source_from_peer(
        &mut self,
        now: Instant,
        ethernet: &Ethernet,
        vlan: u16,
        port: usize,
    ) {
        self.stations.set(now, station_key(ethernet.source, vlan), port);
    }

    /// Forgets a station that another worker has forgotten.
    pub(super) fn forget_from_peer(&mut self, station: u64) {
        self.stations.remove(station);
    }

    /// Forgets all learned stations, or those of one port.
    pub(super) fn flush(&mut self, port: Option<usize>) {
        self.stations.flush(port);
    }

    /// Forgets some silent stations of this worker's ports, and informs the other workers.
    pub(super) fn age<H: Copy + Send>(&mut self, now: Instant, peers: &mut Peers<H>) {
        for station in self.stations.age(now, |port| peers.is_own(port)) {
            peers.announce(PeerMessage::Forgotten { station });
        }
    }

    /// Adds a station that is neither learned nor forgotten. Returns false if the table is full or the port does not exist.
    pub(super) fn add_station(&mut self, now: Instant, spec: &StationSpec, config: &Config) -> bool {
        let Some(port) = config.port_index(&spec.port) else { return false };
        self.stations.add_static(now, station_key(spec.mac.to_u64(), self.vlan_key(spec.vlan)), port)
    }

    /// Adds a way: a static station with its table in place of the VLAN. Returns false as [`Self::add_station`] does.
    fn add_way(&mut self, now: Instant, spec: &WaySpec, config: &Config) -> bool {
        let Some(port) = config.port_index(&spec.port) else { return false };
        self.stations.add_static(now, station_key(spec.mac.to_u64(), way_vlan(spec.table)), port)
    }

    /// Returns true if a station is known.
    pub(super) fn knows(&self, mac: u64, vlan: Option<Vlan>) -> bool {
        self.stations.find(station_key(mac, self.vlan_key(vlan))).is_some()
    }

    /// Forgets a station.
    pub(super) fn remove(&mut self, mac: u64, vlan: Option<Vlan>) {
        self.stations.remove(station_key(mac, self.vlan_key(vlan)));
    }

    fn vlan_key(&self, vlan: Option<Vlan>) -> u16 {
        if self.has_vlans { vlan.unwrap_or(Vlan::DEFAULT).get() } else { 0 }
    }

    /// Returns the number of known stations.
    pub(super) const fn len(&self) -> usize {
        self.stations.len()
    }

    /// Returns every known station.
    pub(super) fn stations(&self, now: Instant) -> Vec<Station> {
        self.stations.iter(now).collect()
    }

    /// Returns the number of stations learned behind a port, and of frames whose source was refused.
    pub(super) fn port_stations(&self, port: usize) -> (u32, u64) {
        self.stations.of_port(port)
    }
}
