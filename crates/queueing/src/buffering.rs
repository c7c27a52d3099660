//! The buffering schemes by name: makes the accounts from a scheme's settings, and finds the accounts of a frame.
//!
//! Each rule is in the file of its scheme: `dedicated.rs`, `shared.rs`, `dynamic_threshold.rs`, `voq.rs`.

use alloc::vec;
use alloc::vec::Vec;

use fanin_units::{Bytes, Ratio};

use crate::account::Account;
use crate::dynamic_threshold::{DynamicThresholdAccounts, DynamicThresholdSettings};
use crate::frame::{AdmissionLimit, MemoryOccupancy};
use crate::layout::{Layout, LayoutError};
use crate::shared::{PortLimits, SharedAccounts, SharedSettings};
use crate::voq::{VoqAccounts, VoqSettings};

/// The division of a switch's packet memory among its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "schemars",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum Buffering {
    /// Each output port has its own `buffer` (`uplink_buffer` on uplinks of a scenario).
    Dedicated,
    /// All ports of a pool share `buffer`, each up to `port_limit`.
    Shared,
    /// Ports share `buffer`; each may hold up to `alpha` times the free memory (Choudhury and Hahne).
    DynamicThreshold,
    /// Modules of `module_ports` input ports, each with `buffer` and a queue for every output (VOQ).
    Voq,
    /// A deep queue in DRAM with a rate limit for each collector (LCN'15). Flows without a ring have no rate limit.
    Daqring,
    /// Memory without a limit.
    Unlimited,
}

impl Buffering {
    /// Returns true if flows have rings: queues of their own, which no layout describes.
    pub const fn has_rings(self) -> bool {
        matches!(self, Self::Daqring)
    }

    /// Returns true if the memory of frames without a ring has a limit.
    pub const fn has_limit(self) -> bool {
        !matches!(self, Self::Unlimited | Self::Daqring)
    }
}

/// The port that a frame in a pool is charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "schemars",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum PoolCharge {
    /// The frame's output port.
    Output,
    /// The frame's input port (switch B of the thesis, §4.2.1).
    Input,
}

/// The settings of a switch's packet memory; each scheme reads some of them.
#[derive(Debug, Clone)]
pub struct MemorySettings {
    /// The buffering scheme itself.
    pub buffering: Buffering,
    /// Dedicated: the buffer of each output. Its length is the number of ports under every scheme.
    pub output_buffers: Vec<Bytes>,
    /// The size of each pool or module.
    pub buffer: Bytes,
    /// The most bytes of one output in a pool or module.
    pub port_limit: Option<Bytes>,
    /// Shared: the most bytes of one input.
    pub input_limit: Option<Bytes>,
    /// Shared: ports with a pool of their own, counted from the first; 0 for one pool.
    pub pool_split: u32,
    /// Shared: the port that decides a frame's pool.
    pub pool_charge: PoolCharge,
    /// VOQ: input ports of each module.
    pub module_ports: u32,
    /// Dynamic threshold: the limit of one output, as a multiple of the free memory.
    pub alpha: Ratio,
    /// Bookkeeping that is stored with each frame.
    pub frame_overhead: Bytes,
    /// The size of a memory cell.
    pub cell: Bytes,
}

impl MemorySettings {
    /// Makes the layout that these settings describe.
    pub fn layout(self) -> Layout {
        let ports = self.output_buffers.len();
        let output = self.port_limit.unwrap_or(Bytes::MAX);
        let layout = match self.buffering {
            Buffering::Unlimited | Buffering::Daqring => Layout::unlimited(ports),
            Buffering::Dedicated => Layout::dedicated(self.output_buffers),
            Buffering::DynamicThreshold => {
                Layout::dynamic_threshold(ports, self.buffer, self.alpha).with_output_limit(output)
            }
            Buffering::Voq => Layout::voq(ports, self.module_ports as usize, self.buffer, output),
            Buffering::Shared => {
                let by_input = self.pool_charge == PoolCharge::Input;
                let limits = PortLimits { ports, input: self.input_limit.unwrap_or(Bytes::MAX), output };
                Layout::shared_split(self.buffer, self.pool_split as usize, by_input, limits)
            }
        };
        layout.with_cells(self.frame_overhead, self.cell)
    }
}

/// A buffering scheme with its settings: the memory that outputs share, in addition to the limit of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BufferingSettings {
    /// None: each output has a buffer of its own (`dedicated.rs`).
    Dedicated,
    /// Pools, and limits on each input (`shared.rs`).
    Shared(SharedSettings),
    /// One pool, whose free part limits every queue (`dynamic_threshold.rs`).
    DynamicThreshold(DynamicThresholdSettings),
    /// Memories of input modules, with a queue for every output (`voq.rs`).
    Voq(VoqSettings),
}

impl BufferingSettings {
    /// The sizes of the pools or modules of a switch with `ports` ports.
    pub(crate) fn pool_sizes(&self, ports: usize) -> Vec<Bytes> {
        match self {
            Self::Dedicated => Vec::new(),
            Self::Shared(settings) => settings.sizes.clone(),
            Self::DynamicThreshold(settings) => vec![settings.pool],
            Self::Voq(settings) => vec![settings.module; settings.modules(ports)],
        }
    }

    /// The limit of each input; `None` where inputs have none.
    pub(crate) fn input_limits(&self) -> Option<&[Bytes]> {
        match self {
            Self::Shared(settings) => Some(&settings.input_limits),
            Self::Dedicated | Self::DynamicThreshold(_) | Self::Voq(_) => None,
        }
    }

    /// The limits that may refuse a frame, besides that of its output.
    pub(crate) fn limits(&self) -> Vec<AdmissionLimit> {
        match self {
            Self::Dedicated => Vec::new(),
            Self::Shared(settings) if settings.input_limits.iter().all(|&limit| limit == Bytes::MAX) => {
                vec![AdmissionLimit::Pool]
            }
            Self::Shared(_) => vec![AdmissionLimit::Pool, AdmissionLimit::Input],
            Self::DynamicThreshold(_) => vec![AdmissionLimit::Dynamic, AdmissionLimit::Pool],
            Self::Voq(_) => vec![AdmissionLimit::Voq, AdmissionLimit::Module],
        }
    }

    /// The pool or module that a frame from `input` to `output` is charged to.
    #[inline]
    pub fn pool_of(&self, input: usize, output: usize) -> Option<usize> {
        match self {
            Self::Dedicated => None,
            Self::Shared(settings) => Some(settings.pool_of(input, output)),
            Self::DynamicThreshold(_) => Some(0),
            Self::Voq(settings) => Some(settings.module_of(input)),
        }
    }

    /// The most bytes of one output while `queues` outputs, itself included, are equally full; [`Bytes::MAX`] is no
    /// limit.
    pub(crate) fn output_limit(&self, queues: u64) -> Bytes {
        match self {
            Self::Dedicated => Bytes::MAX,
            Self::Shared(settings) => settings.pool_min(),
            Self::DynamicThreshold(settings) => settings.share(queues),
            Self::Voq(settings) => settings.queue_max(),
        }
    }

    /// The most bytes of one output when frames of `frame` bytes arrive and all others are empty. `None` if outputs have no limit
    /// of their own.
    pub(crate) fn occupancy_max(&self, frame: Bytes) -> Option<Bytes> {
        match self {
            Self::DynamicThreshold(settings) => Some(settings.occupancy_max(frame)),
            Self::Voq(_) => None,
            Self::Dedicated | Self::Shared(_) => Some(self.output_limit(1)),
        }
    }

    /// The bytes that one output may hold without a refusal while the switch holds at most `waiting` bytes.
    pub(crate) fn room(&self, waiting: Bytes) -> Bytes {
        match self {
            Self::Dedicated => Bytes::MAX,
            Self::Shared(settings) => settings.room(),
            Self::DynamicThreshold(settings) => settings.room(waiting),
            Self::Voq(settings) => settings.queue_max(),
        }
    }

    /// Returns true if the free memory of a pool limits each output.
    pub(crate) const fn has_threshold(&self) -> bool {
        matches!(self, Self::DynamicThreshold(_))
    }

    /// The number of modules that `inputs` inputs fill; one if inputs do not divide the memory.
    pub(crate) fn modules_of(&self, inputs: u64) -> u64 {
        match self {
            Self::Voq(settings) => inputs.div_ceil(settings.ports_per_module.max(1) as u64).max(1),
            Self::Dedicated | Self::Shared(_) | Self::DynamicThreshold(_) => 1,
        }
    }

    /// The sum of the pools that the frames of one input share at all outputs; `None` if outputs have other limits.
    pub(crate) fn common_pools(&self) -> Option<Bytes> {
        match self {
            Self::Shared(settings) => Some(settings.pools_of_input(0)),
            Self::Dedicated | Self::DynamicThreshold(_) | Self::Voq(_) => None,
        }
    }

    /// Returns an error if a switch with `ports` ports cannot have these settings.
    pub(crate) fn check(&self, ports: usize) -> Result<(), LayoutError> {
        match self {
            Self::Shared(settings) => settings.check(ports),
            Self::Voq(settings) => settings.check(ports),
            Self::Dedicated | Self::DynamicThreshold(_) => Ok(()),
        }
    }
}

/// The accounts that outputs share, by scheme; the file of a scheme has its rules.
#[derive(Debug, Clone)]
pub(crate) enum BufferingAccounts {
    Dedicated,
    Shared(SharedAccounts),
    DynamicThreshold(DynamicThresholdAccounts),
    Voq(VoqAccounts),
}

impl BufferingAccounts {
    pub(crate) fn new(settings: &BufferingSettings, ports: usize) -> Self {
        match settings {
            BufferingSettings::Dedicated => Self::Dedicated,
            BufferingSettings::Shared(settings) => Self::Shared(SharedAccounts::new(settings)),
            BufferingSettings::DynamicThreshold(settings) => {
                Self::DynamicThreshold(DynamicThresholdAccounts::new(*settings))
            }
            BufferingSettings::Voq(settings) => Self::Voq(VoqAccounts::new(*settings, ports)),
        }
    }

    /// The limit that refuses a frame with a charge of `charge` bytes, while `queued` bytes wait for its output. `None` if
    /// every limit admits the frame.
    #[inline]
    pub(crate) fn refusal(
        &self,
        input: usize,
        output: usize,
        queued: u64,
        charge: u64,
    ) -> Option<AdmissionLimit> {
        match self {
            Self::Dedicated => None,
            Self::Shared(shared) => shared.refusal(input, output, charge),
            Self::DynamicThreshold(shared) => shared.refusal(queued, charge),
            Self::Voq(shared) => shared.refusal(input, output, charge),
        }
    }

    /// Free memory for a frame, in bytes, by the rules of [`Self::refusal`].
    #[inline]
    pub(crate) fn free(&self, input: usize, output: usize, queued: u64) -> u64 {
        match self {
            Self::Dedicated => u64::MAX,
            Self::Shared(shared) => shared.free(input, output),
            Self::DynamicThreshold(shared) => shared.free(queued),
            Self::Voq(shared) => shared.free(input, output),
        }
    }

    /// Returns true if earlier departures could change the verdict on a frame, or a high-water mark.
    #[inline]
    pub(crate) fn depends_on_departures(
        &self,
        input: usize,
        output: usize,
        queued: u64,
        charge: u64,
    ) -> bool {
        match self {
            Self::Dedicated => false,
            Self::Shared(shared) => shared.depends_on_departures(input, output, charge),
            Self::DynamicThreshold(shared) => shared.depends_on_departures(queued, charge),
            Self::Voq(shared) => shared.depends_on_departures(input, output, charge),
        }
    }

    /// Charges a frame that no limit refuses.
    #[inline]
    pub(crate) fn admit(&mut self, input: usize, output: usize, charge: u64) {
        match self {
            Self::Dedicated => {}
            Self::Shared(shared) => shared.admit(input, output, charge),
            Self::DynamicThreshold(shared) => shared.admit(charge),
            Self::Voq(shared) => shared.admit(input, output, charge),
        }
    }

    /// Charges a frame and returns true. Returns false without charging it if departures that are not settled yet could
    /// change the verdict or a high-water mark.
    #[inline(always)]
    pub(crate) fn admit_below_high_water(
        &mut self,
        input: usize,
        output: usize,
        queued: u64,
        charge: u64,
    ) -> bool {
        match self {
            Self::Dedicated => true,
            Self::Shared(shared) => shared.admit_below_high_water(input, output, charge),
            Self::DynamicThreshold(shared) => shared.admit_below_high_water(queued, charge),
            Self::Voq(shared) => shared.admit_below_high_water(input, output, charge),
        }
    }

    /// Frees the memory of a frame.
    #[inline]
    pub(crate) fn depart(&mut self, input: usize, output: usize, charge: u64) {
        self.depart_each(output, core::iter::once((input, charge)));
    }

    /// Frees the memory of frames towards `output`, each given by its input and its charge.
    #[inline]
    pub(crate) fn depart_each(&mut self, output: usize, frames: impl Iterator<Item = (usize, u64)>) {
        match self {
            Self::Dedicated => frames.for_each(drop),
            Self::Shared(shared) => frames.for_each(|(input, charge)| shared.depart(input, output, charge)),
            Self::DynamicThreshold(shared) => frames.for_each(|(_, charge)| shared.depart(charge)),
            Self::Voq(shared) => frames.for_each(|(input, charge)| shared.depart(input, output, charge)),
        }
    }

    /// The number of pools or modules.
    pub(crate) fn pools(&self) -> usize {
        match self {
            Self::Dedicated => 0,
            Self::Shared(shared) => shared.pools(),
            Self::DynamicThreshold(_) => 1,
            Self::Voq(shared) => shared.modules(),
        }
    }

    /// The account of a pool or module.
    pub(crate) fn pool(&self, pool: usize) -> &Account {
        match self {
            Self::Dedicated => panic!("a memory without pools"),
            Self::Shared(shared) => shared.pool(pool),
            Self::DynamicThreshold(shared) => shared.pool(),
            Self::Voq(shared) => shared.module(pool),
        }
    }

    /// The level of an input; `None` without limits on inputs.
    pub(crate) fn input(&self, input: usize) -> Option<&MemoryOccupancy> {
        if let Self::Shared(shared) = self { shared.input(input) } else { None }
    }

    #[inline]
    pub(crate) fn set_input_limit(&mut self, input: usize, limit: Bytes) {
        let Self::Shared(shared) = self else { panic!("a memory without input limits") };
        shared.set_input_limit(input, limit);
    }

    #[inline]
    pub(crate) fn set_pool_size(&mut self, pool: usize, size: Bytes) {
        match self {
            Self::Dedicated => panic!("a memory without pools"),
            Self::Shared(shared) => shared.set_pool_size(pool, size),
            Self::DynamicThreshold(shared) => shared.set_pool_size(size),
            Self::Voq(shared) => shared.set_module_size(pool, size),
        }
    }

    pub(crate) fn reset_high_water_marks(&mut self) {
        match self {
            Self::Dedicated => {}
            Self::Shared(shared) => shared.reset_high_water_marks(),
            Self::DynamicThreshold(shared) => shared.reset_high_water_marks(),
            Self::Voq(shared) => shared.reset_high_water_marks(),
        }
    }

    pub(crate) fn assert_holds(&self, frames: &[(usize, usize, u64)]) {
        match self {
            Self::Dedicated => {}
            Self::Shared(shared) => shared.assert_holds(frames),
            Self::DynamicThreshold(shared) => shared.assert_holds(frames),
            Self::Voq(shared) => shared.assert_holds(frames),
        }
    }
}
