//! How the packet memory of one switch is divided: the buffering schemes.

use alloc::vec;
use alloc::vec::Vec;

use fanin_units::{Bytes, Ratio};

/// The most ports, in or out, that one switch's memory serves.
pub const PORTS_MAX: usize = 1 << 16;
/// The most virtual output queues, pools times outputs.
pub const VOQS_MAX: usize = 1 << 22;

/// Which pool a frame is charged to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolBy {
    /// None: there are no pools.
    Nothing,
    /// The pool of its output port; the index is the port's.
    Output(Vec<usize>),
    /// The pool of its input port; the index is the port's.
    Input(Vec<usize>),
}

/// The packet memory of one switch as plain settings. Every scheme is a set of limits, and a frame must
/// meet all of them; [`Bytes::MAX`] is no limit.
///
/// The constructors name the schemes; their result can be refined field by field, for example
/// one pool with a limit on each output as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The most memory that frames towards each output port may take; its length is the number of output ports.
    pub output_limits: Vec<Bytes>,
    /// The most memory that frames from each input port may take; its length is the number of input ports.
    pub input_limits: Vec<Bytes>,
    /// The sizes of the pools.
    pub pools: Vec<Bytes>,
    /// The rule that assigns a frame to a pool.
    pub pool_by: PoolBy,
    /// The pools are the memories of input modules. This changes only the name of the limit in a refusal.
    pub pools_are_modules: bool,
    /// Alpha of the dynamic threshold: an output's queue may grow while it is shorter than alpha times its
    /// pool's free memory (Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998).
    pub alpha: Option<Ratio>,
    /// The most memory that frames of one pool towards one output may take: one virtual output queue.
    pub voq_limit: Option<Bytes>,
    /// Bookkeeping that the switch stores with each frame.
    pub overhead: Bytes,
    /// The size of a memory cell; each frame with its bookkeeping takes whole cells. One byte: no rounding.
    pub cell: Bytes,
}

/// Why a layout is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// No output port.
    #[error("a switch needs at least one output port and one input port; got {outputs} and {inputs}")]
    NoPorts {
        /// Output ports given.
        outputs: usize,
        /// Input ports given.
        inputs: usize,
    },
    /// More ports than are supported.
    #[error("{got} ports; at most {max} are supported")]
    Ports {
        /// Ports given.
        got: usize,
        /// The most.
        max: usize,
    },
    /// The assignment of ports to pools has the wrong length.
    #[error("{got} ports are assigned to pools; the switch has {needed}")]
    Assignment {
        /// Ports assigned.
        got: usize,
        /// Ports of that kind.
        needed: usize,
    },
    /// A port is assigned to a pool that does not exist.
    #[error("port {port} is assigned to pool {pool}; there are {pools} pools, counted from 0")]
    Pool {
        /// The port.
        port: usize,
        /// The pool named.
        pool: usize,
        /// Pools that exist.
        pools: usize,
    },
    /// A dynamic threshold or virtual output queues without a pool.
    #[error("a {what} needs a pool that every port is assigned to")]
    NeedsPool {
        /// The setting.
        what: &'static str,
    },
    /// A cell without bytes.
    #[error("a memory cell has at least 1 byte")]
    Cell,
    /// Bookkeeping or cells too large for a frame.
    #[error("bookkeeping and cells are at most {max} each; got {got}")]
    Overhead {
        /// The value given.
        got: Bytes,
        /// The most.
        max: Bytes,
    },
    /// More virtual output queues than are supported.
    #[error("{got} virtual output queues; at most {max} are supported")]
    Voqs {
        /// Pools times outputs.
        got: usize,
        /// The most.
        max: usize,
    },
}

impl Layout {
    /// No limit at all: each of the `ports` ports, in and out, admits every frame.
    pub fn unlimited(ports: usize) -> Self {
        Self {
            output_limits: vec![Bytes::MAX; ports],
            input_limits: vec![Bytes::MAX; ports],
            pools: Vec::new(),
            pool_by: PoolBy::Nothing,
            pools_are_modules: false,
            alpha: None,
            voq_limit: None,
            overhead: Bytes::ZERO,
            cell: Bytes::new(1),
        }
    }

    /// Returns true if the frames of one output port affect the admission at another.
    pub fn couples_outputs(&self) -> bool {
        !self.pools.is_empty() || self.counts_inputs()
    }

    /// Returns true if memory is accounted by input port.
    pub(crate) fn counts_inputs(&self) -> bool {
        self.input_limits.iter().any(|&limit| limit != Bytes::MAX)
    }

    /// Refuses impossible layouts.
    pub fn check(&self) -> Result<(), LayoutError> {
        let (outputs, inputs) = (self.output_limits.len(), self.input_limits.len());
        if outputs == 0 || inputs == 0 {
            return Err(LayoutError::NoPorts { outputs, inputs });
        }
        if outputs.max(inputs) > PORTS_MAX {
            return Err(LayoutError::Ports { got: outputs.max(inputs), max: PORTS_MAX });
        }
        let (assigned, needed): (&[usize], usize) = match &self.pool_by {
            PoolBy::Nothing => (&[], 0),
            PoolBy::Output(pools) => (pools, outputs),
            PoolBy::Input(pools) => (pools, inputs),
        };
        if assigned.len() != needed {
            return Err(LayoutError::Assignment { got: assigned.len(), needed });
        }
        let pools = self.pools.len();
        if let Some((port, &pool)) = assigned.iter().enumerate().find(|&(_, &pool)| pool >= pools) {
            return Err(LayoutError::Pool { port, pool, pools });
        }
        let pooled = needed > 0;
        for (asked, what) in [
            (self.alpha.is_some(), "dynamic threshold"),
            (self.voq_limit.is_some(), "limit on virtual output queues"),
        ] {
            if asked && !pooled {
                return Err(LayoutError::NeedsPool { what });
            }
        }
        if self.voq_limit.is_some() && pools * outputs > VOQS_MAX {
            return Err(LayoutError::Voqs { got: pools * outputs, max: VOQS_MAX });
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
