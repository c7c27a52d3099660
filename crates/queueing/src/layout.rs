//! How the packet memory of one switch is divided: the buffering schemes.

use alloc::vec;
use alloc::vec::Vec;

use fanin_units::{Bytes, Ratio};

use crate::dynamic_threshold::ThresholdSettings;
use crate::shared::{PoolSettings, PortLimits};
use crate::voq::VoqSettings;

/// The most ports, in or out, that one switch's memory serves.
pub const PORTS_MAX: usize = 1 << 16;

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
    /// A deep queue in DRAM with a rate limit for each collector (LCN'15). Flows without a ring have no limit.
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

/// The port whose share of a pool a frame occupies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "schemars",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum PoolCharge {
    /// Its output port.
    Output,
    /// Its input port (switch B of the thesis, §4.2.1).
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
    /// Shared: the port whose pool holds a frame.
    pub pool_charge: PoolCharge,
    /// VOQ: input ports of each module.
    pub module_ports: u32,
    /// Dynamic threshold: the limit of one output, as a multiple of the free memory.
    pub alpha: Ratio,
    /// Bookkeeping that is stored with each frame.
    pub overhead: Bytes,
    /// The size of a memory cell.
    pub cell: Bytes,
}

impl MemorySettings {
    /// The division that these settings describe.
    pub fn layout(self) -> Layout {
        let ports = self.output_buffers.len();
        let output = self.port_limit.unwrap_or(Bytes::MAX);
        let layout = match self.buffering {
            Buffering::Unlimited | Buffering::Daqring => Layout::unlimited(ports),
            Buffering::Dedicated => Layout::dedicated(self.output_buffers),
            Buffering::DynamicThreshold => Layout {
                output_limits: vec![output; ports],
                ..Layout::dynamic_threshold(ports, self.buffer, self.alpha)
            },
            Buffering::Voq => Layout::voq(ports, self.module_ports as usize, self.buffer, output),
            Buffering::Shared => {
                let by_input = self.pool_charge == PoolCharge::Input;
                let limits = PortLimits { ports, input: self.input_limit.unwrap_or(Bytes::MAX), output };
                Layout::shared_split(self.buffer, self.pool_split as usize, by_input, limits)
            }
        };
        Layout { overhead: self.overhead, cell: self.cell, ..layout }
    }
}

/// The memory that outputs share, in addition to the limit of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sharing {
    /// None: each output has a buffer of its own (`dedicated.rs`).
    Nothing,
    /// Pools, and limits on each input (`shared.rs`).
    Pools(PoolSettings),
    /// One pool, whose free part limits every queue (`dynamic_threshold.rs`).
    DynamicThreshold(ThresholdSettings),
    /// Memories of input modules, with a queue for every output (`voq.rs`).
    Voqs(VoqSettings),
}

/// The division of one switch's packet memory, as plain settings. A frame must meet its output's limit and those of the memory
/// that outputs share; [`Bytes::MAX`] is no limit.
///
/// The constructors name the schemes and are in the file of each. Their result can be refined field by field, for example one pool
/// with a limit on each output as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The most memory that frames towards each output port may take; its length is the number of ports.
    pub output_limits: Vec<Bytes>,
    /// The memory that outputs share.
    pub sharing: Sharing,
    /// Bookkeeping that the switch stores with each frame.
    pub overhead: Bytes,
    /// The size of a memory cell; each frame with its bookkeeping takes whole cells. One byte: no rounding.
    pub cell: Bytes,
}

/// Why a layout is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The switch has no port.
    #[error("a switch needs at least one port")]
    NoPorts,
    /// More ports than are supported.
    #[error("{got} ports; at most {max} are supported")]
    Ports {
        /// The number of ports given.
        got: usize,
        /// The largest number of ports.
        max: usize,
    },
    /// The assignment of ports to pools has the wrong length.
    #[error("{got} ports are assigned to pools; the switch has {needed}")]
    Assignment {
        /// Ports that are assigned or have a limit.
        got: usize,
        /// Ports of that kind.
        needed: usize,
    },
    /// A port is assigned to a pool that does not exist.
    #[error("port {port} is assigned to pool {pool}; there are {pools} pools, counted from 0")]
    Pool {
        /// The port that names it.
        port: usize,
        /// The pool named.
        pool: usize,
        /// Pools that exist.
        pools: usize,
    },
    /// A module without ports.
    #[error("an input module has at least 1 port")]
    Module,
    /// A cell without bytes.
    #[error("a memory cell has at least 1 byte")]
    Cell,
    /// Bookkeeping or cells too large for a frame.
    #[error("bookkeeping and cells are at most {max} each; got {got}")]
    Overhead {
        /// The value given.
        got: Bytes,
        /// The largest value that is supported.
        max: Bytes,
    },
    /// More virtual output queues than are supported.
    #[error("{got} virtual output queues; at most {max} are supported")]
    Voqs {
        /// Modules times outputs.
        got: usize,
        /// The largest number of queues.
        max: usize,
    },
}

impl Layout {
    /// No limit at all: each of the `ports` ports, in and out, admits every frame.
    pub fn unlimited(ports: usize) -> Self {
        Self::dedicated(vec![Bytes::MAX; ports])
    }

    /// The number of ports, in and out.
    pub fn ports(&self) -> usize {
        self.output_limits.len()
    }

    /// Returns true if the frames of one output port affect the admission at another.
    pub fn couples_outputs(&self) -> bool {
        self.sharing != Sharing::Nothing
    }

    /// The sizes of the pools or modules.
    pub fn pool_sizes(&self) -> Vec<Bytes> {
        match &self.sharing {
            Sharing::Nothing => Vec::new(),
            Sharing::Pools(settings) => settings.sizes.clone(),
            Sharing::DynamicThreshold(settings) => vec![settings.pool],
            Sharing::Voqs(settings) => vec![settings.module; settings.modules(self.ports())],
        }
    }

    /// Refuses impossible layouts.
    pub fn check(&self) -> Result<(), LayoutError> {
        let ports = self.ports();
        if ports == 0 {
            return Err(LayoutError::NoPorts);
        }
        if ports > PORTS_MAX {
            return Err(LayoutError::Ports { got: ports, max: PORTS_MAX });
        }
        match &self.sharing {
            Sharing::Pools(settings) => settings.check(ports)?,
            Sharing::Voqs(settings) => settings.check(ports)?,
            Sharing::Nothing | Sharing::DynamicThreshold(_) => {}
        }
        if self.cell.is_zero() {
            return Err(LayoutError::Cell);
        }
        let max = Bytes::new(1 << 20);
        match [self.overhead, self.cell].into_iter().find(|&bytes| bytes > max) {
            Some(got) => Err(LayoutError::Overhead { got, max }),
            None => Ok(()),
        }
    }
}

impl Sharing {
    /// The pool or module that a frame from `input` to `output` is charged to.
    #[inline]
    pub(crate) fn pool_of(&self, input: usize, output: usize) -> Option<usize> {
        match self {
            Self::Nothing => None,
            Self::Pools(settings) => Some(settings.pool_of(input, output)),
            Self::DynamicThreshold(_) => Some(0),
            Self::Voqs(settings) => Some(settings.module_of(input)),
        }
    }
}
