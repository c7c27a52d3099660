//! Two TCP endpoints over a channel that loses a tenth of all segments, from SYN to TIME-WAIT.
//!
//! `cargo run -p fanin-tcp --example lossy_channel` prints each segment and what became of it.

#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::collections::VecDeque;

use fanin_tcp::{Config, ConnectionState, Flags, Segment, TcpConnection};
use fanin_units::{Duration, Instant};

fn main() {
    let mut ends = [TcpConnection::new(Config::linux_6()), TcpConnection::new(Config::linux_6())];
    ends[1].listen().expect("a new connection");
    ends[0].connect().expect("a new connection");
    ends[0].send(20_000).expect("a connection that is being opened");
    let delay = Duration::from_millis(5);
    let mut channel: VecDeque<(Instant, usize, Segment)> = VecDeque::new();
    let (mut now, mut count) = (Instant::START, 0);
    loop {
        for (side, end) in ends.iter_mut().enumerate() {
            // End 0 closes when its window is full for the first time, end 1 when end 0 has closed.
            if end.state() == ConnectionState::CloseWait || (side == 0 && count > 4) {
                end.close();
            }
            end.read(u64::MAX);
            while let Some(segment) = end.poll_transmit(now) {
                count += 1;
                let fate = if count % 10 == 3 { "lost" } else { "" };
                println!("{now} {side} {:?} {} {fate}", end.state(), describe(&segment));
                if fate.is_empty() {
                    channel.push_back((now + delay, 1 - side, segment));
                }
            }
        }
        let deadlines = ends.each_ref().map(|end| end.poll_deadline().unwrap_or(Instant::FAR_FUTURE));
        let arrival = channel.front().map_or(Instant::FAR_FUTURE, |next| next.0);
        now = arrival.min(deadlines[0]).min(deadlines[1]);
        if now == Instant::FAR_FUTURE {
            break;
        }
        match channel.front() {
            Some(&(at, side, segment)) if at == now => {
                channel.pop_front();
                ends[side].handle_segment(now, &segment);
            }
            _ => ends.iter_mut().for_each(|end| end.handle_deadline(now)),
        }
    }
    println!("end 1 received {} bytes; both ends are {:?}", ends[1].received(), ends[0].state());
}

fn describe(segment: &Segment) -> String {
    let names = [(Flags::SYN, "SYN"), (Flags::FIN, "FIN"), (Flags::RST, "RST"), (Flags::ACK, "ACK")];
    let flags: Vec<&str> =
        names.iter().filter(|(flag, _)| segment.flags.contains(*flag)).map(|(_, name)| *name).collect();
    format!("{} {}..{} ack {}", flags.join("+"), segment.offset, segment.end(), segment.ack)
}
