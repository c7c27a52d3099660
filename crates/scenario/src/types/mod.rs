//! The types of a scenario file: one file for each section, each key with its unit, range, default and source.
//!
//! The type of a section is its `…Settings` where another crate has the thing itself: [`SupervisorSettings`] configure the
//! `Supervisor` of `fanin-dataflow`.

mod background;
mod live;
mod network;
mod roles;
mod run;
pub(crate) mod shaping;
mod switch;
mod transport;
mod workload;

pub use background::{BackgroundKind, BackgroundSettings};
use fanin_units::{Bytes, wire};
pub use live::{Live, Processors, RECEIVE_BYTES_MAX};
pub use network::{
    FlowDistribution, Framing, Hybrid, LeafSpine, LinkSettings, NetworkSettings, Topology, TopologyFacts,
};
pub use roles::{
    Arrivals, CollectorSettings, FragmentSizes, LoggerSettings, Policy, ReadoutSettings, SizeModel,
    StartOrder, SupervisorSettings, TieBreak,
};
pub use run::{Record, Run};
pub use shaping::{
    BarrelShifterSettings, Barrier, CreditDiscipline, FastpassSettings, RequestOrder, Shaping, ShapingMethod,
};
pub use switch::{
    Buffering, Daqrings, Depth, Ecn, EcnMode, FullPacket, Limit, NotCapable, Pause, PauseMode, PoolCharge,
    QueueUnit, RingService, SwitchSettings,
};
pub(crate) use transport::profile_defaults;
pub use transport::{
    CongestionControl, CongestionFacts, CreditPolicy, DctcpSettings, DiatcpSettings, M21Charge,
    M21tcpSettings, Profile, SirdSettings, SwiftSettings, Transport, WindowState,
};
pub use workload::{Step, StepPart, Workload, WorkloadKind};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A whole system: its hosts and network, its use, and the records of a run.
///
/// Every key has a default. A file contains only the differences: from the defaults, or from the file that it `extends`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// The purpose of the scenario, in one line.
    pub title: String,
    /// The source of its numbers: a paper and section, or a design note.
    pub source: String,
    /// The length of a run, and its seed.
    pub run: Run,
    /// The hosts that hold the fragments (ROS).
    pub readout: ReadoutSettings,
    /// The hosts that collect events (DCM), their racks and processing units (HLTPU).
    pub collectors: CollectorSettings,
    /// The supervisor that assigns events (HLTSV).
    pub supervisor: SupervisorSettings,
    /// The data loggers that store accepted events.
    pub logger: LoggerSettings,
    /// The requests of the collectors.
    pub workload: Workload,
    /// The traffic of other applications over the same ports.
    // Absent without it, so that hashes of scenarios from before it stay.
    #[serde(skip_serializing_if = "BackgroundSettings::is_default")]
    pub background: BackgroundSettings,
    /// TCP: the stack and its settings.
    pub transport: Transport,
    /// Traffic shaping: methods that keep bursts smaller than the buffers.
    pub shaping: Shaping,
    /// The hosts, switches and links between them.
    pub network: NetworkSettings,
    /// The link of each collector; in a star, of each sender too unless `readout.link` says otherwise.
    pub link: LinkSettings,
    /// The link from a rack's switch to each core router, and from a readout group's switch.
    pub uplink: LinkSettings,
    /// The top-of-rack switches of the collectors; in a star, the only switch.
    pub tor: SwitchSettings,
    /// The core routers.
    pub core: SwitchSettings,
    /// The switches that join a group of readouts to the core.
    pub aggregation: SwitchSettings,
    /// The leaf switches of a leaf-spine network.
    pub leaf: SwitchSettings,
    /// The spine switches of a leaf-spine network.
    pub spine: SwitchSettings,
    /// Settings of real processes.
    pub live: Live,
    /// Records that are written in addition to the summary.
    pub record: Record,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            title: String::new(),
            source: String::new(),
            run: Run::default(),
            readout: ReadoutSettings::default(),
            collectors: CollectorSettings::default(),
            supervisor: SupervisorSettings::default(),
            logger: LoggerSettings::default(),
            workload: Workload::default(),
            background: BackgroundSettings::default(),
            transport: Transport::default(),
            shaping: Shaping::default(),
            network: NetworkSettings::default(),
            link: LinkSettings::default(),
            uplink: LinkSettings { rate: fanin_units::Rate::new(10_000_000_000), ..LinkSettings::default() },
            tor: SwitchSettings::default(),
            core: SwitchSettings {
                buffering: Buffering::Voq,
                buffer: SwitchSettings::MODULE,
                ..SwitchSettings::unlimited()
            },
            aggregation: SwitchSettings::unlimited(),
            leaf: SwitchSettings::unlimited(),
            spine: SwitchSettings::unlimited(),
            live: Live::default(),
            record: Record::default(),
        }
    }
}

impl Scenario {
    /// Returns the number of collectors in all racks together.
    pub fn collectors_total(&self) -> u64 {
        u64::from(self.collectors.racks) * u64::from(self.collectors.hosts_per_rack)
    }

    /// Returns the bytes of a full segment's frame on the wire. A full segment has as many bytes of payload and options as
    /// `transport.mss`.
    pub fn full_frame_wire(&self) -> Bytes {
        let mss = u32::try_from(self.transport.mss.get()).unwrap_or(u32::MAX);
        let packet = mss.saturating_add(wire::IP_TCP_HEADERS).min(u32::MAX >> 1);
        Bytes::new(self.network.framing.frame_overhead().wire_bytes(packet).into())
    }

    /// Returns the facts of the scenario's topology.
    pub const fn topology_facts(&self) -> TopologyFacts {
        self.network.facts()
    }

    /// Returns the number of connections, which tables and `record.windows` number from 0. A barrier workload has one for each
    /// sender. In event building each collector has one with each readout, with the supervisor and with each logger. Each
    /// readout has one with the supervisor. Background connections come last.
    pub fn connections_total(&self) -> u64 {
        if self.is_barrier() {
            return u64::from(self.workload.senders) + self.background_connections();
        }
        let readouts = u64::from(self.readout.hosts);
        let of_collector = readouts + 1 + u64::from(self.logger.hosts);
        self.collectors_total() * of_collector + readouts + self.background_connections()
    }

    /// Returns the number of processing units of all collectors together.
    pub fn units_total(&self) -> u64 {
        self.collectors_total() * u64::from(self.collectors.units_per_host)
    }

    /// Returns the number of fragments of an event, over all readouts.
    pub fn fragments_total(&self) -> u64 {
        u64::from(self.readout.hosts) * u64::from(self.readout.fragments_per_host)
    }

    /// Returns true if the workload is a barrier-synchronised workload of the data-centre papers.
    pub fn is_barrier(&self) -> bool {
        matches!(self.workload.kind, WorkloadKind::FixedFragment | WorkloadKind::FixedBlock)
    }

    /// Returns the number of hosts that answer a collector: `workload.senders` for barrier workloads, else the readouts.
    pub fn senders(&self) -> u32 {
        if self.is_barrier() { self.workload.senders } else { self.readout.hosts }
    }

    /// Returns the number of hosts that collect answers: the one aggregator of a barrier workload, else the collectors.
    pub fn receivers(&self) -> u64 {
        if self.is_barrier() { 1 } else { self.collectors_total() }
    }

    /// Returns the settings of the switches that a section such as `tor` describes.
    ///
    /// # Panics
    /// If the section describes no switches.
    pub fn switch_settings(&self, section: &str) -> &SwitchSettings {
        match section {
            "tor" => &self.tor,
            "core" => &self.core,
            "aggregation" => &self.aggregation,
            "leaf" => &self.leaf,
            "spine" => &self.spine,
            section => unreachable!("the section {section} describes no switches"),
        }
    }

    /// Returns the number of background connections. They have the highest numbers of all connections.
    pub fn background_connections(&self) -> u64 {
        u64::from(self.background.connections) * self.receivers()
    }

    /// Returns the settings of TCP for background connections: new ones, without the technique of the system. Profiles that
    /// describe no kernel are replaced by `linux-6`.
    pub fn background_transport(&self) -> Transport {
        let (own, congestion_control) = (&self.transport, self.background.congestion_control);
        match own.profile {
            Profile::Linux2632 | Profile::Linux2626 | Profile::Linux6 => {
                Transport { congestion_control, window_state: WindowState::Cold, ..own.clone() }
            }
            Profile::Ns3Newreno | Profile::Textbook => Transport {
                congestion_control,
                mtu: own.mtu,
                mss: own.mss,
                receive_window: own.receive_window,
                ..Transport::default()
            },
        }
    }
}
