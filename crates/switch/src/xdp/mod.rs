//! AF_XDP ports: frames of the kernel's interfaces, with one packet memory for all ports.
//!
//! Linux's `Documentation/networking/af_xdp.rst`. Each queue of an interface has a socket with four rings: fill and receive,
//! transmit and completion. A program of six instructions sends the frames of these queues to the sockets. It is attached by
//! a link that ends with the process, so that a crash leaves nothing behind.

mod bpf;
mod bypass;
mod device;
mod error;
mod port;
mod queue;
mod reopen;
mod ring;
mod socket;

use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use crate::config::Config;
use crate::driver::{Driver, Received};
use crate::memory::over_a_pool;
use crate::pool::{Buffer, Pool};
use device::Device;
use port::{PortRecipe, XdpPort};
use queue::{SLOTS_MAX, SLOTS_MIN, Umem, UmemArea};
use reopen::Reopener;

pub use error::OpenError;

/// AF_XDP ports of one worker, over its share of the packet memory.
#[derive(Debug)]
pub struct XdpPorts {
    pool: Pool,
    shift: u32,
    ports: Vec<Option<OpenedPort>>,
    reopener: Reopener,
}

/// A port, with the settings to open it again.
#[derive(Debug)]
struct OpenedPort {
    recipe: PortRecipe,
    port: XdpPort,
}

impl XdpPorts {
    /// Opens all interfaces of a configuration. Returns the ports of each worker.
    ///
    /// # Errors
    /// If a privilege, the interface or a feature of the kernel is missing.
    pub fn open(config: &Config) -> Result<Vec<Self>, OpenError> {
        let spec = &config.switch;
        let workers = config.workers();
        let no_memory =
            |error| OpenError { interface: "memory".to_owned(), action: "mapping packet memory", error };
        let pools = Pool::new(spec.memory, spec.mtu, spec.hugepages, workers).map_err(no_memory)?;
        raise_memory_lock();
        let no_thread = |error| OpenError {
            interface: "thread".to_owned(),
            action: "starting the one that opens ports",
            error,
        };
        let reopeners = Reopener::start(workers).map_err(no_thread)?;
        let mut all: Vec<Self> = pools
            .into_iter()
            .zip(reopeners)
            .map(|(pool, reopener)| Self {
                shift: pool.chunk_bytes().ilog2(),
                pool,
                ports: config.port.iter().map(|_| None).collect(),
                reopener,
            })
            .collect();
        let mut umem = None;
        let mut devices = Vec::new();
        for (index, port) in config.port.iter().enumerate() {
            let recipe = PortRecipe {
                interface: port.interface.clone().unwrap_or_default(),
                queues: port.queues.map(u32::from),
                attach: port.attach,
                copy: port.copy,
                bypass: port.bypass,
                slots: SLOTS_MIN,
                mtu: spec.mtu.get() as u32,
                area: UmemArea::of(&all[0].pool),
            };
            let device = Device::open(&recipe.interface).map_err(recipe.fail("opening the interface"))?;
            let queues = recipe.queues(&device);
            devices.push((index, recipe, device, queues));
        }
        let sockets = |worker| -> u32 {
            devices.iter().filter(|(n, ..)| config.worker_of(*n) == worker).map(|(.., queues)| queues).sum()
        };
        let slots: Vec<u32> = (0..workers)
            .map(|worker| {
                let each = all[worker].pool.share_len() as u32 / 2 / sockets(worker).max(1);
                (1 << each.max(1).ilog2()).clamp(SLOTS_MIN, SLOTS_MAX)
            })
            .collect();
        for (index, mut recipe, device, _) in devices {
            let worker = config.worker_of(index);
            let ports = &mut all[worker];
            recipe.slots = slots[worker];
            let mut port = recipe.open(device, &mut umem)?;
            port.begin(&recipe, &mut ports.pool, ports.shift)?;
            ports.ports[index] = Some(OpenedPort { recipe, port });
        }
        Ok(all)
    }

    /// Returns the packet memory.
    pub const fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Returns true if the redirect of a port runs in its driver; `None` if the port is not an open port of this worker.
    pub fn is_native(&self, port: usize) -> Option<bool> {
        self.ports[port].as_ref().map(|opened| opened.port.redirect.is_native)
    }

    /// Takes over reopened ports.
    fn take_reopened(&mut self) {
        while let Some(reopen::Reopened { port: place, opened: new }) = self.reopener.poll() {
            let Some(opened) = &mut self.ports[place] else { continue };
            let lost = opened.port.replace(new, &mut self.pool, self.shift);
            let interface = &opened.recipe.interface;
            eprintln!("the interface {interface} was recreated; its port is attached");
            if lost > 0 {
                eprintln!("warning: the old {interface} took {lost} chunks of packet memory with it");
            }
        }
    }
}

/// Raises the limit on locked memory, for packet memory, if permitted.
fn raise_memory_lock() {
    let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: reads a plain value. If it is refused, registering the memory fails.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) };
}

impl Driver for XdpPorts {
    type Handle = Buffer;

    fn ports_len(&self) -> usize {
        self.ports.len()
    }

    fn receive(&mut self, port: usize, frames_max: usize, into: &mut Vec<Received<Buffer>>) {
        let Some(opened) = &mut self.ports[port] else { return };
        let start = into.len();
        for queue in &mut opened.port.queues {
            let left = frames_max - (into.len() - start);
            queue.receive(&mut self.pool, self.shift, left, into);
        }
        for frame in &into[start..] {
            self.pool.prefetch(frame.handle);
        }
    }

    fn transmit(&mut self, port: usize, frames: &[Received<Buffer>]) -> usize {
        // One queue for all frames keeps their order.
        let Some(queue) = self.ports[port].as_mut().and_then(|opened| opened.port.queues.first_mut()) else {
            return 0;
        };
        queue.transmit(&self.pool, frames)
    }

    fn flush(&mut self, port: usize) {
        let Some(opened) = &mut self.ports[port] else { return };
        for queue in &mut opened.port.queues {
            queue.flush(&mut self.pool, self.shift, SLOTS_MAX as usize);
        }
    }

    fn is_up(&mut self, port: usize) -> bool {
        self.take_reopened();
        let Some(opened) = &mut self.ports[port] else { return false };
        if !opened.port.device.handle_loss() {
            return opened.port.device.is_up();
        }
        let recipe = opened.recipe.clone();
        let mut others = self.ports.iter().flatten().filter(|other| !other.port.device.is_lost());
        let umem = others.find_map(|other| other.port.queues.first()).map(Umem::of);
        self.reopener.request(port, &recipe, umem);
        false
    }

    fn missed(&self, port: usize) -> u64 {
        self.ports[port].as_ref().map_or(0, |opened| opened.port.missed())
    }

    fn has_unsent(&self, port: usize) -> bool {
        let Some(OpenedPort { port, .. }) = &self.ports[port] else { return false };
        !port.device.is_lost() && port.queues.iter().any(|queue| queue.transmit.waiting() > 0)
    }

    fn wait(&mut self, timeout: Duration, wake: RawFd) {
        let mut files: Vec<libc::pollfd> = self
            .ports
            .iter()
            .flatten()
            .filter(|opened| !opened.port.device.is_lost())
            .flat_map(|opened| &opened.port.queues)
            .map(|queue| queue.socket.as_raw_fd())
            .chain([wake])
            .map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
            .collect();
        crate::sys::poll(&mut files, timeout);
    }

    over_a_pool!();
}
