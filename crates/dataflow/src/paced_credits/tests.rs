use fanin_units::Duration;
use proptest::prelude::*;

use super::*;

const CONFIG: PacedCreditsConfig =
    PacedCreditsConfig { rate: Rate::new(1_000_000_000), segment: Bytes::new(1_448) };

fn at(micros: u64) -> Instant {
    Instant::new(micros * 1_000_000)
}

/// Answers every request of 12 fragments of 1 kB after `delay`, one after the other on the link, for 100 requests. Returns the
/// state and the time.
fn served(delay: u64) -> (PacedCredits, Instant) {
    let mut paced = PacedCredits::new(CONFIG, 1);
    let (mut now, mut link_free) = (at(0), at(0));
    let mut out = VecDeque::new();
    let mut sent = 0;
    while sent < 100 || !out.is_empty() {
        while sent < 100 && paced.may_send(now) {
            let credit = paced.on_sent(now, 0, 12, RelativeSize::default());
            let begin = link_free.max(Instant::new(now.get() + delay * 1_000_000));
            link_free = Instant::new(begin.get() + 96_000_000);
            out.push_back((link_free, now, credit));
            sent += 1;
        }
        let answer = out.front().map(|&(arrival, ..)| arrival);
        let may = paced.poll_deadline().filter(|_| sent < 100);
        now = [answer, may].into_iter().flatten().min().unwrap().max(now);
        if answer.is_some_and(|arrival| arrival <= now) {
            let (_, asked, credit) = out.pop_front().unwrap();
            paced.on_answer(now, 0, 12, credit, asked, (Bytes::new(12_000), RelativeSize::default()));
        }
        paced.check_invariants();
    }
    (paced, now)
}

#[test]
fn requests_keep_the_link_busy_and_little_more() {
    let (paced, end) = served(400);
    // 100 answers of 96 us, one round trip alone, and one before the first answer of the full pace.
    let busy = 100 * 96;
    assert!(end >= at(busy + 400) && end <= at(busy + 3 * 400), "ended at {end:?}");
    // The round trip at the link's rate is 50 kB; three answers more, and the one that fills the window.
    let window = paced.window().get();
    assert!((80_000..=90_000).contains(&window), "a window of {window} B");
    assert!(paced.outstanding_max().get() <= window + 2 * 12_000);
    assert_eq!((paced.outstanding(), paced.overdue(), paced.losses()), (Bytes::ZERO, Bytes::ZERO, 0));
}

#[test]
fn the_first_request_goes_alone() {
    let mut paced = PacedCredits::new(CONFIG, 4);
    assert!(paced.may_send(at(0)));
    let credit = paced.on_sent(at(0), 2, 12, RelativeSize::default());
    assert!(!paced.may_send(at(1_000_000)), "nothing is known about delay and size");
    assert_eq!(paced.poll_deadline(), None);
    paced.on_answer(at(500), 2, 12, credit, at(0), (Bytes::new(12_000), RelativeSize::default()));
    assert!(paced.may_send(at(600)));
}

#[test]
fn large_answers_are_requested_in_equal_parts() {
    let (paced, _) = served(100);
    let usual = RelativeSize { bytes: 1.0, usual: 1.0 };
    assert_eq!(paced.fragments_of_part(0, 12, usual), 6, "12 kB are more than five segments");
    assert_eq!(paced.fragments_of_part(0, 7, usual), 7);
    let huge = RelativeSize { bytes: 100.0, usual: 1.0 };
    assert_eq!(paced.fragments_of_part(0, 12, huge), 1, "a fragment is never split");
}

#[test]
fn a_lost_answer_lowers_the_pace_and_frees_its_credit() {
    let (mut paced, now) = served(400);
    let before = paced.window();
    let lost = paced.on_sent(now, 0, 12, RelativeSize::default());
    let deadline = Instant::new(now.get() + 10_000_000_000);
    paced.may_send(deadline);
    assert_eq!((paced.outstanding(), paced.overdue()), (Bytes::ZERO, lost.bytes()));
    assert_eq!((paced.losses(), paced.window().get()), (1, before.get() / 2));
    paced.on_withdrawn(lost);
    assert_eq!(paced.overdue(), Bytes::ZERO);
    paced.check_invariants();
}

#[test]
#[should_panic(expected = "a credit comes back once")]
fn a_credit_comes_back_once() {
    let (mut paced, now) = served(400);
    let [_, second] = [0, 0].map(|_| paced.on_sent(now, 0, 12, RelativeSize::default()));
    paced.on_withdrawn(second);
    paced.on_withdrawn(second);
}

proptest! {
    /// Whatever answers come, late or never, credit is conserved, the window is kept, and a waiting request leaves at a
    /// deadline that the machine names.
    #[test]
    fn credit_is_conserved_and_requests_leave(
        steps in prop::collection::vec((0_u8..4, 0_usize..64, 1_u64..40_000, 1_u64..3_000), 1..400),
    ) {
        let mut paced = PacedCredits::new(CONFIG, 8);
        let mut now = at(0);
        let mut out: Vec<(Instant, u16, ByteCredit)> = Vec::new();
        for (step, place, bytes, wait) in steps {
            now = now.checked_add(Duration::from_micros(wait)).unwrap();
            let readout = (place % 8) as u16;
            if step < 2 {
                if paced.may_send(now) {
                    let room = paced.window().max(Bytes::new(1));
                    let before = paced.outstanding();
                    prop_assert!(before.is_zero() || before < room);
                    out.push((now, readout, paced.on_sent(now, readout, 12, RelativeSize::default())));
                }
            } else if !out.is_empty() {
                let (sent, from, credit) = out.swap_remove(place % out.len());
                if step == 2 {
                    let answer = (Bytes::new(bytes), RelativeSize::default());
                    paced.on_answer(now, from, 12, credit, sent, answer);
                } else {
                    paced.on_withdrawn(credit);
                }
            }
            paced.check_invariants();
            let held: u64 = out.iter().map(|(_, _, credit)| credit.bytes().get()).sum();
            prop_assert_eq!(paced.outstanding().get() + paced.overdue().get(), held);
        }
        // Every answer arrives in the end. Then a request leaves at the deadline, no later.
        for (sent, from, credit) in out {
            paced.on_answer(now, from, 12, credit, sent, (Bytes::new(1_000), RelativeSize::default()));
        }
        let deadline = paced.poll_deadline();
        prop_assert!(deadline.is_some(), "nothing is outstanding");
        prop_assert!(paced.may_send(deadline.unwrap()));
        prop_assert_eq!(paced.outstanding() + paced.overdue(), Bytes::ZERO);
    }
}
