//! Two TCP endpoints over a channel that loses a tenth of all segments, from SYN to TIME-WAIT.
//!
//! `cargo run -p fanin-tcp --example lossy_channel` prints each segment and its fate.

#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::collections::VecDeque;

use fanin_tcp::{Config, ConnectionState, TcpConnection, WrongState};
use fanin_units::{Duration, Instant};

fn main() -> Result<(), WrongState> {
    let mut ends = [TcpConnection::new(Config::linux_6()), TcpConnection::new(Config::linux_6())];
    ends[1].listen()?;
    ends[0].connect()?;
    ends[0].send(20_000)?;
    let mut channel = VecDeque::new();
    let (mut now, mut count) = (Instant::START, 0);
    loop {
        for (side, end) in ends.iter_mut().enumerate() {
            // End 0 closes once it has queued its data, end 1 once end 0 has closed.
            if matches!(
                (side, end.state()),
                (0, ConnectionState::Established) | (1, ConnectionState::CloseWait)
            ) {
                end.close();
            }
            end.read(u64::MAX);
            end.handle_deadline(now);
            while let Some(segment) = end.poll_transmit(now) {
                count += 1;
                let is_lost = count % 10 == 3;
                println!("{now}: end {side} {segment}{}", if is_lost { ", lost" } else { "" });
                if !is_lost {
                    channel.push_back((now + Duration::from_millis(5), 1 - side, segment));
                }
            }
        }
        let arrival = channel.front().map(|&(at, ..)| at);
        let deadlines = ends.each_ref().map(TcpConnection::poll_deadline);
        let Some(next) = deadlines.into_iter().chain([arrival]).flatten().min() else { break };
        now = next;
        while channel.front().is_some_and(|&(at, ..)| at == now)
            && let Some((_, side, segment)) = channel.pop_front()
        {
            ends[side].handle_segment(now, &segment);
        }
    }
    println!("end 1 received {} bytes; both ends are {:?}", ends[1].received(), ends[0].state());
    Ok(())
}
