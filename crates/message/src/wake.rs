//! How another thread interrupts an endpoint that waits.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Makes [`MessageEndpoint::poll`](crate::MessageEndpoint::poll) return [`EndpointEvent::Woken`](crate::EndpointEvent::Woken), from any thread.
///
/// Several wakes before the endpoint notices are one event, as with any doorbell.
#[derive(Debug, Clone)]
pub struct Waker {
    bell: Arc<OwnedFd>,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { bell: Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?) })
    }

    /// Ring the bell.
    pub fn wake(&self) {
        // The only error of a counter that is not full is a programmer's; a full one has been rung.
        let _ = rustix::io::write(&*self.bell, &1u64.to_ne_bytes());
    }

    /// Silence the bell; tells whether it had been rung.
    pub(crate) fn take(&self) -> bool {
        rustix::io::read(&*self.bell, &mut [0u8; 8]).is_ok()
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
