use fanin_units::Duration;
use proptest::prelude::*;

use super::*;

const CONFIG: PacedCreditsConfig = PacedCreditsConfig {
    rate: Rate::new(1_000_000_000),
    segment: Bytes::new(1_448),
    frame: Bytes::new(1_538),
    fragment: Bytes::ZERO,
    header: crate::answer_bytes(0, Bytes::ZERO),
};
/// 12 fragments of 1 kB: nine frames, 12 832 B on the wire, 102.656 us.
const ANSWER_PS: u64 = 102_656_000;

fn at(micros: u64) -> Instant {
    Instant::new(micros * 1_000_000)
}

/// Answers every request of 12 fragments of 1 kB, one after the other on the link, for `count` requests. The delay of each is
/// `delay(number)` microseconds. Returns the state and the time.
fn served(count: usize, delay: impl Fn(usize) -> u64) -> (PacedCredits, Instant) {
    let mut paced = PacedCredits::new(CONFIG, 1);
    let (mut now, mut link_free) = (at(0), at(0));
    // Answers in preparation, and those on the link.
    let mut prepared = BTreeMap::new();
    let mut sent = 0;
    let mut answered = 0;
    while answered < count {
        while sent < count && paced.may_send(now) {
            let credit = paced.on_sent(now, 0, 12, RelativeSize::default());
            prepared.insert((Instant::new(now.get() + delay(sent) * 1_000_000), sent), (now, credit));
            sent += 1;
        }
        // The link takes answers in the order in which they are ready.
        let next = prepared
            .first_key_value()
            .map(|(&(ready, _), _)| Instant::new(link_free.max(ready).get() + ANSWER_PS));
        let may = paced.poll_deadline().filter(|_| sent < count);
        now = [next, may].into_iter().flatten().min().unwrap().max(now);
        if next.is_some_and(|end| end <= now) {
            let (_, (asked, credit)) = prepared.pop_first().unwrap();
            link_free = now;
            answered += 1;
            paced.on_answer(now, 0, 12, credit, asked, (Bytes::new(12_000), RelativeSize::default()));
        }
        paced.check_invariants();
    }
    (paced, now)
}

#[test]
fn requests_keep_the_link_busy_and_little_more() {
    let (paced, end) = served(100, |_| 400);
    // One round trip for the first request, and one before the first answer at full pace.
    let busy = 100 * ANSWER_PS / 1_000_000;
    assert!(end >= at(busy + 400) && end <= at(busy + 3 * 400), "ended at {end:?}");
    // The round trip at the link's rate is 50 kB, delays do not vary, and an answer has 12.8 kB.
    let window = paced.window().get();
    assert!((62_700..=62_950).contains(&window), "a window of {window} B");
    // The request that fills the window leaves half an answer early, when the oldest is assumed to have arrived.
    assert!(paced.outstanding_max().get() <= window + 2 * 12_832, "{}", paced.outstanding_max());
    assert_eq!((paced.outstanding(), paced.overdue(), paced.losses()), (Bytes::ZERO, Bytes::ZERO, 0));
}

#[test]
fn late_answers_cause_reminders_while_losses_are_rare() {
    let (mut paced, now) = served(100, |_| 400);
    let late = paced.late_after().unwrap();
    assert!(late >= Duration::from_micros(4 * 400), "{late:?}");
    let mut reminders = Vec::new();
    let mut credits = Vec::new();
    for _ in 0..4 {
        let credit = paced.on_sent(now, 0, 12, RelativeSize::default());
        credits.push(credit);
        reminders.push(paced.on_late(0, credit));
    }
    // Half of an answer of 12.8 kB lowers the share of a window of 62.8 kB by a tenth.
    assert_eq!(reminders, [3, 0, 0, 0]);
    assert_eq!(paced.losses(), 1);
    let share = paced.share;
    // Overdue later, the first one lowers it no more; the others do.
    let end = now.checked_add(paced.overdue_after()).unwrap();
    paced.expire(end);
    assert_eq!(paced.losses(), 4);
    assert!(paced.share < share);
    for credit in credits {
        let answer = (Bytes::new(12_000), RelativeSize::default());
        paced.on_answer(end, 0, 12, credit, now, answer);
    }
    paced.check_invariants();
    // A fragment of three segments needs no second one.
    for (segments, requests) in [(1, 3), (2, 2), (3, 1), (40, 1)] {
        let mut paced = served(20, |_| 400).0;
        paced.expect(0, Bytes::new(segments * 1_448));
        let credit = paced.on_sent(end, 0, 1, RelativeSize::default());
        assert_eq!(paced.on_late(0, credit), requests, "{segments} segments");
    }
}

#[test]
fn with_a_known_size_the_first_requests_leave_at_the_pace_of_the_link() {
    let config = PacedCreditsConfig { fragment: Bytes::new(1_000), ..CONFIG };
    let mut paced = PacedCredits::new(config, 1);
    let mut now = at(0);
    for number in 0..20 {
        assert!(paced.may_send(now), "request {number} waits at {now:?}");
        let credit = paced.on_sent(now, 0, 12, RelativeSize::default());
        assert_eq!(credit.bytes(), Bytes::new(12_832));
        assert!(!paced.may_send(now), "the pace is that of the link");
        now = paced.poll_deadline().unwrap();
        assert_eq!(now.get(), (number + 1) * ANSWER_PS);
    }
    // Without any answer, the window ends after 10 ms on the link.
    while paced.may_send(now) && now < at(50_000) {
        paced.on_sent(now, 0, 12, RelativeSize::default());
        now = Instant::new(now.get() + ANSWER_PS);
    }
    assert!((at(10_000)..at(10_300)).contains(&now), "requests ended at {now:?}");
}

#[test]
fn the_first_answer_of_an_event_corrects_its_outstanding_requests() {
    for (bytes, wire) in [(36_000, 38_272), (3_600, 3_892)] {
        let (mut paced, now) = served(100, |_| 400);
        let (event, other) = (RelativeSize::of_event(1), RelativeSize::of_event(2));
        let [first, second, third] = [event, event, other].map(|size| paced.on_sent(now, 0, 12, size));
        let before = paced.next;
        let answer = (Bytes::new(bytes), event);
        let size = paced.on_answer(Instant::new(now.get() + 1), 0, 12, first, now, answer);
        assert!((size.factor().unwrap() - bytes as f64 / 12_000.0).abs() < 1e-9);
        // The second request is of the same event, the third is not.
        assert_eq!((paced.predicted(second).get(), paced.predicted(third).get()), (wire, 12_832));
        assert_eq!(paced.outstanding().get(), wire + 12_832);
        paced.check_invariants();
        // Both answers of the event were mispredicted by as much. A byte takes 8 ns.
        let later = paced.next.get() as i64 - before.get() as i64;
        assert_eq!(later, 2 * (wire as i64 - 12_832) * 8_000);
        // The second answer is as predicted.
        paced.on_answer(Instant::new(now.get() + 2), 0, 12, second, now, (Bytes::new(bytes), size));
        assert_eq!(paced.next.get() as i64 - before.get() as i64, later);
    }
}

#[test]
fn after_a_pause_half_an_answer_is_requested_early() {
    let (mut paced, end) = served(100, |_| 400);
    let start = Instant::new(end.get() + 10_000_000_000);
    assert!(paced.may_send(start));
    paced.on_sent(start, 0, 12, RelativeSize::default());
    // No answer overtook another, so that the least burst counts.
    let next = paced.poll_deadline().unwrap();
    let wait = next.get() - start.get();
    assert!(wait.abs_diff(ANSWER_PS / 2) < 1_000_000, "the next request waits for {wait} ps");
    assert!(!paced.may_send(Instant::new(next.get() - 1)) && paced.may_send(next));
}

#[test]
fn delays_that_vary_are_hidden_by_more_requests() {
    let count = 4_000;
    let mut random = crate::Random::new(1);
    let delays: Vec<u64> = (0..count).map(|_| 200 + u64::from(random.below(400))).collect();
    let (paced, end) = served(count, |number| delays[number]);
    // The first answers come alone.
    let (busy, idle) = (count as u64 * ANSWER_PS / 1_000_000, 4 * 700 + count as u64 / 2);
    assert!(end <= at(busy + idle), "idle for {} us", end.get() / 1_000_000 - busy);
    // The mean delay is 50 kB. Its mean deviation is 12.5 kB. An answer has 12.8 kB.
    let window = paced.window().get();
    assert!((67_000..=103_000).contains(&window), "a window of {window} B");
}

#[test]
fn answers_that_come_late_in_order_lower_the_share() {
    // Another link on the path has a queue of 9 ms: the own requests explain far less.
    let (mut paced, _) = served(100, |_| 400);
    let before = paced.window().get();
    (0..100).for_each(|_| paced.update_share(12_832.0, 9e9, 50_000.0));
    assert!(paced.window().get() < before / 10, "a window of {}", paced.window());
    assert_eq!(paced.losses(), 0);
    // The own queue explains the delay: the share recovers.
    (0..1_000).for_each(|_| paced.update_share(12_832.0, 9e9, 1_000_000.0));
    assert_eq!(paced.window().get(), before);
}

#[test]
fn the_first_request_goes_alone() {
    let mut paced = PacedCredits::new(CONFIG, 4);
    assert!(paced.may_send(at(0)));
    let credit = paced.on_sent(at(0), 2, 12, RelativeSize::default());
    assert!(!paced.may_send(at(249_999)), "nothing is known about delay and size");
    // A readout that never answers does not stop the other readouts.
    assert_eq!(paced.poll_deadline(), Some(at(250_000)));
    paced.on_answer(at(500), 2, 12, credit, at(0), (Bytes::new(12_000), RelativeSize::default()));
    assert!(paced.may_send(at(600)));
}

#[test]
fn large_answers_are_requested_in_equal_parts() {
    let (paced, _) = served(100, |_| 100);
    let usual = RelativeSize { bytes: 1.0, usual: 1.0, ..RelativeSize::default() };
    assert_eq!(paced.fragments_of_part(0, 12, usual), 6, "12 kB are more than five segments");
    assert_eq!(paced.fragments_of_part(0, 7, usual), 7);
    assert_eq!(
        paced.fragments_of_part(0, 12, RelativeSize::default()),
        2,
        "the first answers of an event are small"
    );
    let huge = RelativeSize { bytes: 100.0, usual: 1.0, ..RelativeSize::default() };
    assert_eq!(paced.fragments_of_part(0, 12, huge), 1, "a fragment is never split");
}

#[test]
fn a_lost_answer_lowers_the_pace_and_frees_its_credit() {
    let (mut paced, now) = served(100, |_| 400);
    let before = paced.window();
    let lost = paced.on_sent(now, 0, 12, RelativeSize::default());
    let deadline = paced.poll_deadline().unwrap();
    assert!(!paced.may_send(Instant::new(deadline.get() - 1)) || paced.outstanding() == lost.bytes());
    paced.may_send(Instant::new(now.get() + 10_000_000_000));
    assert_eq!((paced.outstanding(), paced.overdue()), (Bytes::ZERO, lost.bytes()));
    assert_eq!(paced.losses(), 1);
    let kept = 1.0 - lost.bytes().get() as f64 / before.get() as f64;
    assert!(paced.window().get().abs_diff((before.get() as f64 * kept) as u64) <= 1, "{}", paced.window());
    paced.on_withdrawn(lost);
    assert_eq!(paced.overdue(), Bytes::ZERO);
    paced.check_invariants();
}

#[test]
fn the_pace_recovers_soon_from_an_answer_of_a_late_host() {
    // Milliseconds until the answer, and whether it was lost: TCP repairs a lost tail after 200 ms or more. Late answers may have
    // lowered the share before.
    for (delay, is_lost, share) in [(50, false, 1.0), (199, false, 1.0), (50, false, 0.2), (201, true, 1.0)] {
        let (mut paced, now) = served(100, |_| 400);
        paced.share = share;
        let before = paced.window();
        let overdue = paced.on_sent(now, 0, 12, RelativeSize::default());
        paced.may_send(Instant::new(now.get() + 10_000_000_000));
        assert!(paced.window() < before);
        let end = Instant::new(now.get() + delay * 1_000_000_000);
        paced.on_answer(end, 0, 12, overdue, now, (Bytes::new(12_000), RelativeSize::default()));
        assert_eq!(paced.share_max < 1.0, is_lost, "after {delay} ms");
        assert_eq!(paced.losses(), u64::from(is_lost));
        paced.check_invariants();
    }
}

#[test]
fn a_path_that_becomes_much_longer_is_learned() {
    // From the hundredth request on, each answer takes longer than the least time after which one is overdue.
    let (paced, _) = served(8_000, |number| if number < 100 { 400 } else { 20_000 });
    assert_eq!((paced.share, paced.losses()), (1.0, 0));
    // 20 ms of the link are 2.5 MB. Probes end as soon as answers are no longer late, so that the delay is at least a quarter.
    assert!(paced.window().get() > 2_500_000 / 4, "a window of {}", paced.window());
}

#[test]
fn an_answer_that_waited_behind_a_lost_one_shows_no_late_host() {
    let (mut paced, now) = served(100, |_| 400);
    let later = Instant::new(now.get() + 20_000_000_000);
    let lost = paced.on_sent(now, 0, 12, RelativeSize::default());
    paced.may_send(later);
    let behind = paced.on_sent(later, 0, 12, RelativeSize::default());
    let end = Instant::new(now.get() + 210_000_000_000);
    paced.may_send(end);
    for (credit, sent) in [(lost, now), (behind, later)] {
        paced.on_answer(end, 0, 12, credit, sent, (Bytes::new(12_000), RelativeSize::default()));
    }
    assert_eq!(paced.losses(), 2);
    assert!(paced.share_max < 1.0);
    paced.check_invariants();
}

#[test]
fn a_readout_that_is_silent_from_the_start_does_not_stop_the_others() {
    let mut paced = PacedCredits::new(CONFIG, 2);
    paced.on_sent(at(0), 0, 12, RelativeSize::default());
    let deadline = paced.poll_deadline().unwrap();
    assert!(paced.may_send(deadline));
    let credit = paced.on_sent(deadline, 1, 12, RelativeSize::default());
    let answer = (Bytes::new(12_000), RelativeSize::default());
    paced.on_answer(Instant::new(deadline.get() + 500_000_000), 1, 12, credit, deadline, answer);
    assert!(paced.window().get() > 0);
    paced.check_invariants();
}

#[test]
fn the_next_large_answer_is_requested_before_the_first_ends() {
    let (mut paced, now) = served(100, |_| 400);
    paced.expect(0, Bytes::new(1_000_000));
    let credit = paced.on_sent(now, 0, 1, RelativeSize::default());
    let asked = paced.poll_deadline().unwrap();
    let whole = Instant::new(now.get() + 400_000_000 + credit.bytes().get() * 8_000);
    assert!(asked > now && asked < whole, "asked at {asked:?}, complete at {whole:?}");
    // The answer to the second request follows on the first without a gap, by half a mean answer early.
    let begins = Instant::new(asked.get() + 400_000_000);
    assert!(
        begins.get() <= whole.get() + 1_000_000 && begins.get() + ANSWER_PS / 2 + 20_000_000 >= whole.get(),
        "{begins:?} {whole:?}"
    );
    assert!(!paced.may_send(Instant::new(asked.get() - 1)) && paced.may_send(asked));
}

#[test]
#[should_panic(expected = "a credit comes back twice")]
fn a_credit_comes_back_once() {
    let (mut paced, now) = served(100, |_| 400);
    let [_, second] = [0, 0].map(|_| paced.on_sent(now, 0, 12, RelativeSize::default()));
    paced.on_withdrawn(second);
    paced.on_withdrawn(second);
}

proptest! {
    /// With answers in time, late or never, credit is conserved and the window kept. Waiting requests leave at the
    /// machine's deadline.
    #[test]
    fn credit_is_conserved_and_requests_leave(
        steps in prop::collection::vec((0_u8..4, 0_usize..64, 1_u64..40_000, 1_u64..3_000), 1..400),
    ) {
        let mut paced = PacedCredits::new(CONFIG, 8);
        let mut now = at(0);
        let mut out: Vec<(Instant, u16, ByteCredit, usize)> = Vec::new();
        // Three events at a time: their answers predict what is outstanding again.
        let mut sizes = [0, 1, 2].map(RelativeSize::of_event);
        for (step, place, bytes, wait) in steps {
            now = now.checked_add(Duration::from_micros(wait)).unwrap();
            let readout = (place % 8) as u16;
            if step < 2 {
                if paced.may_send(now) {
                    // Within the window, except for the answer that is assumed to arrive now.
                    let oldest = paced.requests.front().map_or(0, |oldest| oldest.bytes);
                    prop_assert!(paced.outstanding - oldest <= paced.window().get());
                    let credit = paced.on_sent(now, readout, 12, sizes[place % 3]);
                    out.push((now, readout, credit, place % 3));
                }
            } else if !out.is_empty() {
                let (sent, from, credit, event) = out.swap_remove(place % out.len());
                if step == 2 {
                    let answer = (Bytes::new(bytes), sizes[event]);
                    sizes[event] = paced.on_answer(now, from, 12, credit, sent, answer);
                } else {
                    paced.on_withdrawn(credit);
                }
            }
            paced.check_invariants();
            let held: u64 = out.iter().map(|(_, _, credit, _)| paced.predicted(*credit).get()).sum();
            prop_assert_eq!(paced.outstanding().get() + paced.overdue().get(), held);
        }
        // Every answer arrives in the end. Then a request leaves at the deadline, no later.
        for (sent, from, credit, _) in out {
            paced.on_answer(now, from, 12, credit, sent, (Bytes::new(1_000), RelativeSize::default()));
        }
        let deadline = paced.poll_deadline();
        prop_assert!(deadline.is_some(), "nothing is outstanding");
        prop_assert!(paced.may_send(deadline.unwrap()));
        prop_assert_eq!(paced.outstanding() + paced.overdue(), Bytes::ZERO);
    }
}
