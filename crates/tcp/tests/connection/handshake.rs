//! Set-up: the handshake, the agreed options, and calls and segments that come too early.

use fanin_tcp::ConnectionState as S;
use fanin_tcp::{CloseReason, Config, Flags, SynOptions, TcpConnection, WrongState};
use fanin_units::{Duration, Instant};

use crate::pair::{Pair, segment};

#[test]
fn three_way_handshake() {
    let mut pair = Pair::linux();
    pair.open();
    assert_eq!(pair.states(), [S::SynSent, S::Listen]);
    pair.settle();
    assert_eq!(pair.states(), [S::Established; 2]);
    let flags: Vec<Flags> = pair.segments.iter().map(|(_, segment)| segment.flags).collect();
    let stamped = Flags::TIMESTAMP;
    assert_eq!(flags, [Flags::SYN | stamped, Flags::SYN | Flags::ACK | stamped, Flags::ACK | stamped]);
    for end in &pair.ends {
        assert_eq!(end.config(), &Config::linux_6());
        assert_eq!(end.endpoint().stats(end.config()).srtt, Duration::from_micros(200), "the first sample");
    }
}

#[test]
fn data_written_before_the_handshake_follows_it() {
    let mut pair = Pair::linux();
    pair.open();
    pair.send(0, 5_000);
    assert_eq!(pair.segments.len(), 1, "only the SYN");
    pair.settle();
    assert_eq!(pair.ends[1].received(), 5_000);
    assert_eq!(pair.segments[2].1.payload, 1448, "the ACK of the handshake carries data");
}

#[test]
fn ends_agree_on_what_both_can() {
    let plain = Config::ns3_newreno();
    let full = Config { ecn: true, ..Config::linux_6() };
    for configs in [[plain.clone(), full.clone()], [full, plain]] {
        let mut pair = Pair::new(configs);
        pair.open();
        pair.send(0, 20_000);
        pair.settle();
        for end in &pair.ends {
            let config = end.config();
            assert_eq!((config.mss, config.timestamps, config.sack, config.ecn), (1460, false, false, false));
        }
        assert_eq!(pair.ends[1].received(), 20_000);
    }
    let with_ecn = Config { ecn: true, ..Config::linux_6() };
    let mut pair = Pair::new([with_ecn.clone(), with_ecn]);
    pair.open();
    pair.settle();
    assert!(pair.ends.iter().all(|end| end.config().ecn));
    assert!(pair.segments[0].1.flags.contains(Flags::ECE | Flags::CWR));
    assert!(!pair.segments[1].1.flags.contains(Flags::CWR), "ECE alone agrees");
}

#[test]
fn simultaneous_open() {
    let mut pair = Pair::linux();
    pair.ends[0].connect().unwrap();
    pair.ends[1].connect().unwrap();
    pair.drain();
    pair.settle();
    assert_eq!(pair.states(), [S::Established; 2]);
    for history in &pair.history {
        assert_eq!(history, &[S::Closed, S::SynSent, S::SynReceived, S::Established]);
    }
    pair.send(0, 3_000);
    pair.send(1, 4_000);
    pair.settle();
    assert_eq!((pair.ends[1].received(), pair.ends[0].received()), (3_000, 4_000));
}

#[test]
fn close_before_anything_is_established() {
    let mut pair = Pair::linux();
    pair.ends[0].connect().unwrap();
    pair.ends[0].close();
    pair.ends[1].listen().unwrap();
    pair.ends[1].close();
    assert_eq!(pair.states(), [S::Closed; 2]);

    // In SYN-RECEIVED the FIN waits for the handshake.
    let mut pair = Pair::linux();
    pair.open();
    while pair.ends[1].state() != S::SynReceived {
        assert!(pair.step(Instant::FAR_FUTURE));
    }
    pair.close(1);
    pair.settle();
    assert_eq!(pair.states(), [S::CloseWait, S::FinWait2]);
    assert_eq!(pair.history[1], [S::Closed, S::Listen, S::SynReceived, S::FinWait1, S::FinWait2]);
}

#[test]
fn a_syn_to_a_closed_port_is_refused() {
    let mut pair = Pair::linux();
    pair.ends[0].connect().unwrap();
    pair.drain();
    pair.settle();
    assert_eq!(pair.ends[0].state(), S::Closed);
    assert_eq!(pair.ends[0].close_reason(), Some(CloseReason::Refused));
    assert!(pair.last().flags.contains(Flags::RST | Flags::ACK));
}

#[test]
fn a_second_syn_gets_a_second_answer() {
    let mut end = TcpConnection::new(Config::linux_6());
    end.listen().unwrap();
    let syn = segment(0, 0, Flags::SYN);
    for _ in 0..2 {
        end.handle_segment(Instant::START, &syn);
        let answer = end.poll_transmit(Instant::START).expect("a SYN-ACK");
        assert!(answer.flags.contains(Flags::SYN | Flags::ACK));
        assert_eq!(end.state(), S::SynReceived);
    }
    // An ACK of bytes that were never sent does not establish it.
    end.handle_segment(Instant::START, &segment(0, 5, Flags::ACK));
    let reset = end.poll_transmit(Instant::START).expect("a RST");
    assert_eq!((reset.offset, reset.flags, end.state()), (5, Flags::RST, S::SynReceived));
}

#[test]
fn stray_segments_before_the_handshake() {
    let mut pair = Pair::linux();
    pair.ends[1].listen().unwrap();
    pair.inject(1, segment(0, 0, Flags::RST));
    assert!(pair.segments.is_empty());
    pair.inject(1, segment(7, 9, Flags::ACK));
    assert_eq!((pair.last().offset, pair.last().flags), (9, Flags::RST));
    assert_eq!(pair.ends[1].state(), S::Listen);

    // In SYN-SENT an ACK of unsent data is answered with a RST, and a RST needs an ACK to count.
    let mut pair = Pair::linux();
    pair.ends[0].connect().unwrap();
    pair.drain();
    pair.inject(0, segment(0, 5, Flags::SYN | Flags::ACK));
    assert_eq!((pair.last().offset, pair.last().flags), (5, Flags::RST));
    pair.inject(0, segment(0, 0, Flags::RST));
    pair.inject(0, segment(0, 0, Flags::ACK));
    assert_eq!(pair.ends[0].state(), S::SynSent);
    pair.inject(0, segment(0, 0, Flags::RST | Flags::ACK));
    assert_eq!(pair.ends[0].close_reason(), Some(CloseReason::Refused));
}

#[test]
fn calls_in_the_wrong_state() {
    let mut end = TcpConnection::new(Config::linux_6());
    assert_eq!(end.send(1), Err(WrongState { state: S::Closed, call: "send" }));
    end.listen().unwrap();
    assert_eq!(end.listen(), Err(WrongState { state: S::Listen, call: "listen" }));
    end.connect().unwrap();
    assert_eq!(end.connect().unwrap_err().to_string(), "cannot connect in state SynSent");
    end.send(10).unwrap();
    end.close();
    assert!(end.send(1).is_err());
    end.connect().unwrap();
    assert_eq!(end.endpoint().written(), 0, "a new connection");
}

#[test]
fn a_lost_syn_leaves_no_sample() {
    let config = Config { timestamps: false, mss: 1460, ..Config::linux_6() };
    let mut pair = Pair::new([config.clone(), config]);
    pair.lost = vec![0];
    pair.open();
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.states(), [S::Established; 2]);
    let stats = pair.ends[0].endpoint().stats(pair.ends[0].config());
    assert_eq!((stats.srtt, stats.rto), (Duration::ZERO, Duration::from_secs(3)), "RFC 6298 §5.7");
    // The SYN-ACK was sent once.
    assert!(pair.ends[1].endpoint().stats(pair.ends[1].config()).srtt > Duration::ZERO);
}

#[test]
fn options_of_a_foreign_syn() {
    let mut end = TcpConnection::new(Config::linux_6());
    end.listen().unwrap();
    let mut syn = segment(0, 0, Flags::SYN);
    syn.set_syn_options(SynOptions { mss: 1000, window_scale: None, sack_permitted: true });
    end.handle_segment(Instant::START, &syn);
    let answer = end.poll_transmit(Instant::START).expect("a SYN-ACK");
    assert_eq!(answer.syn_options(), SynOptions { mss: 1460, window_scale: None, sack_permitted: true });
    assert!(!answer.flags.contains(Flags::TIMESTAMP));
    assert_eq!((end.config().mss, end.config().receive_window), (1000, 65_535));
}
