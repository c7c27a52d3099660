//! The kernel's TCP counters of a connection, in the form that a sender writes to its result file.

use std::io;
use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};

/// TCP counters since the connection began, and its present window and round-trip times, from
/// [`fanin_message::TcpInfo`]. Counters that an older kernel lacks are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TcpCounts {
    /// Segments with payload sent, retransmissions included.
    pub segments: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Number of retransmission timeouts; zero before Linux 6.7.
    pub timeouts: u64,
    /// Segments that the receiver reported as duplicates (D-SACK, RFC 2883).
    pub duplicates: u64,
    /// Payload bytes acknowledged.
    pub acked_bytes: u64,
    /// Congestion window, segments.
    pub cwnd: u64,
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u64,
    /// Minimum round-trip time over the kernel's `tcp_min_rtt_wlen`, microseconds; `None` before the first sample.
    pub rtt_min_us: Option<u64>,
}

impl TcpCounts {
    /// Reads the counters of a connection.
    ///
    /// # Errors
    /// If the socket has no TCP connection.
    pub fn of(socket: &impl AsFd) -> io::Result<Self> {
        let info = fanin_message::TcpInfo::of(socket)?;
        Ok(Self {
            segments: info.segments,
            retransmits: info.retransmits,
            timeouts: info.timeouts.unwrap_or_default(),
            duplicates: info.duplicates,
            acked_bytes: info.acked_bytes,
            cwnd: info.cwnd.into(),
            rtt_us: info.rtt.as_micros() as u64,
            rtt_min_us: info.rtt_min.map(|least| least.as_micros() as u64),
        })
    }

    /// Returns the counts since `earlier`, with the window and round-trip times of `self`.
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
        let before = TcpCounts::of(&sender).unwrap();
        sender.write_all(&[7; 5000]).unwrap();
        receiver.read_exact(&mut [0; 5000]).unwrap();
        receiver.write_all(&[1]).unwrap();
        // The byte carries the acknowledgement of all that was sent.
        sender.read_exact(&mut [0]).unwrap();
        let info = TcpCounts::of(&sender).unwrap().since(before);
        assert_eq!((info.acked_bytes, info.retransmits, info.timeouts), (5000, 0, 0));
        assert!(info.segments > 0 && info.cwnd > 0 && info.rtt_us > 0, "{info:?}");
    }
}
