//! Interrupts a waiting endpoint from another thread.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};

/// Wakes an endpoint from any thread: [`poll`](crate::MessageEndpoint::poll) returns
/// [`Woken`](crate::EndpointEvent::Woken).
///
/// Several wakes before the next poll result in one event.
#[derive(Debug, Clone)]
pub struct Waker {
    bell: Arc<Bell>,
}

#[derive(Debug)]
enum Bell {
    Kernel(OwnedFd),
    /// The flag of an endpoint in a simulated network.
    Flag(AtomicBool),
}

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { bell: Arc::new(Bell::Kernel(fd)) })
    }

    pub(crate) fn without_kernel() -> Self {
        Self { bell: Arc::new(Bell::Flag(AtomicBool::new(false))) }
    }

    /// Wakes the endpoint.
    pub fn wake(&self) {
        match &*self.bell {
            Bell::Kernel(fd) => {
                // Writing fails only if the counter is full, and then the endpoint is woken already.
                let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
            }
            Bell::Flag(flag) => flag.store(true, Ordering::Release),
        }
    }

    /// Resets the counter; returns true if the endpoint was woken.
    pub(crate) fn take(&self) -> bool {
        match &*self.bell {
            Bell::Kernel(fd) => rustix::io::read(fd, &mut [0u8; 8]).is_ok(),
            Bell::Flag(flag) => flag.swap(false, Ordering::Acquire),
        }
    }

    /// Returns true if an endpoint in a simulated network was woken; always false with the kernel.
    pub(crate) fn is_set(&self) -> bool {
        match &*self.bell {
            Bell::Kernel(_) => false,
            Bell::Flag(flag) => flag.load(Ordering::Acquire),
        }
    }

    /// Returns the descriptor that becomes readable; `None` in a simulated network.
    pub(crate) fn descriptor(&self) -> Option<&OwnedFd> {
        match &*self.bell {
            Bell::Kernel(fd) => Some(fd),
            Bell::Flag(_) => None,
        }
    }
}
