//! An open interface with its queues.

use std::io;

use super::bpf::Redirect;
use super::bypass;
use super::device::Device;
use super::error::OpenError;
use super::queue::{QueueAddress, SLOTS_MAX, Umem, UmemArea, XdpQueue, unless_busy};
use crate::config::{Attach, Copying};
use crate::frame::{ETHERNET_HEADER, TAG_BYTES};
use crate::pool::Pool;

/// Options for opening an interface, at the start and after each deletion.
#[derive(Debug, Clone)]
pub(super) struct PortRecipe {
    pub(super) interface: String,
    /// The configured number of queues; `None` for all queues of the interface.
    pub(super) queues: Option<u32>,
    pub(super) attach: Attach,
    pub(super) copy: Copying,
    /// True to have the kernel send frames back while the switch does not run.
    pub(super) bypass: bool,
    pub(super) slots: u32,
    pub(super) mtu: u32,
    pub(super) area: UmemArea,
}

/// An open interface with its queues.
#[derive(Debug)]
pub(super) struct XdpPort {
    pub(super) device: Device,
    pub(super) redirect: Redirect,
    pub(super) queues: Vec<XdpQueue>,
    /// Frames that earlier interfaces of the port missed.
    missed_before: u64,
}

impl PortRecipe {
    /// Returns a function that makes the error of a failed step.
    pub(super) fn fail(&self, action: &'static str) -> impl FnOnce(io::Error) -> OpenError {
        let interface = self.interface.clone();
        move |error| OpenError { interface, action, error }
    }

    /// Returns the number of queues to open.
    pub(super) fn queues(&self, device: &Device) -> u32 {
        self.queues.unwrap_or_else(|| device.queues())
    }

    /// Opens the queues of an interface, which receive from now on. No chunk is lent to them yet.
    pub(super) fn open(&self, device: Device, umem: &mut Option<Umem>) -> Result<XdpPort, OpenError> {
        let queues = self.queues(&device);
        let largest = device.mtu().map_err(self.fail("reading its MTU"))?.max(self.mtu);
        let frags = largest + (ETHERNET_HEADER + TAG_BYTES) as u32 > self.area.room;
        let redirect = unless_busy(|| Redirect::attach(device.index, queues, self.attach, frags))
            .map_err(self.fail("attaching the redirect program"))?;
        let mut opened = Vec::new();
        for queue in 0..queues {
            let (slots, copy) = (self.slots, self.copy);
            let at = QueueAddress { interface: device.index, queue, slots, copy };
            let one = XdpQueue::open(at, self.area, umem).map_err(self.fail("opening an AF_XDP socket"))?;
            opened.push(one);
        }
        if self.bypass
            && let Err(error) = bypass::install(&self.interface)
        {
            let interface = &self.interface;
            eprintln!("warning: while this switch does not run, {interface} sends no frame back: {error}");
        }
        Ok(XdpPort { device, redirect, queues: opened, missed_before: 0 })
    }
}

impl XdpPort {
    /// Lends chunks to the queues, and starts redirecting frames to them.
    pub(super) fn begin(
        &mut self,
        recipe: &PortRecipe,
        pool: &mut Pool,
        shift: u32,
    ) -> Result<(), OpenError> {
        for (number, queue) in (0..).zip(&mut self.queues) {
            queue.refill(pool, shift, recipe.slots as usize);
            self.redirect.connect(number, &queue.socket).map_err(recipe.fail("connecting the socket"))?;
        }
        Ok(())
    }

    /// Returns the number of frames that the port lost before the switch received them.
    pub(super) fn missed(&self) -> u64 {
        self.missed_before + self.queues.iter().map(XdpQueue::missed).sum::<u64>()
    }

    /// Replaces a port with a deleted interface. Returns the number of chunks lost with it.
    pub(super) fn replace(&mut self, mut new: Self, pool: &mut Pool, shift: u32) -> u32 {
        new.missed_before = self.missed();
        let old = std::mem::replace(self, new);
        let lost = old.queues.into_iter().map(|queue| queue.reclaim(pool, shift)).sum();
        for queue in &mut self.queues {
            queue.refill(pool, shift, SLOTS_MAX as usize);
        }
        lost
    }
}
