//! The burst towards one collector: the bytes that the techniques allow in flight at once.

use fanin_scenario::{Scenario, WindowState};
use fanin_units::{Bytes, Packets};

use crate::derived::{Derived, brief};
use crate::event_burst::{Burst, EventBurst};
use crate::system::SystemFigures;
use crate::techniques::TECHNIQUES;

/// Computes the burst towards one collector: the least of all limits of the techniques in force.
pub(crate) fn burst(s: &Scenario, system: &SystemFigures) -> Burst {
    let event = EventBurst::new(system);
    let EventBurst { frame, answers, events, .. } = event;
    let answer = system.answer;
    let all = answer.buffered * answers * events;
    let whole = Derived::new(
        "burst",
        all,
        "events at once × answers × frames of an answer",
        format!("{events} × {answers} × {}", brief(answer.buffered)),
        "thesis §4.2.2",
    );
    let t = &s.transport;
    // Windows that grow start with this size. Fixed windows are limits of their own.
    let grows = !TECHNIQUES.iter().any(|technique| (technique.fixes_windows)(s));
    let first = match t.window_state {
        WindowState::Cold => t.initial_window.get(),
        WindowState::Warm => t.receive_window.get() / system.segments.mss(),
    };
    let first = frame.checked_mul(first).unwrap_or(Bytes::MAX).min(answer.buffered * events);
    let first = if grows { first * answers } else { all };
    let mut limits = vec![Burst {
        at_once: first,
        is_unshaped: true,
        varies_with_size: true,
        ..Burst::limited(whole, event.packets(), if events > 1 { "all units at once" } else { "one event" })
    }];
    limits.extend(TECHNIQUES.iter().filter_map(|technique| (technique.limit)(s, &event)));
    let marks = t.ecn && s.tor.ecn.mode.marks();
    if TECHNIQUES.iter().any(|technique| (technique.is_signalled)(s)) || (grows && marks) {
        // A signal takes effect after a round trip. Until then slow start doubles the first windows once.
        let frames = Derived::new(
            "burst",
            all.min(first.saturating_add(first)),
            "flows × first window × 2, at most the answers",
            format!("2 × {}", brief(first)),
            "RFC 5681 §3.1, RFC 8257 §3",
        );
        let packets = Packets::new(frames.value.div_ceil(frame));
        limits.push(Burst::limited(frames, packets, "segments sent before the first signal"));
    }
    let receive = t.receive_window.get().div_ceil(system.segments.mss());
    let formula = "flows × receive window in frames";
    let windows = event.with_windows(receive, formula, "RFC 9293 §3.8", "receive windows");
    limits.push(Burst { at_once: windows.at_once.min(first), ..windows });
    limits.into_iter().min_by_key(|limit| limit.frames.value).expect("an event is always a limit")
}
