//! The division of one switch's packet memory among its ports.

use alloc::vec;
use alloc::vec::Vec;

use fanin_units::Bytes;

use crate::buffering::BufferingSettings;
use crate::frame::{AdmissionLimit, FrameCharge};

/// The most ports, in or out, that one switch's memory serves.
pub const PORTS_MAX: usize = 1 << 16;

/// The division of one switch's packet memory. A frame must meet its output's limit and the limits of the shared
/// memory; [`Bytes::MAX`] is no limit.
///
/// There is a constructor for each scheme, in the scheme's file. The `with_` methods refine its result, for example one
/// pool with a limit on each output, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Limits by output port.
    output_limits: Vec<Bytes>,
    buffering: BufferingSettings,
    frame_overhead: Bytes,
    /// Bytes of a memory cell, at least one.
    cell: Bytes,
}

/// Errors of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The switch has no port.
    #[error("a switch needs at least one port")]
    NoPorts,
    /// The switch has more ports than are supported.
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
        /// Number of ports with an assignment or a limit.
        actual: usize,
        /// Number of ports of that kind.
        needed: usize,
    },
    /// A port is assigned to a pool that does not exist.
    #[error("port {port} is assigned to pool {pool}; there are {pools} pools, counted from 0")]
    Pool {
        /// The port with that assignment.
        port: usize,
        /// The pool in the assignment.
        pool: usize,
        /// Number of pools.
        pools: usize,
    },
    /// A module has no ports.
    #[error("an input module has at least 1 port")]
    Module,
    /// A memory cell has no bytes.
    #[error("a memory cell has at least 1 byte")]
    Cell,
    /// The bookkeeping of a frame or the cell size exceeds the maximum.
    #[error("bookkeeping and cells are at most {max} each, not {actual}")]
    Overhead {
        /// The value given.
        actual: Bytes,
        /// The largest value that is supported.
        max: Bytes,
    },
    /// There are more virtual output queues than are supported.
    #[error("{actual} virtual output queues; at most {max} are supported")]
    Voqs {
        /// The number of queues: modules times outputs.
        actual: usize,
        /// The largest number of queues.
        max: usize,
    },
}

impl Layout {
    /// Makes a layout of output ports with these limits and the shared memory of `buffering`. Frames have no bookkeeping,
    /// cells one byte.
    pub const fn new(output_limits: Vec<Bytes>, buffering: BufferingSettings) -> Self {
        Self { output_limits, buffering, frame_overhead: Bytes::ZERO, cell: Bytes::new(1) }
    }

    /// A layout without limits: each of the `ports` ports, in and out, admits every frame.
    pub fn unlimited(ports: usize) -> Self {
        Self::dedicated(vec![Bytes::MAX; ports])
    }

    /// Returns the layout with this limit for each output.
    #[must_use]
    pub fn with_output_limit(mut self, limit: Bytes) -> Self {
        self.output_limits.fill(limit);
        self
    }

    /// Returns the layout with `frame_overhead` bytes of bookkeeping for each frame, both together in whole cells of
    /// `cell` bytes.
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

    /// The buffering scheme: the memory that outputs share.
    pub const fn buffering(&self) -> &BufferingSettings {
        &self.buffering
    }

    /// The limit of each input port; `None` where inputs have none.
    pub fn input_limits(&self) -> Option<&[Bytes]> {
        self.buffering.input_limits()
    }

    /// The limits that may refuse a frame to an output port, without those of active queue management.
    pub fn limits_of(&self, output: usize) -> Vec<AdmissionLimit> {
        let own = (self.output_limits[output] != Bytes::MAX).then_some(AdmissionLimit::Output);
        own.into_iter().chain(self.buffering.limits()).collect()
    }

    /// Bytes of bookkeeping that the switch stores with each frame.
    pub const fn frame_overhead(&self) -> Bytes {
        self.frame_overhead
    }

    /// The size of a memory cell. Each frame with its bookkeeping takes whole cells; one byte means no rounding.
    pub const fn cell(&self) -> Bytes {
        self.cell
    }

    /// The rule for the memory that each frame takes.
    ///
    /// # Panics
    /// If the layout has no cells, or a bookkeeping or cells that [`Self::check`] refuses.
    pub fn frame_charge(&self) -> FrameCharge {
        FrameCharge::new(self.frame_overhead, self.cell)
    }

    /// Returns true if the frames of one output port affect the admission at another.
    pub fn couples_outputs(&self) -> bool {
        self.buffering != BufferingSettings::Dedicated
    }

    /// The sizes of the pools or modules.
    pub fn pool_sizes(&self) -> Vec<Bytes> {
        self.buffering.pool_sizes(self.ports())
    }

    /// Checks the layout. A cell has 1 byte to 1 MiB, and the bookkeeping of a frame at most 1 MiB.
    ///
    /// # Errors
    /// If the layout has no port, more than [`PORTS_MAX`] ports, a cell or bookkeeping out of range, or settings that its scheme
    /// refuses.
    pub fn check(&self) -> Result<(), LayoutError> {
        let ports = self.ports();
        if ports == 0 {
            return Err(LayoutError::NoPorts);
        }
        if ports > PORTS_MAX {
            return Err(LayoutError::Ports { actual: ports, max: PORTS_MAX });
        }
        self.buffering.check(ports)?;
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
