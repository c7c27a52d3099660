//! Readiness by epoll, which is always available. Established connections are edge-triggered, everything else is
//! level-triggered: the kernel then does not check each connection again after it was read empty. After an incomplete
//! read, the reader calls [`Epoll::look_again`].

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};

/// Events taken from the kernel by one call.
const BATCH: usize = 128;

pub(crate) const READ: epoll::EventFlags = epoll::EventFlags::IN;
pub(crate) const WRITE: epoll::EventFlags = epoll::EventFlags::OUT;
/// Edge-triggered flags. The peer's end, which may arrive with data, is reported separately.
pub(crate) const EDGE: epoll::EventFlags = epoll::EventFlags::ET.union(epoll::EventFlags::RDHUP);

/// Readiness of a descriptor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    pub(crate) token: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// True if the connection ends after the bytes that can be read.
    pub(crate) ends: bool,
}

pub(crate) struct Epoll {
    /// `None` in a simulated network, which reports ready sockets itself.
    epoll: Option<OwnedFd>,
    ready: Vec<Ready>,
    next: usize,
    again: Vec<Ready>,
}

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll: Some(epoll), ready: Vec::with_capacity(BATCH), next: 0, again: Vec::new() })
    }

    pub(crate) fn without_kernel() -> Self {
        Self { epoll: None, ready: Vec::new(), next: 0, again: Vec::new() }
    }

    /// Returns epoll's descriptor.
    ///
    /// # Errors
    ///
    /// `EBADF` in a simulated network.
    pub(crate) fn descriptor(&self) -> io::Result<BorrowedFd<'_>> {
        let fd = self.epoll.as_ref().ok_or(rustix::io::Errno::BADF)?;
        Ok(fd.as_fd())
    }

    pub(crate) fn add(&self, fd: impl AsFd, token: u64, interest: epoll::EventFlags) -> io::Result<()> {
        Ok(epoll::add(self.descriptor()?, fd, epoll::EventData::new_u64(token), interest)?)
    }

    pub(crate) fn modify(&self, fd: impl AsFd, token: u64, interest: epoll::EventFlags) -> io::Result<()> {
        Ok(epoll::modify(self.descriptor()?, fd, epoll::EventData::new_u64(token), interest)?)
    }

    pub(crate) fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(self.descriptor()?, fd)?)
    }

    /// Returns true if events of the last wait are left.
    pub(crate) fn has_ready(&self) -> bool {
        self.next < self.ready.len()
    }

    /// Returns the next descriptor that became ready in the last wait.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Ready> {
        let ready = self.ready.get(self.next).copied();
        self.next += 1;
        ready
    }

    /// Makes the next wait return at once and report this connection again: some of its bytes were not read.
    pub(crate) fn look_again(&mut self, token: u64, ends: bool) {
        self.again.push(Ready { token, readable: true, writable: false, ends });
    }

    /// Returns true if the next wait reports a connection again.
    pub(crate) fn has_again(&self) -> bool {
        !self.again.is_empty()
    }

    /// Takes the events of a simulated network, instead of waiting.
    pub(crate) fn replace(&mut self, ready: impl Iterator<Item = Ready>) {
        self.next = 0;
        self.ready.clear();
        self.ready.extend(ready);
        self.ready.append(&mut self.again);
    }

    /// Waits until a descriptor is ready, for at most `timeout` (`None`: without limit).
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.next = 0;
        self.ready.clear();
        let timeout = if self.again.is_empty() { timeout } else { Some(Duration::ZERO) };
        let timeout = timeout.map(|time| Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        });
        let mut events = [const { MaybeUninit::uninit() }; BATCH];
        let waited = epoll::wait(self.descriptor()?, &mut events, timeout.as_ref());
        match waited {
            Ok((events, _)) => self.ready.extend(events.iter().map(|event| Ready::from(*event))),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        self.ready.append(&mut self.again);
        Ok(())
    }
}

impl From<epoll::Event> for Ready {
    fn from(event: epoll::Event) -> Self {
        let flags = event.flags;
        let broken = flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
        Self {
            token: event.data.u64(),
            // The following read or write returns the error.
            readable: broken || flags.intersects(READ | epoll::EventFlags::RDHUP),
            writable: broken || flags.intersects(WRITE),
            ends: broken || flags.intersects(epoll::EventFlags::RDHUP),
        }
    }
}
