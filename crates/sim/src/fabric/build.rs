//! Builds the ports and the packet memories of a network's switches.

use fanin_dataflow::{Purpose, Random, SeedOwner, stream_seed};
use fanin_queueing::{
    Aqm, BookedDedicated, BookedMemory, InService, Layout, Memory, OutputBuffer, OutputLink, PauseThresholds,
};
use fanin_scenario::{EcnMode, FullPacket, PauseMode, SwitchSettings};
use fanin_units::Bytes;

use super::Fabric;
use super::link::LinkState;
use super::losses::LinkLosses;
use super::output::{OutputQueue, Port};
use super::pausable::PausableOutput;
use super::pause::{FlowControl, PausingSwitch};
use super::rings::RingOutput;
use crate::Error;
use fanin_network::{Network, PortIndex, SwitchKind, reverse};

/// The parts of a fabric, built switch by switch.
struct Builder<'a> {
    network: &'a Network,
    ports: Vec<Port>,
    memories: Vec<Option<BookedMemory>>,
    chances: Vec<Random>,
    /// The switches for flow control, if one of them uses PAUSE.
    pausing: Option<Vec<PausingSwitch>>,
    has_priorities: bool,
    unstored_bytes: u32,
}

impl Fabric {
    /// Makes the empty fabric of a network; `run` seeds the markers.
    pub(crate) fn new(network: &Network, run: u64) -> Result<Self, Error> {
        let ports_of = ports_by_node(network);
        let mut outputs = vec![0; network.ports().len()];
        for ports in &ports_of {
            for (output, &port) in ports.iter().enumerate() {
                let number = u16::try_from(output);
                outputs[port as usize] = number.map_err(|_| Error::unsupported("network", "65536 ports"))?;
            }
        }
        let port = |index: PortIndex| {
            let link = network.link(index);
            let link = LinkState::new(link.rate, link.delay.get(), network.latency(index).get());
            // Each direction of a link is the reverse of the other.
            Port::new(link, [outputs[index as usize], outputs[reverse(index) as usize]])
        };
        let ports = network.ports().map(port).collect();
        let mut builder = Builder {
            network,
            ports,
            memories: Vec::new(),
            chances: Vec::new(),
            pausing: network.has_pause().then(Vec::new),
            has_priorities: network
                .switches
                .iter()
                .any(|kind| kind.settings.pause.mode == PauseMode::Priority),
            unstored_bytes: network.framing.unstored_bytes(),
        };
        for (node, ports) in (0_u32..).zip(&ports_of) {
            if let Some(kind) = network.switch(node) {
                let switch = builder.memories.len() as u64;
                let random = stream_seed(run, SeedOwner::Switch, switch, Purpose::Marking);
                builder.chances.push(Random::new(random));
                builder.add_switch(kind, ports)?;
            }
        }
        for port in network.ports().filter(|&port| network.switch(network.destination(port)).is_some()) {
            builder.ports[port as usize].link_mut().lead_to_switch();
        }
        let flow_control = builder.flow_control()?;
        let Builder { ports, memories, chances, unstored_bytes, .. } = builder;
        let losses = LinkLosses::new(network, run);
        Ok(Self {
            ports,
            memories,
            flow_control,
            chances,
            segments: Vec::new(),
            free: Vec::new(),
            paths: super::paths::StoredPaths::new(network.ports().len()),
            observers: u32::from(losses.is_some()),
            losses,
            arrived: 0,
            framing: network.framing,
            unstored_bytes,
        })
    }
}

impl Builder<'_> {
    /// Makes the queues of the next switch, with outputs `ports`.
    fn add_switch(&mut self, kind: &SwitchKind, ports: &[PortIndex]) -> Result<(), Error> {
        let settings = &kind.settings;
        let number = self.memories.len() as u32;
        for &port in ports {
            self.ports[port as usize].join(number);
        }
        self.memories.push(None);
        if settings.buffering.has_rings() {
            return self.add_ring_switch(settings, ports);
        }
        let layout = layout(self.network, settings, ports)?.expect("only rings have no layout");
        if self.pausing.is_some() {
            return self.add_pausing_switch(settings, &layout, ports);
        }
        if !layout.couples_outputs() {
            return self.add_dedicated(settings, &layout, ports);
        }
        let links: Vec<OutputLink> = ports.iter().map(|&port| self.queue_link(port)).collect();
        let mut memory = BookedMemory::new(&layout, &links, in_service(settings))?;
        for (output, &port) in ports.iter().enumerate() {
            memory.set_aqm(output, self.aqm(settings, port)?);
            self.ports[port as usize].set_queue(OutputQueue::Memory);
        }
        *self.memories.last_mut().expect("the switch was added") = Some(memory);
        Ok(())
    }

    /// Makes a switch with a buffer for each output, without PAUSE.
    fn add_dedicated(
        &mut self,
        settings: &SwitchSettings,
        layout: &Layout,
        ports: &[PortIndex],
    ) -> Result<(), Error> {
        for (output, &port) in ports.iter().enumerate() {
            let mut buffer = OutputBuffer::of(layout, output);
            buffer.set_aqm(self.aqm(settings, port)?);
            let queue = BookedDedicated::new(buffer, self.queue_link(port), in_service(settings));
            self.ports[port as usize].set_queue(OutputQueue::Dedicated(Box::new(queue)));
        }
        Ok(())
    }

    /// Makes a switch of a network with PAUSE.
    fn add_pausing_switch(
        &mut self,
        settings: &SwitchSettings,
        layout: &Layout,
        ports: &[PortIndex],
    ) -> Result<(), Error> {
        let mut memory = Memory::new(layout)?;
        for (output, &port) in ports.iter().enumerate() {
            memory.set_aqm(output, self.aqm(settings, port)?);
            let queue = self.pausable(port, in_service(settings));
            self.ports[port as usize].set_queue(queue);
        }
        let counts_bulk_only = settings.pause.mode == PauseMode::Priority;
        self.pausing.get_or_insert_default().push(PausingSwitch::new(memory, counts_bulk_only));
        Ok(())
    }

    /// Makes a switch with rings, which marks no frame and sends no signal.
    fn add_ring_switch(&mut self, settings: &SwitchSettings, ports: &[PortIndex]) -> Result<(), Error> {
        assert!(self.pausing.is_none(), "PAUSE with rings passed the check `pause_of_rings`");
        assert_eq!(settings.ecn.mode, EcnMode::Off, "marks of rings passed the check `signals_of_rings`");
        for &port in ports {
            let rings = RingOutput::new(&settings.daqring, self.unstored_bytes)?;
            self.ports[port as usize].set_queue(OutputQueue::Rings(Box::new(rings)));
        }
        Ok(())
    }

    /// Makes the marker of an output.
    fn aqm(&self, settings: &SwitchSettings, port: PortIndex) -> Result<Aqm, Error> {
        let bytes = self.network.frame_bytes;
        let (frame, time) = (Bytes::new(bytes.into()), self.queue_link(port).time_to_send(bytes));
        Ok(settings.ecn.aqm(FullPacket { frame, queued: frame, time })?)
    }

    /// Returns the link of a port, with the properties that its queue needs.
    fn queue_link(&self, port: PortIndex) -> OutputLink {
        OutputLink::new(self.network.link(port).rate, Bytes::new(u64::from(self.unstored_bytes)))
    }

    /// Returns the settings of the switch at the far end of a port's link; `None` if a host is there.
    fn next_switch(&self, port: PortIndex) -> Option<&SwitchSettings> {
        self.network.switch(self.network.destination(port)).map(|kind| &kind.settings)
    }

    /// Makes a queue that the switch at the far end of the link may pause.
    fn pausable(&self, port: PortIndex, in_service: InService) -> OutputQueue {
        let pause = self.next_switch(port).map(|next| &next.pause);
        let only_bulk = pause.is_some_and(|pause| pause.mode == PauseMode::Priority);
        let reaction = pause.map_or(0, |pause| pause.reaction.get());
        OutputQueue::Pausable(Box::new(PausableOutput::new(in_service, only_bulk, reaction)))
    }

    /// Builds flow control, if a switch uses PAUSE. A host's output becomes pausable if a switch may pause it.
    fn flow_control(&mut self) -> Result<Option<Box<FlowControl>>, Error> {
        let Some(switches) = self.pausing.take() else { return Ok(None) };
        let mut thresholds = Vec::with_capacity(self.ports.len());
        for port in 0..self.ports.len() as PortIndex {
            let pause = self.next_switch(port).map(|next| &next.pause);
            let pause = pause.filter(|pause| pause.mode != PauseMode::Off);
            thresholds.push(pause.map(|pause| PauseThresholds::new(pause.xoff, pause.xon)).transpose()?);
            let is_pausable = thresholds[port as usize].is_some() || self.has_priorities;
            if self.ports[port as usize].at_switch().is_none() && is_pausable {
                let queue = self.pausable(port, InService::Free);
                self.ports[port as usize].set_queue(queue);
            }
        }
        let flow_control = FlowControl::new(switches, thresholds, self.has_priorities, self.network.framing);
        Ok(Some(Box::new(flow_control)))
    }
}

const fn in_service(settings: &SwitchSettings) -> InService {
    if settings.count_in_service { InService::Counted } else { InService::Free }
}

/// Returns the ports by which frames leave each node, by node.
fn ports_by_node(network: &Network) -> Vec<Vec<PortIndex>> {
    let mut ports: Vec<Vec<PortIndex>> = vec![Vec::new(); network.nodes.len()];
    network.ports().for_each(|port| ports[network.source(port) as usize].push(port));
    ports
}

/// Returns each switch's kind and the layout of its memory, by the fabric's numbers. A switch with rings has no layout.
pub(crate) fn switch_layouts(network: &Network) -> Result<Vec<(&SwitchKind, Option<Layout>)>, Error> {
    let mut layouts = Vec::new();
    for (node, ports) in (0_u32..).zip(&ports_by_node(network)) {
        if let Some(kind) = network.switch(node) {
            layouts.push((kind, layout(network, &kind.settings, ports)?));
        }
    }
    Ok(layouts)
}

/// Returns the division of a switch's memory among these ports; `None` with rings.
fn layout(network: &Network, switch: &SwitchSettings, ports: &[PortIndex]) -> Result<Option<Layout>, Error> {
    let is_uplink: Vec<bool> = ports.iter().map(|&port| network.is_uplink(port)).collect();
    let layout = switch.layout(&is_uplink);
    if let Some(layout) = &layout {
        layout.check()?;
    }
    Ok(layout)
}
