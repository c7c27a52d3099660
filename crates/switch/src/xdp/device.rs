//! Network interfaces of the kernel: state and settings.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::socket::set_option;

const ETHTOOL_GCHANNELS: u32 = 0x3c;

/// `struct ethtool_channels` of linux/ethtool.h.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    _max: [u32; 4],
    rx: u32,
    _tx: u32,
    _other: u32,
    combined: u32,
}

/// An open interface.
#[derive(Debug)]
pub(super) struct Device {
    name: CString,
    pub(super) index: u32,
    /// True if the interface was deleted, with its sockets and program. Another interface may have the same name.
    is_lost: bool,
    socket: OwnedFd,
    /// Keeps the interface promiscuous while it is open.
    _promiscuous: OwnedFd,
}

fn socket(family: libc::c_int, kind: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: opens a descriptor and touches no memory.
    let socket = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened for us.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

fn request(name: &CStr) -> libc::ifreq {
    // SAFETY: plain bytes, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, &from) in request.ifr_name.iter_mut().zip(name.to_bytes()) {
        *to = from as libc::c_char;
    }
    request
}

impl Device {
    pub(super) fn open(name: &str) -> io::Result<Self> {
        let name = CString::new(name)?;
        // SAFETY: a NUL-terminated string.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        let packet = socket(libc::AF_PACKET, libc::SOCK_RAW)?;
        let wish = libc::packet_mreq {
            mr_ifindex: index as libc::c_int,
            mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set_option(&packet, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &wish)?;
        let socket = socket(libc::AF_INET, libc::SOCK_DGRAM)?;
        Ok(Self { name, index, is_lost: false, socket, _promiscuous: packet })
    }

    fn ioctl(&self, command: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: these requests read and write a `struct ifreq`, and the target of its pointer, if any.
        let result =
            unsafe { libc::ioctl(self.socket.as_raw_fd(), command as _, std::ptr::from_mut(request)) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Returns true the first time after the interface was deleted, and logs it.
    pub(super) fn handle_loss(&mut self) -> bool {
        if self.is_lost || self.current_index() == Some(self.index) {
            return false;
        }
        self.is_lost = true;
        eprintln!(
            "warning: the interface {} was deleted; its port is down until it is recreated",
            self.name.to_string_lossy()
        );
        true
    }

    /// Returns true if the interface was deleted.
    pub(super) const fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Returns true if it is up and has a link.
    pub(super) fn is_up(&self) -> bool {
        if self.is_lost {
            return false;
        }
        let mut request = request(&self.name);
        if self.ioctl(libc::SIOCGIFFLAGS, &mut request).is_err() {
            return false;
        }
        // SAFETY: the call has filled in the flags.
        let flags = libc::c_int::from(unsafe { request.ifr_ifru.ifru_flags });
        flags & (libc::IFF_UP | libc::IFF_RUNNING) == libc::IFF_UP | libc::IFF_RUNNING
    }

    /// Returns the index of the interface that has this name now.
    fn current_index(&self) -> Option<u32> {
        let mut request = request(&self.name);
        self.ioctl(libc::SIOCGIFINDEX, &mut request).ok()?;
        // SAFETY: the call has filled in the index.
        Some(unsafe { request.ifr_ifru.ifru_ifindex } as u32)
    }

    /// Returns the MTU of the interface.
    pub(super) fn mtu(&self) -> io::Result<u32> {
        let mut request = request(&self.name);
        self.ioctl(libc::SIOCGIFMTU, &mut request)?;
        // SAFETY: the call has filled in the MTU.
        Ok(unsafe { request.ifr_ifru.ifru_mtu } as u32)
    }

    /// Returns the number of receive queues of the interface; 1 if unknown.
    pub(super) fn queues(&self) -> u32 {
        let mut channels = Channels { command: ETHTOOL_GCHANNELS, ..Channels::default() };
        let mut request = request(&self.name);
        request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut channels).cast();
        match self.ioctl(libc::SIOCETHTOOL, &mut request) {
            Ok(()) => (channels.rx + channels.combined).max(1),
            Err(_) => 1,
        }
    }
}
