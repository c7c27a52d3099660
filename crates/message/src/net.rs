//! The network below an endpoint: the kernel's, or a simulated one.
//!
//! A simulated network lets many endpoints run in one thread and in simulated time ([`SimulatedNetwork`]). All code
//! above the sockets is the same in both: greetings, authentication, framing, heartbeats, pauses between attempts,
//! limits.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags, acceptfrom_with, recv, send, sendmsg,
    shutdown, sockopt,
};

use crate::epoll::{EDGE, Epoll, READ, Ready, WRITE};
use crate::limits::Limits;
use crate::socket::{self, OptionError, OsError, SocketError, SocketOptions};
use crate::tcp_info::TcpInfo;
use crate::wake::Waker;

/// A network without a kernel, as one endpoint sees it. Time stands still while the endpoint works.
pub trait SimulatedNetwork: Send {
    /// Returns the present time.
    fn now(&self) -> Instant;

    /// Returns random bytes for nonces and pauses.
    fn random(&mut self) -> [u8; 32];

    /// Returns the limits of an endpoint in this network, from those of its settings. A network may set smaller ones, so
    /// that small systems reach them.
    fn limits(&self, limits: Limits) -> Limits {
        limits
    }

    /// Creates a socket that listens on `address`.
    ///
    /// # Errors
    ///
    /// The number of the system's error, such as `EADDRINUSE`.
    fn listen(&mut self, address: SocketAddr) -> Result<Box<dyn SimulatedSocket>, OsError>;

    /// Creates a socket that connects to `address`. It becomes writable when it is connected or has failed.
    ///
    /// # Errors
    ///
    /// The number of the system's error.
    fn connect(&mut self, address: SocketAddr) -> Result<Box<dyn SimulatedSocket>, OsError>;

    /// Appends the sockets of this endpoint that are ready, as `epoll_wait(2)` does.
    fn ready(&mut self, ready: &mut Vec<Readiness>);
}

/// A socket of a [`SimulatedNetwork`]. Dropping it closes it, as `close(2)` does.
pub trait SimulatedSocket: Send {
    /// Sets the events that are reported for this socket under `token`; `None` reports none.
    fn watch(&self, token: u64, interest: Option<Interest>);

    /// Takes a waiting connection.
    ///
    /// # Errors
    ///
    /// `EAGAIN` if none waits, or another of the system's errors.
    fn accept(&self) -> Result<Box<dyn SimulatedSocket>, OsError>;

    /// Receives bytes; 0 at the end of the stream.
    ///
    /// # Errors
    ///
    /// `EAGAIN` if no bytes have arrived, or the error that ended the connection.
    fn receive(&self, bytes: &mut [u8]) -> Result<usize, OsError>;

    /// Returns true if bytes can be received.
    fn has_unread(&self) -> bool;

    /// Sends the first part of `bytes`, as far as the buffer has room.
    ///
    /// # Errors
    ///
    /// `EAGAIN` without room, or the error that ended the connection.
    fn send(&self, bytes: &[u8]) -> Result<usize, OsError>;

    /// Ends this side of the stream; with `both` also the other side.
    fn shutdown(&self, both: bool);

    /// Takes the error of a failed connection; `None` if the connection has not failed.
    fn error(&self) -> Option<OsError>;

    /// Returns the local address of the socket; `None` if it has none.
    fn local_address(&self) -> Option<SocketAddr>;
}

/// The events to report for a socket of a [`SimulatedNetwork`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interest {
    /// Reports that bytes, the end of the stream or connections arrived.
    pub read: bool,
    /// Reports room for bytes, and the end of a connection attempt.
    pub write: bool,
    /// Reports each arrival only once (`EPOLLET`).
    pub edge: bool,
}

/// A socket of a [`SimulatedNetwork`] that is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// The token of [`SimulatedSocket::watch`].
    pub token: u64,
    /// True if receiving or accepting does not fail with `EAGAIN`.
    pub readable: bool,
    /// True if sending does not fail with `EAGAIN`.
    pub writable: bool,
    /// True if the connection ends after the bytes that can be received.
    pub ends: bool,
}

impl From<EventFlags> for Interest {
    fn from(flags: EventFlags) -> Self {
        Self { read: flags.contains(READ), write: flags.contains(WRITE), edge: flags.contains(EDGE) }
    }
}

impl From<Readiness> for Ready {
    fn from(ready: Readiness) -> Self {
        let Readiness { token, readable, writable, ends } = ready;
        Self { token, readable, writable, ends }
    }
}

fn errno(error: OsError) -> Errno {
    Errno::from_raw_os_error(error.0)
}

/// A socket of an endpoint.
pub(crate) enum Socket {
    Kernel(OwnedFd),
    Simulated(Box<dyn SimulatedSocket>),
}

impl Socket {
    /// Returns the kernel's descriptor; `None` for a simulated socket.
    pub(crate) fn descriptor(&self) -> Option<&OwnedFd> {
        match self {
            Self::Kernel(fd) => Some(fd),
            Self::Simulated(_) => None,
        }
    }

    /// Takes a waiting connection, with its caller's address if the network knows it.
    pub(crate) fn accept(&self) -> Result<(Self, Option<SocketAddr>), Errno> {
        match self {
            Self::Kernel(fd) => {
                let (fd, caller) = acceptfrom_with(fd, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
                Ok((Self::Kernel(fd), caller.and_then(|caller| caller.try_into().ok())))
            }
            Self::Simulated(socket) => {
                socket.accept().map(|socket| (Self::Simulated(socket), None)).map_err(errno)
            }
        }
    }

    #[inline]
    pub(crate) fn receive(&self, first: &mut [u8], second: &mut [u8]) -> Result<usize, Errno> {
        match self {
            // Cheaper than read(2), which passes through the file-system layer.
            Self::Kernel(fd) if second.is_empty() => {
                recv(fd, first, RecvFlags::empty()).map(|(bytes, _)| bytes)
            }
            Self::Kernel(fd) => rustix::io::readv(fd, &mut [IoSliceMut::new(first), IoSliceMut::new(second)]),
            Self::Simulated(socket) => {
                let mut bytes = socket.receive(first).map_err(errno)?;
                if bytes == first.len() && !second.is_empty() {
                    bytes += socket.receive(second).unwrap_or(0);
                }
                Ok(bytes)
            }
        }
    }

    /// Returns true if bytes have arrived that were not received.
    pub(crate) fn has_unread(&self) -> bool {
        match self {
            Self::Kernel(fd) => {
                let mut byte = [0u8];
                matches!(recv(fd, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT), Ok((1.., _)))
            }
            Self::Simulated(socket) => socket.has_unread(),
        }
    }

    #[inline]
    pub(crate) fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        match self {
            Self::Kernel(fd) => send(fd, bytes, SendFlags::NOSIGNAL),
            Self::Simulated(socket) => socket.send(bytes).map_err(errno),
        }
    }

    #[inline]
    pub(crate) fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> Result<usize, Errno> {
        match self {
            Self::Kernel(fd) => sendmsg(fd, pieces, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL),
            Self::Simulated(socket) => socket.send(&pieces.concat_bytes()).map_err(errno),
        }
    }

    pub(crate) fn shutdown(&self, how: Shutdown) {
        match self {
            Self::Kernel(fd) => {
                // The connection may have ended already.
                let _ = shutdown(fd, how);
            }
            Self::Simulated(socket) => socket.shutdown(how == Shutdown::Both),
        }
    }

    /// Returns the result of an attempt to connect.
    pub(crate) fn connect_result(&self) -> Result<(), Errno> {
        match self {
            Self::Kernel(fd) => sockopt::socket_error(fd).and_then(|result| result),
            Self::Simulated(socket) => socket.error().map_or(Ok(()), |error| Err(errno(error))),
        }
    }

    pub(crate) fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Kernel(fd) => socket::local_address(fd),
            Self::Simulated(socket) => socket.local_address(),
        }
    }

    /// Sets all options; a simulated socket has none.
    pub(crate) fn apply(&self, options: &SocketOptions) -> Result<(), OptionError> {
        self.descriptor().map_or(Ok(()), |fd| options.apply(fd))
    }

    /// Sets the options that the kernel resets.
    pub(crate) fn renew(&self, options: &SocketOptions) {
        if let Some(fd) = self.descriptor() {
            options.renew(fd);
        }
    }

    pub(crate) fn clamp_window(&self, bytes: u32) -> Result<(), OptionError> {
        self.descriptor().map_or(Ok(()), |fd| socket::clamp_window(fd, bytes))
    }

    pub(crate) fn tcp_info(&self) -> Option<TcpInfo> {
        TcpInfo::of(self.descriptor()?).ok()
    }
}

trait ConcatBytes {
    fn concat_bytes(&self) -> Vec<u8>;
}

impl ConcatBytes for [IoSlice<'_>] {
    fn concat_bytes(&self) -> Vec<u8> {
        self.iter().flat_map(|piece| piece.iter().copied()).collect()
    }
}

/// The sockets and the clock of an endpoint.
pub(crate) struct Net {
    epoll: Epoll,
    simulated: Option<Box<dyn SimulatedNetwork>>,
    /// Wakers of an endpoint in a simulated network; no kernel watches them.
    wakers: Vec<(Waker, u64)>,
    /// The simulated sockets that became ready in the last wait.
    found: Vec<Readiness>,
}

impl Net {
    pub(crate) fn kernel() -> io::Result<Self> {
        Ok(Self { epoll: Epoll::new()?, simulated: None, wakers: Vec::new(), found: Vec::new() })
    }

    pub(crate) fn simulated(network: Box<dyn SimulatedNetwork>) -> Self {
        let epoll = Epoll::without_kernel();
        Self { epoll, simulated: Some(network), wakers: Vec::new(), found: Vec::new() }
    }

    pub(crate) fn is_simulated(&self) -> bool {
        self.simulated.is_some()
    }

    /// Returns epoll, whose descriptor io_uring watches.
    pub(crate) fn epoll(&self) -> &Epoll {
        &self.epoll
    }

    #[inline]
    pub(crate) fn now(&self) -> Instant {
        self.simulated.as_ref().map_or_else(Instant::now, |network| network.now())
    }

    pub(crate) fn random(&mut self) -> io::Result<[u8; 32]> {
        self.simulated.as_mut().map_or_else(crate::auth::random, |network| Ok(network.random()))
    }

    /// Creates a waker, which makes [`Self::wait`] report `token`.
    pub(crate) fn waker(&mut self, token: u64) -> io::Result<Waker> {
        if self.is_simulated() {
            let waker = Waker::without_kernel();
            self.wakers.push((waker.clone(), token));
            return Ok(waker);
        }
        let waker = Waker::new()?;
        if let Some(fd) = waker.descriptor() {
            self.epoll.add(fd, token, READ)?;
        }
        Ok(waker)
    }

    pub(crate) fn listen(
        &mut self,
        address: SocketAddr,
        options: &SocketOptions,
    ) -> Result<Socket, SocketError> {
        match &mut self.simulated {
            None => socket::listening(address, options).map(Socket::Kernel),
            Some(network) => Ok(Socket::Simulated(network.listen(address)?)),
        }
    }

    pub(crate) fn connect(
        &mut self,
        address: SocketAddr,
        options: &SocketOptions,
    ) -> Result<Socket, SocketError> {
        match &mut self.simulated {
            None => socket::connecting(address, options).map(Socket::Kernel),
            Some(network) => Ok(Socket::Simulated(network.connect(address)?)),
        }
    }

    pub(crate) fn add(&self, socket: &Socket, token: u64, interest: EventFlags) -> io::Result<()> {
        match socket {
            Socket::Kernel(fd) => self.epoll.add(fd, token, interest),
            Socket::Simulated(_) => self.modify(socket, token, interest),
        }
    }

    pub(crate) fn modify(&self, socket: &Socket, token: u64, interest: EventFlags) -> io::Result<()> {
        match socket {
            Socket::Kernel(fd) => self.epoll.modify(fd, token, interest),
            Socket::Simulated(socket) => {
                socket.watch(token, Some(interest.into()));
                Ok(())
            }
        }
    }

    pub(crate) fn remove(&self, socket: &Socket) -> io::Result<()> {
        match socket {
            Socket::Kernel(fd) => self.epoll.remove(fd),
            Socket::Simulated(socket) => {
                socket.watch(0, None);
                Ok(())
            }
        }
    }

    /// Returns true if events of the last wait are left.
    pub(crate) fn has_ready(&self) -> bool {
        self.epoll.has_ready()
    }

    /// Returns true if the next wait returns at once.
    pub(crate) fn is_pending(&self) -> bool {
        self.epoll.has_ready()
            || self.epoll.has_again()
            || self.wakers.iter().any(|(waker, _)| waker.is_set())
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<Ready> {
        self.epoll.next()
    }

    /// Makes the next wait return at once and report this connection again: some of its bytes were not read.
    pub(crate) fn look_again(&mut self, token: u64, ends: bool) {
        self.epoll.look_again(token, ends);
    }

    /// Waits until a socket is ready, for at most `timeout` (`None`: without limit). A simulated network never waits.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let Some(network) = &mut self.simulated else { return self.epoll.wait(timeout) };
        self.found.clear();
        network.ready(&mut self.found);
        let set = self.wakers.iter().filter(|(waker, _)| waker.is_set());
        let woken = set.map(|&(_, token)| Ready { token, readable: true, writable: false, ends: false });
        self.epoll.replace(self.found.iter().map(|&ready| ready.into()).chain(woken));
        Ok(())
    }
}
