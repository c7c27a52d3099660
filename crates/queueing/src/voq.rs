//! Virtual output queues: each input module has a packet memory, with one queue for every output.
//!
//! The core routers of thesis §4.2.1 have modules of 8 ports with 1.5 GB each. Only the memory is modelled: traffic to one output
//! never delays a module's traffic to another.
//!
//! The file admits frames and counts their bytes. In the simulator `drive/booked.rs` books each departure, and the frame is
//! at once on its link (`sim/src/fabric/link.rs`). In the live switch it waits in ring 0 of its port (`rings.rs`).

use alloc::vec;
use alloc::vec::Vec;

use fanin_units::Bytes;

use crate::account::{Account, assert_holds};
use crate::buffering::BufferingSettings;
use crate::frame::AdmissionLimit;
use crate::layout::{Layout, LayoutError};

/// The most virtual output queues, modules times outputs.
pub const VOQS_MAX: usize = 1 << 22;

/// Settings of input modules with virtual output queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VoqSettings {
    /// The packet memory of each module.
    pub module: Bytes,
    /// Input ports of a module, at least one.
    pub ports_per_module: usize,
    /// The most memory of a queue, for the frames from one module to one output.
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

    /// Most bytes of one queue in an otherwise empty module.
    pub(crate) fn queue_max(self) -> Bytes {
        self.module.min(self.queue_limit)
    }

    /// Returns an error if modules have no ports, or if there are more than [`VOQS_MAX`] queues.
    pub(crate) const fn check(self, ports: usize) -> Result<(), LayoutError> {
        if self.ports_per_module == 0 {
            return Err(LayoutError::Module);
        }
        let count = self.modules(ports) * ports;
        if count > VOQS_MAX { Err(LayoutError::Voqs { actual: count, max: VOQS_MAX }) } else { Ok(()) }
    }
}

/// An input module: its packet memory, and its virtual output queues by output.
#[derive(Debug, Clone)]
struct InputModule {
    memory: Account,
    queues: Vec<Account>,
}

/// The accounts of modules and of their virtual output queues. A frame must fit its queue and its module.
#[derive(Debug, Clone)]
pub(crate) struct VoqAccounts {
    modules: Vec<InputModule>,
    /// The module of each input.
    module_of: Vec<u32>,
}

impl VoqAccounts {
    pub(crate) fn new(settings: VoqSettings, ports: usize) -> Self {
        let module = InputModule {
            memory: Account::new(settings.module),
            queues: vec![Account::new(settings.queue_limit); ports],
        };
        Self {
            modules: vec![module; settings.modules(ports)],
            module_of: (0..ports).map(|input| settings.module_of(input) as u32).collect(),
        }
    }

    #[inline]
    pub(crate) fn module_of(&self, input: usize) -> usize {
        self.module_of[input] as usize
    }

    /// The accounts of an input's module and of the module's queue for an output.
    #[inline]
    fn accounts(&self, input: usize, output: usize) -> (&Account, &Account) {
        let module = &self.modules[self.module_of(input)];
        (&module.memory, &module.queues[output])
    }

    #[inline]
    fn accounts_mut(&mut self, input: usize, output: usize) -> (&mut Account, &mut Account) {
        let module = self.module_of(input);
        let module = &mut self.modules[module];
        (&mut module.memory, &mut module.queues[output])
    }

    /// The limit that refuses a frame, if one does.
    #[inline]
    pub(crate) fn refusal(&self, input: usize, output: usize, charge: u64) -> Option<AdmissionLimit> {
        let (module, queue) = self.accounts(input, output);
        if queue.refuses(charge) {
            return Some(AdmissionLimit::Voq);
        }
        module.refuses(charge).then_some(AdmissionLimit::Module)
    }

    /// Free memory for a frame, in bytes, by the rules of [`Self::refusal`].
    #[inline]
    pub(crate) fn free(&self, input: usize, output: usize) -> u64 {
        let (module, queue) = self.accounts(input, output);
        queue.free().min(module.free())
    }

    /// Returns true if earlier departures could change the verdict on a frame, or the high-water mark of its module.
    #[inline]
    pub(crate) fn depends_on_departures(&self, input: usize, output: usize, charge: u64) -> bool {
        let (module, queue) = self.accounts(input, output);
        independent_levels(module, queue, charge).is_none()
    }

    /// Charges a frame and returns true. Returns false without charging it if departures that are not settled yet could
    /// change the verdict or the high-water mark of the module.
    #[inline]
    pub(crate) fn admit_below_high_water(&mut self, input: usize, output: usize, charge: u64) -> bool {
        let (module, queue) = self.accounts_mut(input, output);
        let Some([of_module, of_queue]) = independent_levels(module, queue, charge) else { return false };
        module.raise_to(of_module);
        queue.raise_to(of_queue);
        true
    }

    /// Charges a frame that no limit refuses.
    #[inline]
    pub(crate) fn admit(&mut self, input: usize, output: usize, charge: u64) {
        let (module, queue) = self.accounts_mut(input, output);
        module.admit(charge);
        queue.admit(charge);
    }

    /// Frees the memory of a frame.
    #[inline]
    pub(crate) fn depart(&mut self, input: usize, output: usize, charge: u64) {
        let (module, queue) = self.accounts_mut(input, output);
        module.depart(charge);
        queue.depart(charge);
    }

    pub(crate) fn modules(&self) -> usize {
        self.modules.len()
    }

    pub(crate) fn module(&self, module: usize) -> &Account {
        &self.modules[module].memory
    }

    pub(crate) fn set_module_size(&mut self, module: usize, size: Bytes) {
        self.modules[module].memory.set_limit(size);
    }

    pub(crate) fn reset_high_water_marks(&mut self) {
        for InputModule { memory, queues } in &mut self.modules {
            memory.reset_high_water_marks();
            queues.iter_mut().for_each(Account::reset_high_water_marks);
        }
    }

    /// Asserts that each module and each queue holds the bytes of its frames.
    ///
    /// # Panics
    /// If one holds more or fewer bytes.
    pub(crate) fn assert_holds(&self, frames: &[(usize, usize, u64)]) {
        let modules = self.modules.iter().map(|module| &module.memory);
        assert_holds(modules, "module", frames, |input, _| self.module_of(input));
        for (number, module) in self.modules.iter().enumerate() {
            let own: Vec<_> =
                frames.iter().copied().filter(|&(input, ..)| self.module_of(input) == number).collect();
            assert_holds(&module.queues, "queue", &own, |_, output| output);
        }
    }
}

/// The levels of a module and one of its queues with a further charge. `None` if departures that are not settled yet could change
/// the verdict, or the module's high-water mark; no figure shows the mark of a queue.
#[inline]
fn independent_levels(module: &Account, queue: &Account, charge: u64) -> Option<[u64; 2]> {
    Some([module.below_high_water(charge)?, queue.within_limit(charge)?])
}

impl Layout {
    /// Input modules with a packet memory each and one virtual output queue for every output.
    pub fn voq(ports: usize, ports_per_module: usize, module: Bytes, queue_limit: Bytes) -> Self {
        let settings = VoqSettings { module, ports_per_module, queue_limit };
        Self::new(vec![Bytes::MAX; ports], BufferingSettings::Voq(settings))
    }
}
