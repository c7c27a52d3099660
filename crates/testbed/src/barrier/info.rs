//! What the kernel counts of a connection (`struct tcp_info` of `linux/tcp.h`).

use std::io;
use std::os::fd::AsRawFd;

use serde::{Deserialize, Serialize};

/// Some of `struct tcp_info`, as sums since the connection began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TcpInfo {
    /// Segments with payload sent, retransmissions included.
    pub segments: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Time-outs.
    pub timeouts: u64,
    /// Segments that the receiver said it had already (RFC 2883).
    pub duplicates: u64,
    /// Payload bytes acknowledged.
    pub acked_bytes: u64,
    /// Congestion window now, segments.
    pub cwnd: u64,
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u64,
    /// Smallest round-trip time of the last minutes, microseconds.
    pub rtt_min_us: u64,
}

/// Bytes of the structure that are asked for; older kernels fill in fewer, the rest stays zero.
const BYTES: usize = 256;
/// Where the fields stand.
mod at {
    pub(super) const RTT: usize = 68;
    pub(super) const CWND: usize = 80;
    pub(super) const TOTAL_RETRANSMITS: usize = 100;
    pub(super) const BYTES_ACKED: usize = 120;
    pub(super) const RTT_MIN: usize = 148;
    pub(super) const DATA_SEGMENTS_OUT: usize = 156;
    pub(super) const DSACK_DUPLICATES: usize = 216;
    pub(super) const TOTAL_RTO: usize = 240;
}

impl TcpInfo {
    /// Of a connection.
    ///
    /// # Errors
    /// If it is none.
    pub fn of(socket: &impl AsRawFd) -> io::Result<Self> {
        let mut info = [0_u8; BYTES];
        let mut bytes = BYTES as libc::socklen_t;
        // SAFETY: the kernel writes at most as many bytes as it is told there are.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                info.as_mut_ptr().cast(),
                &raw mut bytes,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let number = |at: usize, bytes: usize| {
            let mut word = [0; 8];
            word[..bytes].copy_from_slice(&info[at..at + bytes]);
            u64::from_ne_bytes(word)
        };
        Ok(Self {
            segments: number(at::DATA_SEGMENTS_OUT, 4),
            retransmits: number(at::TOTAL_RETRANSMITS, 4),
            timeouts: number(at::TOTAL_RTO, 2),
            duplicates: number(at::DSACK_DUPLICATES, 4),
            acked_bytes: number(at::BYTES_ACKED, 8),
            cwnd: number(at::CWND, 4),
            rtt_us: number(at::RTT, 4),
            rtt_min_us: number(at::RTT_MIN, 4),
        })
    }

    /// What was counted since `earlier`; windows and times stay those of now.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            segments: self.segments.saturating_sub(earlier.segments),
            retransmits: self.retransmits.saturating_sub(earlier.retransmits),
            timeouts: self.timeouts.saturating_sub(earlier.timeouts),
            duplicates: self.duplicates.saturating_sub(earlier.duplicates),
            acked_bytes: self.acked_bytes.saturating_sub(earlier.acked_bytes),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_kernel_counts_what_was_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        let before = TcpInfo::of(&sender).unwrap();
        sender.write_all(&[7; 5000]).unwrap();
        receiver.read_exact(&mut [0; 5000]).unwrap();
        receiver.write_all(&[1]).unwrap();
        // The byte carries the acknowledgement of all that was sent.
        sender.read_exact(&mut [0]).unwrap();
        let info = TcpInfo::of(&sender).unwrap().since(before);
        assert_eq!((info.acked_bytes, info.retransmits, info.timeouts), (5000, 0, 0));
        assert!(info.segments > 0 && info.cwnd > 0 && info.rtt_us > 0, "{info:?}");
    }
}
