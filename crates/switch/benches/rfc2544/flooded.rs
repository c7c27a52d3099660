//! An offered load at one port, of frames that are flooded or whose sources are new: RFC 2889 sections 5.6 and 5.8.
//!
//! Ports in memory copy each frame in and out, and its copies as well. That time is in all figures.

use fanin_switch::{MemoryPorts, Switch};
use fanin_units::{Duration, Instant};

use crate::offered::{Clock, Count, RING_FRAMES, put_stamp};

/// Frames that are handed to the switch at once: those of a round.
const AT_ONCE: u64 = fanin_switch::BURST as u64;

/// Offers frames at port 1 at `rate` a second, one after the other and again from the first, `count` of them. Each must leave by
/// all ports of `outputs`.
pub(crate) fn offer(
    switch: &mut Switch<MemoryPorts>,
    frames: &mut [Vec<u8>],
    outputs: &[usize],
    rate: f64,
    count: u64,
) -> Count {
    let mut seen = Count::new();
    let mut clock = Clock::start();
    let (mut due, mut received) = (0, 0);
    let began = Instant::START + Duration::from_secs(1);
    while received + seen.lost < count {
        let now_ns = clock.now_ns();
        due = ((now_ns as f64 * 1e-9 * rate) as u64).clamp(due, count);
        let waiting = due - received - seen.lost;
        // As in a network card's ring, further frames are lost.
        seen.lost += waiting.saturating_sub(RING_FRAMES);
        for _ in 0..waiting.min(RING_FRAMES).min(AT_ONCE) {
            let number = received + seen.lost;
            let frame = &mut frames[(number % frames.len() as u64) as usize];
            put_stamp(frame, (number as f64 / rate * 1e9) as u64);
            assert!(switch.driver_mut().inject(1, frame), "packet memory");
            received += 1;
        }
        switch.poll(began + Duration::from_nanos(now_ns), true);
        let now_ns = clock.now_ns();
        for &output in outputs {
            while let Some(frame) = switch.driver_mut().take(output) {
                seen.note_sent(&frame, now_ns);
            }
        }
    }
    // Frames that the last round has not sent.
    for _ in 0..4 {
        let now_ns = clock.now_ns();
        switch.poll(began + Duration::from_nanos(now_ns), true);
        for &output in outputs {
            while let Some(frame) = switch.driver_mut().take(output) {
                seen.note_sent(&frame, now_ns);
            }
        }
    }
    (seen.offered, seen.elapsed_ns, seen.paused_ns) = (due, clock.now_ns(), clock.paused_ns);
    assert_eq!(seen.sent, received * outputs.len() as u64, "a frame leaves by each output");
    seen
}
