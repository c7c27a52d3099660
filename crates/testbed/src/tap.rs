//! Captures the frames on a device by AF_PACKET, cut to headers.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter};
use std::num::NonZeroU32;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use fanin_report::Capture;
use fanin_units::{Bytes, Instant, Rate};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketFlags, SocketType, recv, socket_with};
use thiserror::Error;

/// Bytes kept of a frame: Ethernet, IPv4 and TCP with all options, and the begin of the message's header.
pub const SNAP_BYTES: usize = 128;
/// Most frames kept before [`DeviceTap::choose`] names their ports.
const EARLY_FRAMES_MAX: usize = 20_000;
/// The kernel's buffer for frames that were not read yet.
const BUFFER_BYTES: usize = 64 << 20;
/// The interval at which a capture checks whether it should end.
const TURN: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
const ETHERTYPE_IPV4: u16 = 0x0800;
const TCP: u8 = 6;

/// Errors of a capture.
#[derive(Debug, Error)]
pub enum TapError {
    /// The process lacks CAP_NET_RAW, which AF_PACKET requires.
    #[error("capturing frames needs CAP_NET_RAW: run as root, or leave --pcap out")]
    NotPermitted,
    /// The namespace has no such device.
    #[error("no device {device} to capture on: {source}")]
    Device {
        /// Name of the device.
        device: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The socket failed.
    #[error("the capture's socket failed: {0}")]
    Socket(io::Error),
    /// The file cannot be written.
    #[error("cannot write the capture {}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// The totals of a capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TapTotals {
    /// Frames in the file.
    pub frames: u64,
    /// Frames of any connection that were lost because they arrived faster than they were read. The file's statistics count
    /// them, too.
    pub dropped: u64,
}

/// A running capture of TCP segments over IPv4 that arrive at one device of the calling thread's namespace. The capture keeps
/// all segments, or those of ports named later, cut to [`SNAP_BYTES`]. A time stamp is the time at which the frame was read.
#[derive(Debug)]
pub struct DeviceTap {
    chosen: Arc<OnceLock<Ports>>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<TapTotals, TapError>>,
}

impl DeviceTap {
    /// Starts a capture of `device` into `file`.
    ///
    /// # Errors
    /// [`TapError`].
    pub fn start(device: &str, file: &Path) -> Result<Self, TapError> {
        let socket = open(device)?;
        let fail = |source| TapError::File { path: file.to_owned(), source };
        let out = BufWriter::new(File::create(file).map_err(fail)?);
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let began = std::time::Instant::now();
        let mut capture = Capture::new(out, "fanin", epoch.as_nanos() as u64).map_err(fail)?;
        // A loopback or veth device has no rate.
        let interface =
            capture.add_interface(device, Rate::new(0), Bytes::new(SNAP_BYTES as u64)).map_err(fail)?;
        let chosen: Arc<OnceLock<Ports>> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let (known, stopping, path) = (Arc::clone(&chosen), Arc::clone(&stop), file.to_owned());
        let work = move || {
            let fail = |source| TapError::File { path: path.clone(), source };
            let now = || Instant::new(began.elapsed().as_nanos() as u64 * 1000);
            let mut early: Vec<(Instant, Vec<u8>, u32)> = Vec::new();
            let mut tapped = TapTotals::default();
            let mut head = [0_u8; SNAP_BYTES];
            loop {
                // Frames before the end are read first.
                let is_last = stopping.load(Ordering::Relaxed);
                while let Some((kept, length)) = receive(&socket, &mut head).map_err(TapError::Socket)? {
                    let (at, frame) = (now(), &head[..kept]);
                    let Some(ports) = ports_of(frame) else { continue };
                    let Some(chosen) = known.get() else {
                        if early.len() < EARLY_FRAMES_MAX {
                            early.push((at, frame.to_vec(), length));
                        } else {
                            tapped.dropped += 1;
                        }
                        continue;
                    };
                    for (at, frame, length) in early.drain(..) {
                        if ports_of(&frame).is_some_and(|ports| chosen.wants(ports)) {
                            capture.write_frame(interface, at, &frame, length).map_err(fail)?;
                            tapped.frames += 1;
                        }
                    }
                    if chosen.wants(ports) {
                        capture.write_frame(interface, at, frame, length).map_err(fail)?;
                        tapped.frames += 1;
                    }
                }
                if is_last {
                    break;
                }
                // The socket is readable, or the interval is over: both are checked.
                let _ = poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&TURN));
            }
            tapped.dropped += dropped(&socket).map_err(TapError::Socket)?;
            capture.write_dropped(interface, now(), tapped.dropped).map_err(fail)?;
            capture.finish().map_err(fail)?;
            Ok(tapped)
        };
        let thread =
            std::thread::Builder::new().name("capture".into()).spawn(work).map_err(TapError::Socket)?;
        Ok(Self { chosen, stop, thread })
    }

    /// Keeps only frames from or to these TCP ports, including earlier frames.
    pub fn choose(&self, ports: impl IntoIterator<Item = u16>) {
        // A second choice would make the file ambiguous.
        let _ = self.chosen.set(Ports::These(ports.into_iter().collect()));
    }

    /// Keeps all frames.
    pub fn choose_all(&self) {
        let _ = self.chosen.set(Ports::All);
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// [`TapError`] if the capture failed at any time.
    ///
    /// # Panics
    /// If the capture's thread panicked.
    pub fn stop(self) -> Result<TapTotals, TapError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// The frames that are kept.
#[derive(Debug)]
enum Ports {
    All,
    These(HashSet<u16>),
}

impl Ports {
    fn wants(&self, (source, destination): (u16, u16)) -> bool {
        match self {
            Self::All => true,
            Self::These(ports) => ports.contains(&source) || ports.contains(&destination),
        }
    }
}

fn open(device: &str) -> Result<OwnedFd, TapError> {
    // With this protocol instead of all, a loopback's frames appear once, at their reception.
    let protocol = NonZeroU32::new(u32::from(ETHERTYPE_IPV4.to_be())).map(Protocol::from_raw);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = match socket_with(AddressFamily::PACKET, SocketType::RAW, flags, protocol) {
        Ok(socket) => socket,
        Err(Errno::PERM | Errno::ACCESS) => return Err(TapError::NotPermitted),
        Err(error) => return Err(TapError::Socket(error.into())),
    };
    // A smaller buffer loses more, which is counted.
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES);
    bind(&socket, device).map_err(|source| TapError::Device { device: device.into(), source })?;
    Ok(socket)
}

/// Receives the next frame's first bytes into `head`. Returns their number and the frame's length; `None` if no frame waits.
fn receive(socket: &OwnedFd, head: &mut [u8]) -> io::Result<Option<(usize, u32)>> {
    match recv(socket, head, RecvFlags::TRUNC | RecvFlags::DONTWAIT) {
        Ok((kept, length)) => Ok(Some((kept, u32::try_from(length).unwrap_or(u32::MAX)))),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the ports of a TCP segment over IPv4; `None` for other frames.
fn ports_of(frame: &[u8]) -> Option<(u16, u16)> {
    let packet = frame.get(14..)?;
    if frame[12..14] != ETHERTYPE_IPV4.to_be_bytes() || packet.first()? >> 4 != 4 || *packet.get(9)? != TCP {
        return None;
    }
    let segment = packet.get(usize::from(packet[0] & 15) * 4..)?;
    let port = |at: usize| Some(u16::from_be_bytes([*segment.get(at)?, *segment.get(at + 1)?]));
    Some((port(0)?, port(2)?))
}

fn bind(socket: &OwnedFd, device: &str) -> io::Result<()> {
    let index = rustix::net::netdevice::name_to_index(socket, device)?;
    // SAFETY: an all-zero sockaddr_ll is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ETHERTYPE_IPV4.to_be();
    address.sll_ifindex = i32::try_from(index).map_err(io::Error::other)?;
    // SAFETY: the socket is open, and the kernel reads as many bytes as the structure has.
    let result = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of_val(&address) as libc::socklen_t)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the number of frames that arrived while the socket's buffer was full.
fn dropped(socket: &OwnedFd) -> io::Result<u64> {
    // struct tpacket_stats: frames, drops (include/uapi/linux/if_packet.h).
    let mut statistics = [0_u32; 2];
    let mut size = size_of_val(&statistics) as libc::socklen_t;
    // SAFETY: the socket is open, and the kernel writes at most `size` bytes, which is the size of `statistics`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            statistics.as_mut_ptr().cast(),
            &raw mut size,
        )
    };
    if result == 0 { Ok(statistics[1].into()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn ports_are_found_behind_options_and_nowhere_else() {
        let mut frame = vec![0; 14 + 24 + 20];
        frame[12] = 8;
        (frame[14], frame[14 + 9]) = (0x46, TCP);
        frame[38..42].copy_from_slice(&[0x12, 0x34, 0, 80]);
        assert_eq!(ports_of(&frame), Some((0x1234, 80)));
        for cut in 0..42 {
            assert_eq!(ports_of(&frame[..cut]), None, "{cut}");
        }
        frame[23] = 17;
        assert_eq!(ports_of(&frame), None, "UDP");
    }

    #[test]
    fn a_connection_on_the_loopback_is_in_the_file_from_its_first_segment_on() {
        let path = std::env::temp_dir().join(format!("fanin-tap-{}.pcapng", std::process::id()));
        let tap = match DeviceTap::start("lo", &path) {
            Ok(tap) => tap,
            Err(TapError::NotPermitted) => {
                return crate::skip::skip("capturing needs CAP_NET_RAW");
            }
            Err(error) => panic!("{error}"),
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        tap.choose([listener.local_addr().unwrap().port()]);
        client.write_all(&[0x5a; 3000]).unwrap();
        listener.accept().unwrap().0.read_exact(&mut [0; 3000]).unwrap();
        drop(client);
        let tapped = tap.stop().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        // SYN, its answer, and the acknowledgement; data and its acknowledgement; at least one end.
        assert!(tapped.frames >= 6, "{tapped:?}");
        assert_eq!(tapped.dropped, 0);
        // Cut to headers: less of the payload is kept than a frame's headers take.
        let longest = bytes.split(|&byte| byte != 0x5a).map(<[u8]>::len).max();
        assert!((1..SNAP_BYTES).contains(&longest.unwrap()), "{longest:?}");
        assert!(matches!(DeviceTap::start("sock-none", &path), Err(TapError::Device { .. })));
        let _ = std::fs::remove_file(&path);
    }
}
