//! The division of one switch's packet memory among its ports.

use alloc::vec;
use alloc::vec::Vec;

use fanin_units::Bytes;

use crate::buffering::Scheme;

/// The most ports, in or out, that one switch's memory serves.
pub const PORTS_MAX: usize = 1 << 16;

/// The division of one switch's packet memory. A frame must meet its output's limit and those of the memory that outputs share;
/// [`Bytes::MAX`] is no limit.
///
/// The constructors name the schemes and are in the file of each. `with_` methods refine their result, for example one pool with a
/// limit on each output as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Limits by output port.
    output_limits: Vec<Bytes>,
    scheme: Scheme,
    frame_overhead: Bytes,
    /// At least one byte.
    cell: Bytes,
}

/// Errors of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The switch has no port.
    #[error("a switch needs at least one port")]
    NoPorts,
    /// More ports than are supported.
    #[error("{actual} ports; at most {max} are supported")]
    Ports {
        /// The number of ports given.
        actual: usize,
        /// The largest number of ports.
        max: usize,
    },
    /// The assignment of ports to pools has the wrong length.
    #[error("{actual} ports are assigned to pools; the switch has {needed}")]
    Assignment {
        /// Ports that are assigned or have a limit.
        actual: usize,
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
    #[error("bookkeeping and cells are at most {max} each; got {actual}")]
    Overhead {
        /// The value given.
        actual: Bytes,
        /// The largest value that is supported.
        max: Bytes,
    },
    /// More virtual output queues than are supported.
    #[error("{actual} virtual output queues; at most {max} are supported")]
    Voqs {
        /// Modules times outputs.
        actual: usize,
        /// The largest number of queues.
        max: usize,
    },
}

impl Layout {
    /// Output ports with these limits, and the memory that they share. Frames have no bookkeeping, and cells have one byte.
    pub const fn new(output_limits: Vec<Bytes>, scheme: Scheme) -> Self {
        Self { output_limits, scheme, frame_overhead: Bytes::ZERO, cell: Bytes::new(1) }
    }

    /// A layout without limits: each of the `ports` ports, in and out, admits every frame.
    pub fn unlimited(ports: usize) -> Self {
        Self::dedicated(vec![Bytes::MAX; ports])
    }

    /// The same division with one limit for each output.
    #[must_use]
    pub fn with_output_limit(mut self, limit: Bytes) -> Self {
        self.output_limits.fill(limit);
        self
    }

    /// The same division with `frame_overhead` bytes of bookkeeping for each frame, both together in whole cells of `cell` bytes.
    #[must_use]
    pub const fn with_cells(mut self, frame_overhead: Bytes, cell: Bytes) -> Self {
        (self.frame_overhead, self.cell) = (frame_overhead, cell);
        self
    }

    /// The number of ports, in and out.
    pub const fn ports(&self) -> usize {
        self.output_limits.len()
    }

    /// The most memory that frames to each output port may take.
    pub fn output_limits(&self) -> &[Bytes] {
        &self.output_limits
    }

    /// The memory that outputs share.
    pub const fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// The limit of each input port; `None` where inputs have none.
    pub fn input_limits(&self) -> Option<&[Bytes]> {
        self.scheme.input_limits()
    }

    /// Bookkeeping that the switch stores with each frame.
    pub const fn frame_overhead(&self) -> Bytes {
        self.frame_overhead
    }

    /// The size of a memory cell; each frame with its bookkeeping takes whole cells. One byte: no rounding.
    pub const fn cell(&self) -> Bytes {
        self.cell
    }

    /// Returns true if the frames of one output port affect the admission at another.
    pub fn couples_outputs(&self) -> bool {
        self.scheme != Scheme::Dedicated
    }

    /// The sizes of the pools or modules.
    pub fn pool_sizes(&self) -> Vec<Bytes> {
        self.scheme.pool_sizes(self.ports())
    }

    /// Refuses impossible layouts.
    pub fn check(&self) -> Result<(), LayoutError> {
        let ports = self.ports();
        if ports == 0 {
            return Err(LayoutError::NoPorts);
        }
        if ports > PORTS_MAX {
            return Err(LayoutError::Ports { actual: ports, max: PORTS_MAX });
        }
        self.scheme.check(ports)?;
        if self.cell.is_zero() {
            return Err(LayoutError::Cell);
        }
        let max = Bytes::new(1 << 20);
        match [self.frame_overhead, self.cell].into_iter().find(|&bytes| bytes > max) {
            Some(actual) => Err(LayoutError::Overhead { actual, max }),
            None => Ok(()),
        }
    }
}
