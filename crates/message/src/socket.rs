//! Sockets and their options, including those of techniques against incast.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt as safe};

use crate::sys::sockopt;

/// Maximum connections waiting to be accepted; the kernel reduces it to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// Number of an operating-system error.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OsError(pub i32);

impl OsError {
    /// Returns the number of an error; `EIO` if it has none.
    pub fn of(error: &std::io::Error) -> Self {
        Self(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl fmt::Display for OsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

impl fmt::Debug for OsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OsError({self})")
    }
}

impl std::error::Error for OsError {}

impl From<Errno> for OsError {
    fn from(errno: Errno) -> Self {
        Self(errno.raw_os_error())
    }
}

/// An error: the system refused a socket option.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the system refuses {option} = {value}: {error}")]
pub struct OptionError {
    /// Name of the option, as in [`SocketOptions`].
    pub option: &'static str,
    /// The refused value.
    pub value: String,
    /// The system's error.
    pub error: OsError,
}

/// Options of TCP sockets; `None` leaves the system's default.
///
/// Options are set before a socket connects or listens, again on accepted connections, and later by
/// [`MessageEndpoint::set_options`](crate::MessageEndpoint::set_options).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketOptions {
    /// Sends small messages at once (TCP_NODELAY). Default: on, because the outbox collects messages already.
    pub nodelay: Option<bool>,
    /// Name of the congestion control (TCP_CONGESTION), such as `"cubic"`.
    /// `/proc/sys/net/ipv4/tcp_allowed_congestion_control` lists the names that need no privilege.
    pub congestion_control: Option<String>,
    /// Largest window to advertise, bytes (TCP_WINDOW_CLAMP). The kernel raises it when data arrive, so it is set
    /// again after every read.
    pub window_clamp: Option<u32>,
    /// Receive buffer, bytes (SO_RCVBUF). The kernel doubles it for its own needs. Set before connecting, it
    /// determines the window scale.
    pub receive_buffer: Option<u32>,
    /// Send buffer, bytes (SO_SNDBUF). The kernel doubles it.
    pub send_buffer: Option<u32>,
    /// Acknowledges at once (TCP_QUICKACK). The kernel resets it, so `true` is set again after every read.
    pub quickack: Option<bool>,
    /// Lower bound of the retransmission timeout (TCP_RTO_MIN_US, Linux 6.15 and later).
    pub rto_min: Option<Duration>,
    /// Upper bound of the retransmission timeout, 1 s to 120 s (TCP_RTO_MAX_MS, Linux 6.15 and later).
    pub rto_max: Option<Duration>,
    /// Longest delay of an acknowledgement (TCP_DELACK_MAX_US, Linux 6.15 and later).
    pub delayed_ack_max: Option<Duration>,
    /// Largest segment to send and to ask for, bytes of payload and options (TCP_MAXSEG); before connecting.
    pub segment_bytes_max: Option<u32>,
    /// Time after which a connection with unacknowledged data ends (TCP_USER_TIMEOUT).
    pub user_timeout: Option<Duration>,
    /// Time of polling the device before sleeping (SO_BUSY_POLL). More than the system's default needs a privilege.
    pub busy_poll: Option<Duration>,
    /// Own address of connections to 127.0.0.0/8, of the same network; by default 127.0.0.1, which every program has.
    pub loopback_source: Option<Ipv4Addr>,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            nodelay: Some(true),
            congestion_control: None,
            window_clamp: None,
            receive_buffer: None,
            send_buffer: None,
            quickack: None,
            rto_min: None,
            rto_max: None,
            delayed_ack_max: None,
            segment_bytes_max: None,
            user_timeout: None,
            busy_poll: None,
            loopback_source: None,
        }
    }
}

impl SocketOptions {
    /// Returns true if the kernel resets some options, which have to be set again after every read.
    pub(crate) fn wears_off(&self) -> bool {
        self.quickack == Some(true) || self.window_clamp.is_some()
    }

    /// Sets all options.
    pub(crate) fn apply(&self, fd: impl AsFd) -> Result<(), OptionError> {
        let fd = fd.as_fd();
        set("nodelay", self.nodelay.as_ref(), |on| safe::set_tcp_nodelay(fd, *on))?;
        set("congestion_control", self.congestion_control.as_ref(), |name| {
            safe::set_tcp_congestion(fd, name)
        })?;
        set("receive_buffer", self.receive_buffer.as_ref(), |bytes| {
            safe::set_socket_recv_buffer_size(fd, *bytes as usize)
        })?;
        set("send_buffer", self.send_buffer.as_ref(), |bytes| {
            safe::set_socket_send_buffer_size(fd, *bytes as usize)
        })?;
        if let Some(bytes) = self.window_clamp {
            clamp_window(fd, bytes)?;
        }
        set("quickack", self.quickack.as_ref(), |on| safe::set_tcp_quickack(fd, *on))?;
        set("rto_min", micros(self.rto_min).as_ref(), |us| raw(fd, sockopt::TCP_RTO_MIN_US, *us))?;
        set("rto_max", millis(self.rto_max).as_ref(), |ms| raw(fd, sockopt::TCP_RTO_MAX_MS, *ms))?;
        let delayed_ack_max = micros(self.delayed_ack_max);
        set("delayed_ack_max", delayed_ack_max.as_ref(), |us| raw(fd, sockopt::TCP_DELACK_MAX_US, *us))?;
        set("segment_bytes_max", self.segment_bytes_max.as_ref(), |bytes| {
            raw(fd, sockopt::TCP_MAXSEG, *bytes)
        })?;
        set("user_timeout", millis(self.user_timeout).as_ref(), |ms| safe::set_tcp_user_timeout(fd, *ms))?;
        set("busy_poll", micros(self.busy_poll).as_ref(), |us| raw(fd, sockopt::BUSY_POLL, *us))
    }

    /// Removes the options that this system refuses, and returns them. A separate socket serves for the trial. A
    /// minimum RTO or a delay of acknowledgements below the resolution of the kernel's clock becomes the least accepted
    /// one. A socket takes a minimum RTO of at most 200 ms (`do_tcp_setsockopt`); a larger one is left to the route and
    /// the namespace.
    ///
    /// # Errors
    ///
    /// [`OsError`] if the system gives no socket to try them on.
    pub fn fit(&mut self) -> Result<Vec<Misfit>, OsError> {
        let fd = net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let mut misfits = Vec::new();
        while let Err(error) = self.apply(&fd) {
            let mut misfit = Misfit { error, instead: None };
            let least = |option| {
                TIMES_US
                    .into_iter()
                    .find(|&us| sockopt::set(&fd, option, us).is_ok())
                    .map(|us| Duration::from_micros(us.into()))
            };
            match misfit.error.option {
                "nodelay" => self.nodelay = None,
                "congestion_control" => self.congestion_control = None,
                "receive_buffer" => self.receive_buffer = None,
                "send_buffer" => self.send_buffer = None,
                "window_clamp" => self.window_clamp = None,
                "quickack" => self.quickack = None,
                "rto_min" => {
                    // The route or the namespace sets a larger minimum; their limits are higher.
                    self.rto_min = least(sockopt::TCP_RTO_MIN_US).filter(|&least| self.rto_min < Some(least));
                    misfit.instead = self.rto_min;
                }
                "rto_max" => self.rto_max = None,
                "delayed_ack_max" => {
                    let least = least(sockopt::TCP_DELACK_MAX_US);
                    self.delayed_ack_max = least.filter(|&least| Some(least) != self.delayed_ack_max);
                    misfit.instead = self.delayed_ack_max;
                }
                "segment_bytes_max" => self.segment_bytes_max = None,
                "user_timeout" => self.user_timeout = None,
                _ => self.busy_poll = None,
            }
            misfits.push(misfit);
        }
        Ok(misfits)
    }

    /// Sets the options that the kernel resets.
    pub(crate) fn renew(&self, fd: impl AsFd) {
        let fd = fd.as_fd();
        // The system accepted them before. The end of a connection is handled elsewhere.
        if let Some(bytes) = self.window_clamp {
            let _ = sockopt::set(fd, sockopt::TCP_WINDOW_CLAMP, bytes);
        }
        if self.quickack == Some(true) {
            let _ = safe::set_tcp_quickack(fd, true);
        }
    }
}

/// Candidates for the least time, µs: two ticks of the kernel's clock, at 100 to 1000 ticks a second.
const TIMES_US: [u32; 6] = [1_000, 2_000, 4_000, 8_000, 10_000, 20_000];

/// An option that this system refuses with the requested value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// The option, its value and the system's error.
    pub error: OptionError,
    /// The time that is set instead; `None`: the option is not set.
    pub instead: Option<Duration>,
}

fn millis(time: Option<Duration>) -> Option<u32> {
    time.map(|time| u32::try_from(time.as_millis()).unwrap_or(u32::MAX))
}

fn micros(time: Option<Duration>) -> Option<u32> {
    time.map(|time| u32::try_from(time.as_micros()).unwrap_or(u32::MAX))
}

/// Sets the largest window that a TCP socket advertises, bytes ([`SocketOptions::window_clamp`]). The kernel raises it
/// when data arrive.
///
/// # Errors
///
/// [`OptionError`] if the system refuses it.
pub fn clamp_window(fd: impl AsFd, bytes: u32) -> Result<(), OptionError> {
    set("window_clamp", Some(&bytes), |bytes| raw(fd, sockopt::TCP_WINDOW_CLAMP, *bytes))
}

fn raw(fd: impl AsFd, option: (i32, i32), value: u32) -> Result<(), Errno> {
    sockopt::set(fd, option, value).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
}

fn set<T: fmt::Debug>(
    option: &'static str,
    value: Option<&T>,
    apply: impl FnOnce(&T) -> Result<(), Errno>,
) -> Result<(), OptionError> {
    let Some(value) = value else { return Ok(()) };
    apply(value).map_err(|errno| OptionError { option, value: format!("{value:?}"), error: errno.into() })
}

/// Reason for which a socket is not created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SocketError {
    /// The system refuses the socket, its address or the connection.
    #[error("{0}")]
    System(#[from] OsError),
    /// The system refuses an option.
    #[error(transparent)]
    Option(#[from] OptionError),
}

impl From<Errno> for SocketError {
    fn from(errno: Errno) -> Self {
        Self::System(errno.into())
    }
}

fn stream_socket(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    net::socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)
}

/// Creates a socket that connects to `address`. It becomes writable when it is connected or has failed.
pub(crate) fn connecting(address: SocketAddr, options: &SocketOptions) -> Result<OwnedFd, SocketError> {
    let fd = stream_socket(address)?;
    options.apply(&fd)?;
    if let (Some(source), SocketAddr::V4(to)) = (options.loopback_source, address)
        && to.ip().is_loopback()
    {
        // The port is chosen when the connection is made, so that connections to several addresses may share one. Where the
        // loopback has 127.0.0.1 alone, the connection comes from there, as that of any program.
        let _ = raw(&fd, sockopt::IP_BIND_ADDRESS_NO_PORT, 1)
            .and_then(|()| net::bind(&fd, &SocketAddr::from((source, 0))));
    }
    match net::connect(&fd, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(errno) => Err(errno.into()),
    }
}

/// Creates a socket that listens on `address`.
pub(crate) fn listening(address: SocketAddr, options: &SocketOptions) -> Result<OwnedFd, SocketError> {
    let fd = stream_socket(address)?;
    safe::set_socket_reuseaddr(&fd, true)?;
    options.apply(&fd)?;
    net::bind(&fd, &address)?;
    net::listen(&fd, BACKLOG)?;
    Ok(fd)
}

/// Returns the address that a socket is bound to.
pub(crate) fn local_address(fd: impl AsFd) -> Option<SocketAddr> {
    net::getsockname(fd).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_reach_the_kernel_and_refusals_name_the_option() {
        let options = SocketOptions {
            congestion_control: Some("reno".into()),
            window_clamp: Some(20_000),
            receive_buffer: Some(40_000),
            send_buffer: Some(50_000),
            quickack: Some(true),
            user_timeout: Some(Duration::from_millis(1500)),
            ..SocketOptions::default()
        };
        let address = "127.0.0.1:0".parse().unwrap();
        let fd = listening(address, &options).unwrap();
        assert!(safe::tcp_nodelay(&fd).unwrap());
        assert_eq!(safe::tcp_congestion(&fd).unwrap(), "reno");
        assert_eq!(sockopt::value(&fd, sockopt::TCP_WINDOW_CLAMP).unwrap(), 20_000);
        assert_eq!(safe::socket_recv_buffer_size(&fd).unwrap(), 80_000);
        assert_eq!(safe::socket_send_buffer_size(&fd).unwrap(), 100_000);
        assert_eq!(safe::tcp_user_timeout(&fd).unwrap(), 1500);

        let options =
            SocketOptions { congestion_control: Some("nonesuch".into()), ..SocketOptions::default() };
        let Err(SocketError::Option(error)) = listening(address, &options) else { panic!("accepted") };
        assert_eq!((error.option, error.value.as_str()), ("congestion_control", "\"nonesuch\""));
    }

    #[test]
    fn connections_on_the_loopback_come_from_the_chosen_address() {
        let options =
            SocketOptions { loopback_source: Some(Ipv4Addr::new(127, 9, 8, 7)), ..SocketOptions::default() };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let _connection = connecting(listener.local_addr().unwrap(), &options).unwrap();
        let (_, caller) = listener.accept().unwrap();
        assert_eq!(caller.ip(), Ipv4Addr::new(127, 9, 8, 7));
    }

    #[test]
    fn refused_options_are_removed_and_named() {
        let mut options = SocketOptions {
            congestion_control: Some("nonesuch".into()),
            rto_min: Some(Duration::from_micros(1)),
            rto_max: Some(Duration::from_millis(1)),
            user_timeout: Some(Duration::from_millis(1500)),
            ..SocketOptions::default()
        };
        let misfits = options.fit().unwrap();
        let names: Vec<_> = misfits.iter().map(|misfit| misfit.error.option).collect();
        assert_eq!(names, ["congestion_control", "rto_min", "rto_max"]);
        assert_eq!(misfits[1].instead, options.rto_min);
        // An older kernel has no minimum at all.
        assert!(options.rto_min.is_none_or(|least| least >= Duration::from_millis(1)), "{options:?}");
        assert_eq!((options.congestion_control.clone(), options.rto_max), (None, None));
        assert_eq!(options.user_timeout, Some(Duration::from_millis(1500)));
        assert_eq!(options.fit().unwrap(), [], "what is left is accepted");
        let mut long =
            SocketOptions { rto_min: Some(Duration::from_millis(800)), ..SocketOptions::default() };
        assert_eq!(long.fit().unwrap()[0].instead, None, "too long is no reason for the shortest");
        assert_eq!(long.rto_min, None);
    }

    #[test]
    fn the_minimum_rto_is_set_where_the_kernel_has_it() {
        let address = "127.0.0.1:0".parse().unwrap();
        let options = SocketOptions { rto_min: Some(Duration::from_millis(20)), ..SocketOptions::default() };
        match listening(address, &options) {
            Ok(fd) => assert_eq!(sockopt::value(&fd, sockopt::TCP_RTO_MIN_US).unwrap(), 20_000),
            Err(SocketError::Option(error)) => assert_eq!(error.option, "rto_min", "an older kernel"),
            Err(error) => panic!("{error}"),
        }
    }
}
