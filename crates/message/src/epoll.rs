//! Readiness by epoll: always there. Level-triggered, except for established connections, whose arrivals are reported
//! once each: that spares the kernel a second look at every connection that was read empty. Who leaves something
//! unread asks to be reminded.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};

/// Occurrences that one call takes from the kernel.
const BATCH: usize = 128;

pub(crate) const READ: epoll::EventFlags = epoll::EventFlags::IN;
pub(crate) const WRITE: epoll::EventFlags = epoll::EventFlags::OUT;
/// Reports each arrival once; the peer's end, which may come with data, is then distinct from them.
pub(crate) const EDGE: epoll::EventFlags = epoll::EventFlags::ET.union(epoll::EventFlags::RDHUP);

/// The readiness of a descriptor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    pub(crate) token: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// Behind what can be read, the connection ends.
    pub(crate) ends: bool,
}

pub(crate) struct Epoll {
    epoll: OwnedFd,
    ready: Vec<Ready>,
    next: usize,
    again: Vec<Ready>,
}

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, ready: Vec::with_capacity(BATCH), next: 0, again: Vec::new() })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    pub(crate) fn add(&self, fd: impl AsFd, token: u64, interest: epoll::EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, epoll::EventData::new_u64(token), interest)?)
    }

    pub(crate) fn modify(&self, fd: impl AsFd, token: u64, interest: epoll::EventFlags) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, epoll::EventData::new_u64(token), interest)?)
    }

    pub(crate) fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// True if something is ready that was not asked for yet.
    pub(crate) fn has_ready(&self) -> bool {
        self.next < self.ready.len()
    }

    /// The next descriptor that became ready in the last wait.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Ready> {
        let ready = self.ready.get(self.next).copied();
        self.next += 1;
        ready
    }

    /// Report a connection again in the next wait, which will be none: not all of it was read.
    pub(crate) fn look_again(&mut self, token: u64, ends: bool) {
        self.again.push(Ready { token, readable: true, writable: false, ends });
    }

    /// Wait until something is ready, for at most `timeout` (`None`: for as long as it takes).
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.next = 0;
        self.ready.clear();
        let timeout = if self.again.is_empty() { timeout } else { Some(Duration::ZERO) };
        let timeout = timeout.map(|time| Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        });
        let mut events = [const { MaybeUninit::uninit() }; BATCH];
        match epoll::wait(&self.epoll, &mut events, timeout.as_ref()) {
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
            // Whoever reads or writes learns what is broken.
            readable: broken || flags.intersects(READ | epoll::EventFlags::RDHUP),
            writable: broken || flags.intersects(WRITE),
            ends: broken || flags.intersects(epoll::EventFlags::RDHUP),
        }
    }
}
