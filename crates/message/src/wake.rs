//! Interrupts a waiting endpoint from another thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Makes [`MessageEndpoint::poll`](crate::MessageEndpoint::poll) return [`EndpointEvent::Woken`](crate::EndpointEvent::Woken), from any thread.
///
/// Several wakes before the next poll give one event.
#[derive(Debug, Clone)]
pub struct Waker {
    bell: Arc<OwnedFd>,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { bell: Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?) })
    }

    /// Wakes the endpoint.
    pub fn wake(&self) {
        // Writing fails only if the counter is full, and then the endpoint is woken already.
        let _ = rustix::io::write(&*self.bell, &1u64.to_ne_bytes());
    }

    /// Resets the counter; returns true if the endpoint was woken.
    pub(crate) fn take(&self) -> bool {
        rustix::io::read(&*self.bell, &mut [0u8; 8]).is_ok()
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
