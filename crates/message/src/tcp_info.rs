//! The kernel's counters of a TCP connection (`struct tcp_info`, include/uapi/linux/tcp.h).

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use crate::sys::sockopt::{self, TCP_INFO_BYTES};

/// The kernel's TCP counters and state of a connection, in its sending direction. Counters start with the connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Segments with payload sent, retransmissions included (`tcpi_data_segs_out`).
    pub segments: u64,
    /// Segments retransmitted, for any reason (`tcpi_total_retrans`).
    pub retransmits: u64,
    /// Retransmission timeouts (`tcpi_total_rto`, Linux 6.7 and later).
    pub timeouts: Option<u64>,
    /// Segments that the peer reported as duplicates (`tcpi_dsack_dups`).
    pub duplicates: u64,
    /// Payload bytes that the peer has acknowledged (`tcpi_bytes_acked`).
    pub acked_bytes: u64,
    /// Payload bytes received (`tcpi_bytes_received`).
    pub received_bytes: u64,
    /// Payload bytes sent and not yet acknowledged, to within one byte (`tcpi_bytes_sent` without `tcpi_bytes_retrans` and
    /// `tcpi_bytes_acked`; Linux 4.19 and later).
    pub in_flight_bytes: u64,
    /// Payload bytes given to the kernel and not sent yet (`tcpi_notsent_bytes`).
    pub unsent_bytes: u64,
    /// Segments that the peer has received (`tcpi_delivered`).
    pub delivered: u64,
    /// Delivered segments with congestion experienced (`tcpi_delivered_ce`).
    pub delivered_ce: u64,
    /// Congestion window, segments (`tcpi_snd_cwnd`).
    pub cwnd: u32,
    /// The peer's window, bytes (`tcpi_snd_wnd`, Linux 6.2 and later).
    pub peer_window_bytes: Option<u32>,
    /// Payload of a full segment, bytes (`tcpi_snd_mss`).
    pub mss: u32,
    /// Smoothed round-trip time; zero before the first measurement (`tcpi_rtt`).
    pub rtt: Duration,
    /// Smallest round-trip time measured; `None` before the first measurement (`tcpi_min_rtt`).
    pub rtt_min: Option<Duration>,
    /// Current retransmission timeout (`tcpi_rto`).
    pub rto: Duration,
}

impl TcpInfo {
    /// Reads the kernel's counters of a TCP socket.
    ///
    /// # Errors
    ///
    /// The system's error, for example if the socket is not a TCP socket.
    pub fn of(fd: impl AsFd) -> io::Result<Self> {
        let mut bytes = [0; TCP_INFO_BYTES];
        let known = sockopt::tcp_info(fd, &mut bytes)?.min(TCP_INFO_BYTES);
        Ok(Self::parse(&bytes[..known]))
    }

    /// Parses the kernel's structure. New fields are only added at its end, so an older kernel's is shorter.
    fn parse(known: &[u8]) -> Self {
        let field = |at: usize, size: usize| {
            let bytes = known.get(at..at + size)?;
            Some(match *bytes {
                [a, b] => u16::from_ne_bytes([a, b]).into(),
                [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
                _ => u64::from_ne_bytes(bytes.try_into().ok()?),
            })
        };
        let word = |at| field(at, 4).unwrap_or_default();
        let long = |at| field(at, 8).unwrap_or_default();
        let micros = |at| Duration::from_micros(word(at));
        // On the side that connected, the acknowledged bytes include its SYN.
        let in_flight = long(200).saturating_sub(long(208)).saturating_sub(long(120));
        Self {
            segments: word(156),
            retransmits: word(100),
            timeouts: field(240, 2),
            duplicates: word(216),
            acked_bytes: long(120),
            received_bytes: long(128),
            // Without a segment in flight (`tcpi_unacked`) there is no byte in flight.
            in_flight_bytes: if word(24) == 0 { 0 } else { in_flight.max(1) },
            unsent_bytes: word(144),
            delivered: word(192),
            delivered_ce: word(196),
            cwnd: word(80) as u32,
            peer_window_bytes: field(228, 4).map(|bytes| bytes as u32),
            mss: word(16) as u32,
            rtt: micros(68),
            // The kernel's value before the first measurement is the largest number.
            rtt_min: Some(word(148))
                .filter(|&us| us != 0 && us != u64::from(u32::MAX))
                .map(Duration::from_micros),
            rto: micros(8),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn sent_bytes_are_counted_and_other_sockets_have_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        for _ in 0..3 {
            client.write_all(&[7; 1000]).unwrap();
            server.read_exact(&mut [0; 1000]).unwrap();
            server.write_all(b"more").unwrap();
            client.read_exact(&mut [0; 4]).unwrap();
        }
        let (sent, received) = (TcpInfo::of(&client).unwrap(), TcpInfo::of(&server).unwrap());
        // The answer to the third message acknowledged it.
        assert_eq!((sent.segments, sent.acked_bytes, sent.received_bytes), (3, 3001, 12));
        assert_eq!((received.received_bytes, received.retransmits), (3000, 0));
        assert!(sent.cwnd >= 10 && sent.mss > 1000 && sent.rto > sent.rtt, "{sent:?}");
        assert!(sent.rtt_min.is_some_and(|least| least <= Duration::from_secs(1)), "{sent:?}");
        assert_eq!((sent.in_flight_bytes, sent.unsent_bytes), (0, 0));
        assert!(TcpInfo::of(std::os::unix::net::UnixStream::pair().unwrap().0).is_err());
    }

    #[test]
    fn waiting_bytes_are_in_flight_or_still_unsent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.set_nonblocking(true).unwrap();
        let mut given = 0;
        while let Ok(bytes) = client.write(&[7; 100_000]) {
            given += bytes as u64;
        }
        // The peer reads nothing: its kernel takes what it has room for, and the rest waits here.
        let info = TcpInfo::of(&client).unwrap();
        let left = info.in_flight_bytes + info.unsent_bytes + info.acked_bytes;
        assert!(info.unsent_bytes > 0 && (given..=given + 1).contains(&left), "{given} {info:?}");
        io::copy(&mut Read::by_ref(&mut server).take(given), &mut io::sink()).unwrap();
        server.write_all(&[1]).unwrap();
        client.set_nonblocking(false).unwrap();
        client.read_exact(&mut [0]).unwrap();
        let info = TcpInfo::of(&client).unwrap();
        assert_eq!((info.in_flight_bytes, info.unsent_bytes), (0, 0), "{info:?}");
    }

    #[test]
    fn an_older_kernels_shorter_answer_lacks_what_is_newer() {
        let mut bytes = [0xff; TCP_INFO_BYTES];
        bytes[240..242].copy_from_slice(&5_u16.to_ne_bytes());
        bytes[100..104].copy_from_slice(&9_u32.to_ne_bytes());
        let new = TcpInfo::parse(&bytes);
        assert_eq!((new.timeouts, new.retransmits, new.rtt_min), (Some(5), 9, None));
        let old = TcpInfo::parse(&bytes[..192]);
        assert_eq!(
            (old.timeouts, old.retransmits, old.delivered_ce, old.peer_window_bytes),
            (None, 9, 0, None)
        );
    }
}
