//! The load: many connections with a fixed number of open requests each, from one thread.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SendFlags, SocketType, sockopt};

/// The request and the expected reply, as bytes on the wire.
pub(crate) struct Dialogue {
    pub(crate) request: Vec<u8>,
    pub(crate) reply_bytes: usize,
    /// True for ZeroMQ: its greeting and handshake come first.
    pub(crate) zmtp: bool,
}

struct Connection {
    fd: OwnedFd,
    /// Bytes of replies since the last complete one.
    received: usize,
    /// Number of requests to send, and bytes of the first of them that were sent.
    due: usize,
    sent: usize,
    waits: bool,
}

pub(crate) struct Load {
    epoll: OwnedFd,
    connections: Vec<Connection>,
    dialogue: Dialogue,
    /// Several requests in a row, to send them with one call.
    requests: Vec<u8>,
    buffer: Vec<u8>,
    pub(crate) replies: u64,
}

impl Load {
    pub(crate) fn connect(
        port: u16,
        connections: usize,
        depth: usize,
        dialogue: Dialogue,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut all = Vec::new();
        for number in 0..connections {
            let fd = net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
            net::connect(&fd, &address)?;
            sockopt::set_tcp_nodelay(&fd, true)?;
            if dialogue.zmtp {
                shake_hands(&fd)?;
            }
            rustix::io::ioctl_fionbio(&fd, true)?;
            epoll::add(&epoll, &fd, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?;
            all.push(Connection { fd, received: 0, due: depth, sent: 0, waits: false });
        }
        let side_by_side = if dialogue.request.len() > 4096 { 1 } else { depth };
        let requests = dialogue.request.repeat(side_by_side);
        Ok(Self { epoll, connections: all, dialogue, requests, buffer: vec![0; 1 << 18], replies: 0 })
    }

    /// Sends the first requests.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        for number in 0..self.connections.len() {
            self.send(number)?;
        }
        Ok(())
    }

    /// Continues for this time.
    pub(crate) fn run(&mut self, time: Duration) -> io::Result<()> {
        let end = Instant::now() + time;
        let mut events = Vec::with_capacity(512);
        while Instant::now() < end {
            events.clear();
            let timeout = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
            epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&timeout))?;
            for event in &events {
                let number = event.data.u64() as usize;
                let flags = event.flags;
                if flags.contains(epoll::EventFlags::IN) {
                    self.receive(number)?;
                }
                self.send(number)?;
            }
        }
        Ok(())
    }

    fn receive(&mut self, number: usize) -> io::Result<()> {
        let connection = &mut self.connections[number];
        match rustix::io::read(&connection.fd, &mut self.buffer[..]) {
            Ok(0) => return Err(io::Error::other("the server closed a connection")),
            Ok(bytes) => {
                connection.received += bytes;
                let replies = connection.received / self.dialogue.reply_bytes;
                connection.received %= self.dialogue.reply_bytes;
                connection.due += replies;
                self.replies += replies as u64;
            }
            Err(Errno::AGAIN) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(())
    }

    fn send(&mut self, number: usize) -> io::Result<()> {
        let connection = &mut self.connections[number];
        let one = self.dialogue.request.len();
        while connection.due > 0 {
            let many = (self.requests.len() / one).min(connection.due) * one;
            match net::send(&connection.fd, &self.requests[connection.sent..many], SendFlags::NOSIGNAL) {
                Ok(bytes) => {
                    connection.sent += bytes;
                    connection.due -= connection.sent / one;
                    connection.sent %= one;
                }
                Err(Errno::AGAIN) => break,
                Err(errno) => return Err(errno.into()),
            }
        }
        let waits = connection.due > 0;
        if waits != connection.waits {
            connection.waits = waits;
            let mut flags = epoll::EventFlags::IN;
            flags.set(epoll::EventFlags::OUT, waits);
            epoll::modify(&self.epoll, &connection.fd, epoll::EventData::new_u64(number as u64), flags)?;
        }
        Ok(())
    }
}

/// The start of a ZeroMQ connection (ZMTP 3.0, mechanism NULL) as a DEALER.
fn shake_hands(fd: &OwnedFd) -> io::Result<()> {
    let mut greeting = [0u8; 64];
    greeting[0] = 0xFF;
    greeting[9] = 0x7F;
    greeting[10] = 3;
    greeting[12..16].copy_from_slice(b"NULL");
    net::send(fd, &greeting, SendFlags::NOSIGNAL)?;
    let mut ready = b"\x05READY\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0\0".to_vec();
    ready.splice(0..0, [0x04, ready.len() as u8]);
    read_exact(fd, 64)?;
    net::send(fd, &ready, SendFlags::NOSIGNAL)?;
    let head = read_exact(fd, 2)?;
    read_exact(fd, usize::from(head[1]))?;
    Ok(())
}

fn read_exact(fd: &OwnedFd, bytes: usize) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; bytes];
    let mut received = 0;
    while received < bytes {
        match rustix::io::read(fd, &mut buffer[received..])? {
            0 => return Err(io::Error::other("the server closed a connection")),
            more => received += more,
        }
    }
    Ok(buffer)
}

/// A request to a ZeroMQ socket: one frame.
pub(crate) fn zmtp_frame(size: usize) -> Vec<u8> {
    let mut frame = if size < 256 {
        vec![0, size as u8]
    } else {
        let mut head = vec![2];
        head.extend((size as u64).to_be_bytes());
        head
    };
    frame.resize(frame.len() + size, 0);
    frame
}
