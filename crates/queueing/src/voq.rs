//! Virtual output queues: input modules with a packet memory each, and in it one queue for every output.
//!
//! The core routers of thesis §4.2.1 have modules of 8 ports with 1.5 GB each. Only the memory is modelled: traffic to one output
//! never delays a module's traffic to another.

use alloc::vec;
use alloc::vec::Vec;

use fanin_units::Bytes;

use crate::account::{Account, assert_holds};
use crate::frame::AdmissionLimit;
use crate::layout::{Layout, LayoutError, Sharing};

/// The most virtual output queues, modules times outputs.
pub const VOQS_MAX: usize = 1 << 22;

/// Settings of input modules with virtual output queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VoqSettings {
    /// The packet memory of each module.
    pub module: Bytes,
    /// Input ports of a module, at least one.
    pub ports_per_module: usize,
    /// The most memory of a queue: of the frames that came in by one module towards one output.
    pub queue_limit: Bytes,
}

impl VoqSettings {
    /// The module that an input belongs to.
    pub(crate) const fn module_of(self, input: usize) -> usize {
        input / self.ports_per_module
    }

    pub(crate) const fn modules(self, ports: usize) -> usize {
        ports.div_ceil(self.ports_per_module)
    }

    /// Refuses modules without ports, and more queues than are supported.
    pub(crate) const fn check(self, ports: usize) -> Result<(), LayoutError> {
        if self.ports_per_module == 0 {
            return Err(LayoutError::Module);
        }
        let got = self.modules(ports) * ports;
        if got > VOQS_MAX { Err(LayoutError::Voqs { got, max: VOQS_MAX }) } else { Ok(()) }
    }
}

/// The accounts of modules and of their virtual output queues. A frame must fit its queue and its module.
#[derive(Debug, Clone)]
pub(crate) struct VirtualOutputQueues {
    modules: Vec<Account>,
    /// The module of each input.
    module_of: Vec<u32>,
    /// By module, then by output.
    queues: Vec<Account>,
    outputs: usize,
}

impl VirtualOutputQueues {
    pub(crate) fn new(settings: VoqSettings, ports: usize) -> Self {
        let modules = settings.modules(ports);
        Self {
            modules: vec![Account::new(settings.module); modules],
            module_of: (0..ports).map(|input| settings.module_of(input) as u32).collect(),
            queues: vec![Account::new(settings.queue_limit); modules * ports],
            outputs: ports,
        }
    }

    #[inline]
    pub(crate) fn module_of(&self, input: usize) -> usize {
        self.module_of[input] as usize
    }

    #[inline]
    fn queue_of(&self, input: usize, output: usize) -> usize {
        self.module_of(input) * self.outputs + output
    }

    /// The limit that refuses a frame, if one does.
    #[inline]
    pub(crate) fn refusal(&self, input: usize, output: usize, charge: u64) -> Option<AdmissionLimit> {
        if self.queues[self.queue_of(input, output)].refuses(charge) {
            return Some(AdmissionLimit::Voq);
        }
        self.modules[self.module_of(input)].refuses(charge).then_some(AdmissionLimit::Module)
    }

    /// Free memory for a frame, in bytes, as [`Self::refusal`] counts it.
    #[inline]
    pub(crate) fn free(&self, input: usize, output: usize) -> u64 {
        self.queues[self.queue_of(input, output)].free().min(self.modules[self.module_of(input)].free())
    }

    /// Returns true if departures could change the verdict on a frame, or the high-water mark of a module.
    #[inline]
    pub(crate) fn depends_on_departures(&self, input: usize, output: usize, charge: u64) -> bool {
        self.modules[self.module_of(input)].depends_on_departures(charge)
            || self.queues[self.queue_of(input, output)].refuses(charge)
    }

    /// Charges a frame, unless departures could change the verdict on it, or the high-water mark of a module. Returns false
    /// then.
    #[inline]
    pub(crate) fn admit_below_marks(&mut self, input: usize, output: usize, charge: u64) -> bool {
        let queue = self.queue_of(input, output);
        let module = self.module_of(input);
        let (module, queue) = (&mut self.modules[module], &mut self.queues[queue]);
        if module.depends_on_departures(charge) || queue.refuses(charge) {
            return false;
        }
        module.admit(charge);
        queue.admit(charge);
        true
    }

    /// Charges a frame that no limit refuses.
    #[inline]
    pub(crate) fn admit(&mut self, input: usize, output: usize, charge: u64) {
        let (module, queue) = (self.module_of(input), self.queue_of(input, output));
        self.modules[module].admit(charge);
        self.queues[queue].admit(charge);
    }

    /// Gives back the memory of a frame.
    #[inline]
    pub(crate) fn depart(&mut self, input: usize, output: usize, charge: u64) {
        let (module, queue) = (self.module_of(input), self.queue_of(input, output));
        self.modules[module].depart(charge);
        self.queues[queue].depart(charge);
    }

    pub(crate) fn pools(&self) -> &[Account] {
        &self.modules
    }

    pub(crate) fn set_pool_size(&mut self, module: usize, size: Bytes) {
        self.modules[module].set_limit(size);
    }

    pub(crate) fn reset_marks(&mut self) {
        self.modules.iter_mut().chain(&mut self.queues).for_each(Account::reset_marks);
    }

    /// Asserts that each module and each queue has the bytes of its frames.
    ///
    /// # Panics
    /// If one has more or less.
    pub(crate) fn assert_holds(&self, frames: &[(usize, usize, u64)]) {
        assert_holds(&self.modules, "module", frames, |input, _| self.module_of(input));
        assert_holds(&self.queues, "queue", frames, |input, output| self.queue_of(input, output));
    }
}

impl Layout {
    /// Input modules with a packet memory each and one virtual output queue for every output.
    pub fn voq(ports: usize, ports_per_module: usize, module: Bytes, queue_limit: Bytes) -> Self {
        let settings = VoqSettings { module, ports_per_module, queue_limit };
        Self { sharing: Sharing::Voqs(settings), ..Self::unlimited(ports) }
    }
}
