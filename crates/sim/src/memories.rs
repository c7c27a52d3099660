//! The packet memories of a network's switches.

use fanin_queueing::{FifoMemory, InService, Layout, Link};
use fanin_scenario::{Buffering, EcnMode, PauseMode, PoolCharge, Switch};
use fanin_units::Bytes;

use crate::Error;
use crate::network::{Network, NodeIndex, NodeKind, PortIndex, SwitchKind};

/// Where a port stands at its two ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The switch memory that queues before the port; `u32::MAX` at a host.
    pub(crate) memory: u32,
    /// The port's number among those that leave its node.
    pub(crate) output: u16,
    /// The number, at the node that it leads to, of the port that it comes in by.
    pub(crate) input: u16,
}

/// The memories of all switches, and where each port belongs.
pub(crate) struct Memories {
    pub(crate) memories: Vec<FifoMemory>,
    /// By [`PortIndex`].
    pub(crate) places: Vec<Place>,
    /// The node of each memory.
    pub(crate) nodes: Vec<NodeIndex>,
}

impl Memories {
    /// Empty memories for all switches of a network.
    pub(crate) fn new(network: &Network) -> Result<Self, Error> {
        let mut ports_of: Vec<Vec<PortIndex>> = vec![Vec::new(); network.nodes.len()];
        let ports = 0..2 * network.links.len() as PortIndex;
        let mut places: Vec<Place> = Vec::with_capacity(ports.len());
        for port in ports {
            let leaving = &mut ports_of[network.source(port) as usize];
            let output = u16::try_from(leaving.len()).map_err(|_| Error::unsupported("network", "65536 ports"))?;
            leaving.push(port);
            places.push(Place { memory: u32::MAX, output, input: 0 });
        }
        for port in 0..places.len() {
            // A link's two directions are each other's way back.
            places[port].input = places[port ^ 1].output;
        }
        let (mut memories, mut nodes) = (Vec::new(), Vec::new());
        for (node, ports) in ports_of.iter().enumerate() {
            let NodeKind::Switch { like } = network.nodes[node].kind else { continue };
            let SwitchKind { settings, has_uplinks } = &network.switches[like];
            let to_switch =
                |&port: &PortIndex| network.nodes[network.destination(port) as usize].kind != NodeKind::Host;
            let is_uplink: Vec<bool> = ports.iter().map(|port| *has_uplinks && to_switch(port)).collect();
            let wire = Bytes::new(u64::from(network.framing.link_bytes - network.framing.stored_bytes));
            let links: Vec<Link> =
                ports.iter().map(|&port| Link::new(network.links[port as usize / 2].rate, wire)).collect();
            let in_service = if settings.count_in_service { InService::Counted } else { InService::Free };
            let memory = FifoMemory::new(&layout(settings, &is_uplink)?, &links, in_service)?;
            for &port in ports {
                places[port as usize].memory = memories.len() as u32;
            }
            memories.push(memory);
            nodes.push(node as NodeIndex);
        }
        Ok(Self { memories, places, nodes })
    }
}

/// How a switch divides its memory among its ports.
fn layout(switch: &Switch, is_uplink: &[bool]) -> Result<Layout, Error> {
    let ports = is_uplink.len();
    if switch.pause.mode != PauseMode::Off {
        return Err(Error::unsupported("pause.mode", "PAUSE frames"));
    }
    if switch.m21 {
        return Err(Error::unsupported("m21", "the M21TCP option"));
    }
    if switch.ecn.mode != EcnMode::Off {
        return Err(Error::unsupported("ecn.mode", "ECN and RED"));
    }
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
                PoolCharge::Output => fanin_queueing::PoolBy::Output(pool_of_port),
                PoolCharge::Input => fanin_queueing::PoolBy::Input(pool_of_port),
            };
            Layout {
                output_limits: vec![limit(switch.port_limit); ports],
                input_limits: vec![limit(switch.input_limit); ports],
                pools,
                pool_by,
                ..Layout::unlimited(ports)
            }
        }
        Buffering::Daqring => return Err(Error::unsupported("buffering", "daqring")),
    };
    layout.overhead = switch.frame_overhead;
    Ok(layout)
}
