//! The packet memories of a network's switches.

use fanin_network::{M21, Network, NodeIndex, NodeKind, PortIndex, SwitchKind};
use fanin_queueing::{
    Aqm, Depth, FifoMemory, InService, Layout, Link, Memory, NotCapable, PoolBy, Red, RedSettings, Threshold,
};
use fanin_scenario::{Buffering, Daqrings, Ecn, EcnMode, PauseMode, PoolCharge, QueueUnit, Switch};
use fanin_units::{Bytes, Packets};

use crate::Error;
use crate::fabric::HeldPorts;
use crate::m21::{M21Switches, accounting};
use crate::rings::RINGED;

/// Where a port stands at its two ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The switch memory that queues before the port; `u32::MAX` where there is a limit of the port's own, or none.
    pub(crate) memory: u32,
    /// The port's number among those that leave its node.
    pub(crate) output: u16,
    /// The number, at the node that it leads to, of the port that it comes in by.
    pub(crate) input: u16,
}

/// A port's own limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plain {
    /// Bytes that its queue may hold, bookkeeping included.
    pub(crate) limit: u64,
    /// Bookkeeping of each frame.
    pub(crate) overhead: u32,
    /// Whether a frame counts while it is being sent.
    pub(crate) counts_in_service: bool,
    /// Which of the switches it belongs to; `u32::MAX` at a host.
    pub(crate) switch: u32,
    /// From where on it marks.
    pub(crate) threshold: Option<Threshold>,
}

/// A shared memory of at least so many bytes is taken as one that never fills, until it is seen to.
const AMPLE_BYTES: u64 = 256_000_000;

/// The memories of all switches, and where each port belongs.
///
/// Where nothing but a port's own limit can refuse a frame, its link's ring does the counting and no memory is made:
/// an unlimited or dedicated queue, also one that marks by a threshold. Shared memories so large that they should never fill are taken
/// for unlimited at first; [`Self::ample`] says from how many bytes in the whole switch on that may be wrong.
pub(crate) struct Memories {
    pub(crate) memories: Vec<FifoMemory>,
    /// By [`PortIndex`].
    pub(crate) plain: Vec<Plain>,
    /// By switch, in the order of nodes: the bytes in the whole switch up to which no shared limit can be met.
    pub(crate) ample: Vec<u64>,
    /// By [`PortIndex`].
    pub(crate) places: Vec<Place>,
    /// The node of each memory; where ports can be stopped, that of each switch.
    pub(crate) nodes: Vec<NodeIndex>,
    /// Ports whose frames wait in rings, and the settings of these.
    pub(crate) ringed: Vec<(PortIndex, Daqrings)>,
    /// All ports as they are where some can be stopped. There are no other memories then than theirs.
    pub(crate) held: Option<HeldPorts>,
    /// What the switches do for M21TCP, where the connections use it.
    pub(crate) m21: Option<M21Switches>,
}

impl Memories {
    /// Empty memories for all switches of a network.
    ///
    /// With `exact`, no memory is taken for ample.
    pub(crate) fn new(network: &Network, exact: bool) -> Result<Self, Error> {
        let mut ports_of: Vec<Vec<PortIndex>> = vec![Vec::new(); network.nodes.len()];
        let ports = 0..2 * network.links.len() as PortIndex;
        let mut places: Vec<Place> = Vec::with_capacity(ports.len());
        for port in ports {
            let leaving = &mut ports_of[network.source(port) as usize];
            let output =
                u16::try_from(leaving.len()).map_err(|_| Error::unsupported("network", "65536 ports"))?;
            leaving.push(port);
            places.push(Place { memory: u32::MAX, output, input: 0 });
        }
        for port in 0..places.len() {
            // A link's two directions are each other's way back.
            places[port].input = places[port ^ 1].output;
        }
        let (mut memories, mut nodes, mut ample, mut ringed) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut m21 = network.m21.as_ref().map(|m21| M21Switches::new(&m21.settings, m21.mss));
        let unlimited = Plain {
            limit: u64::MAX,
            overhead: 0,
            counts_in_service: true,
            switch: u32::MAX,
            threshold: None,
        };
        let mut plain = vec![unlimited; places.len()];
        let stopping = network.switches_used().find(|kind| kind.settings.pause.mode != PauseMode::Off);
        let stops = stopping.is_some();
        let mut switch_of = vec![u32::MAX; places.len()];
        let mut held: Vec<Option<Memory>> = Vec::new();
        for (node, ports) in ports_of.iter().enumerate() {
            let NodeKind::Switch { like } = network.nodes[node].kind else { continue };
            let SwitchKind { settings, section, .. } = &network.switches[like];
            let is_uplink: Vec<bool> = ports.iter().map(|&port| network.is_uplink(port)).collect();
            let wire = Bytes::new(u64::from(network.framing.link_bytes - network.framing.stored_bytes));
            let links: Vec<Link> =
                ports.iter().map(|&port| Link::new(network.links[port as usize / 2].rate, wire)).collect();
            if settings.buffering == Buffering::Daqring {
                refuse_signals(settings, section, stopping.map(|kind| kind.section))?;
                if let (Some(switches), Some(M21 { settings: m21, .. })) = (&mut m21, &network.m21) {
                    switches.add(None, m21);
                }
                let switch = ample.len() as u32;
                ample.push(u64::MAX);
                for &port in ports {
                    switch_of[port as usize] = switch;
                    places[port as usize].memory = RINGED | ringed.len() as u32;
                    plain[port as usize].switch = switch;
                    ringed.push((port, settings.daqring.clone()));
                }
                continue;
            }
            let layout = layout(settings, &is_uplink)?;
            layout.check()?;
            if let (Some(switches), Some(M21 { settings: m21, mss })) = (&mut m21, &network.m21) {
                let frame = u64::from(network.frame_bytes) + settings.frame_overhead.get();
                let known = settings.m21.then(|| (&layout, accounting(m21, *mss, frame)));
                switches.add(known, m21);
            }
            let marks = settings.ecn.mode != EcnMode::Off;
            // RED looks at each queue as it is; a threshold only where there may be as much.
            let threshold = if stops { None } else { threshold(&settings.ecn, network.frame_bytes) };
            let shared_limit = if marks && threshold.is_none() { 0 } else { shared_limit(&layout) };
            let switch = ample.len() as u32;
            ample.push(shared_limit);
            for &port in ports {
                switch_of[port as usize] = switch;
            }
            if shared_limit == u64::MAX || (shared_limit >= AMPLE_BYTES && !exact) {
                for (&port, limit) in ports.iter().zip(&layout.output_limits) {
                    plain[port as usize] = Plain {
                        limit: limit.get(),
                        overhead: settings.frame_overhead.get() as u32,
                        counts_in_service: settings.count_in_service,
                        switch,
                        threshold,
                    };
                }
                if stops {
                    held.push(None);
                    nodes.push(node as NodeIndex);
                }
                continue;
            }
            if stops {
                let mut memory = Memory::new(&layout)?;
                for (output, link) in links.iter().enumerate().filter(|_| marks) {
                    memory.set_aqm(output, aqm(&settings.ecn, network.frame_bytes, link)?);
                }
                for &port in ports {
                    places[port as usize].memory = held.len() as u32;
                    let plain = &mut plain[port as usize];
                    (plain.switch, plain.overhead) = (switch, settings.frame_overhead.get() as u32);
                    plain.counts_in_service = settings.count_in_service;
                }
                held.push(Some(memory));
                nodes.push(node as NodeIndex);
                continue;
            }
            let in_service = if settings.count_in_service { InService::Counted } else { InService::Free };
            let mut memory = FifoMemory::new(&layout, &links, in_service)?;
            for (output, link) in links.iter().enumerate().filter(|_| marks) {
                memory.set_aqm(output, aqm(&settings.ecn, network.frame_bytes, link)?);
            }
            for &port in ports {
                places[port as usize].memory = memories.len() as u32;
                plain[port as usize].switch = switch;
            }
            memories.push(memory);
            nodes.push(node as NodeIndex);
        }
        let held = if stops { Some(HeldPorts::new(network, held, &switch_of)?) } else { None };
        Ok(Self { memories, plain, ample, places, nodes, held, m21, ringed })
    }
}

/// The least limit that frames of several ports meet together; `u64::MAX` where there is none.
fn shared_limit(layout: &Layout) -> u64 {
    if layout.alpha.is_some() {
        return 0;
    }
    let pools = if layout.pool_by == PoolBy::Nothing { &[][..] } else { &layout.pools };
    pools
        .iter()
        .chain(&layout.input_limits)
        .chain(&layout.voq_limit)
        .map(|limit| limit.get())
        .min()
        .unwrap_or(u64::MAX)
}

/// Signals that a switch with rings does not give; `stopping` is the section of a switch that sends PAUSE.
fn refuse_signals(switch: &Switch, section: &str, stopping: Option<&str>) -> Result<(), Error> {
    if let Some(stopping) = stopping {
        return Err(Error::unsupported(format!("{stopping}.pause.mode"), "PAUSE in a network with daqrings"));
    }
    if switch.m21 {
        return Err(Error::unsupported(
            format!("{section}.m21"),
            "the M21TCP option of a switch with daqrings",
        ));
    }
    if switch.ecn.mode != EcnMode::Off {
        return Err(Error::unsupported(format!("{section}.ecn.mode"), "early marking in daqrings"));
    }
    Ok(())
}

/// So much of a queue, in the measure that the scenario has for it; a full frame takes `frame_bytes`.
fn depth(ecn: &Ecn, packets: Packets, frame_bytes: u32) -> Depth {
    match ecn.unit {
        QueueUnit::Packets => Depth::Packets(packets),
        QueueUnit::Bytes => {
            let frame = Bytes::new(u64::from(frame_bytes));
            Depth::Bytes(packets.checked_times(frame).unwrap_or(Bytes::MAX))
        }
    }
}

/// From where on the outputs of a switch mark, if they do by a threshold.
fn threshold(ecn: &Ecn, frame_bytes: u32) -> Option<Threshold> {
    (ecn.mode == EcnMode::Threshold).then(|| Threshold {
        depth: depth(ecn, ecn.threshold, frame_bytes),
        not_capable: match ecn.not_capable {
            fanin_scenario::NotCapable::Drop => NotCapable::Drop,
            fanin_scenario::NotCapable::Pass => NotCapable::Pass,
        },
    })
}

/// The early signals of one output.
fn aqm(ecn: &Ecn, frame_bytes: u32, link: &Link) -> Result<Aqm, Error> {
    let red = |marks| {
        Red::new(RedSettings {
            depth_min: depth(ecn, ecn.min, frame_bytes),
            depth_max: depth(ecn, ecn.max, frame_bytes),
            weight: ecn.weight,
            probability_max: ecn.probability_max,
            gentle: ecn.gentle,
            ecn: marks,
            hard_drop: ecn.hard_drop,
            packet_mean: Bytes::new(u64::from(frame_bytes)),
            packet_time: link.time_to_send(frame_bytes),
        })
    };
    Ok(match ecn.mode {
        EcnMode::Off => Aqm::None,
        EcnMode::Threshold => threshold(ecn, frame_bytes).map_or(Aqm::None, Aqm::Threshold),
        EcnMode::RedMark => Aqm::Red(red(true)?),
        EcnMode::RedDrop => Aqm::Red(red(false)?),
    })
}

/// How a switch divides its memory among its ports.
fn layout(switch: &Switch, is_uplink: &[bool]) -> Result<Layout, Error> {
    let ports = is_uplink.len();
    let limit = |limit: fanin_scenario::Limit| limit.0.unwrap_or(Bytes::MAX);
    let mut layout = match switch.buffering {
        Buffering::Unlimited => Layout::unlimited(ports),
        Buffering::Dedicated => Layout::dedicated(
            is_uplink.iter().map(|&up| if up { switch.uplink_buffer } else { switch.buffer }).collect(),
        ),
        Buffering::DynamicThreshold => Layout::dynamic_threshold(ports, switch.buffer, switch.alpha),
        Buffering::Voq => {
            Layout::modules(ports, switch.module_ports as usize, switch.buffer, limit(switch.port_limit))
        }
        Buffering::Shared => {
            let split = switch.pool_split as usize;
            let pool_of = |port: usize| usize::from(split > 0 && port >= split);
            let pool_of_port: Vec<usize> = (0..ports).map(pool_of).collect();
            let pools = vec![switch.buffer; if split > 0 && ports > split { 2 } else { 1 }];
            let pool_by = match switch.pool_charge {
                PoolCharge::Output => PoolBy::Output(pool_of_port),
                PoolCharge::Input => PoolBy::Input(pool_of_port),
            };
            Layout {
                output_limits: vec![limit(switch.port_limit); ports],
                input_limits: vec![limit(switch.input_limit); ports],
                pools,
                pool_by,
                ..Layout::unlimited(ports)
            }
        }
        Buffering::Daqring => unreachable!("rings have no layout"),
    };
    layout.overhead = switch.frame_overhead;
    Ok(layout)
}
