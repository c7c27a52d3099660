use fanin_dataflow::{
    Collector, CollectorConfig, FragmentSet, L1Id, PacedCreditsConfig, REMINDER_TAG, WaitsFor,
};
use fanin_units::{Bytes, Rate};

use crate::collector::{answer, assign, config, connected, requests};
use crate::{drain, ms};

/// Collects events of one readout with paced credits, of which each has one answer after `ms(time)`. The clock of the next
/// event is returned.
fn collect_paced(
    collector: &mut Collector<Bytes>,
    events: std::ops::Range<u64>,
    mut now: u64,
    time: u64,
) -> u64 {
    for event in events {
        assign(collector, ms(now), event, 0);
        let asked = requests(collector);
        assert_eq!(asked.len(), 1, "a readout with one fragment has one request");
        now += time;
        answer(collector, ms(now), asked[0]);
        now += 100;
        collector.handle_deadline(ms(now));
        drain!(collector.poll_transmit());
    }
    now
}

#[test]
fn a_late_answer_of_paced_credits_is_asked_for_again() {
    let (rate, segment, frame) = (Rate::new(1_000_000_000), Bytes::new(1_448), Bytes::new(1_538));
    let paced_credits = Some(PacedCreditsConfig {
        rate,
        segment,
        frame,
        fragment: Bytes::new(1_000),
        header: Bytes::new(22),
    });
    let config = CollectorConfig { readouts: vec![1], paced_credits, clear: None, ..config() };
    let mut collector = connected(config);
    let now = collect_paced(&mut collector, 0..40, 0, 1);
    assert_eq!(collector.counters().reminders, 0, "no answer was late");

    assign(&mut collector, ms(now), 40, 0);
    let lost = requests(&mut collector)[0];
    let late = collector.poll_deadline().unwrap();
    assert!((ms(now + 3)..ms(now + 6)).contains(&late), "four times the usual time of 1 ms: {late:?}");
    collector.handle_deadline(late);
    // Fragments of 1000 B: three answers are three segments.
    assert_eq!(requests(&mut collector), [(0, REMINDER_TAG, L1Id(40), FragmentSet::first(1)); 3]);
    let share = collector.paced_credits().unwrap().window();
    for _ in 0..3 {
        answer(&mut collector, ms(now + 7), (0, REMINDER_TAG, L1Id(40), FragmentSet::first(1)));
    }
    assert_eq!(collector.waits().next(), Some((L1Id(40), WaitsFor::Fragments { requests: 1 })));
    assert_eq!(collector.paced_credits().unwrap().window(), share, "the answers to reminders are ignored");
    assert!(collector.poll_deadline().is_none_or(|at| at > late), "one reminder a request");
    answer(&mut collector, ms(now + 8), lost);
    assert_eq!(collector.waits().next(), Some((L1Id(40), WaitsFor::Decision { unit: 0 })));
    assert_eq!(collector.counters().stale_answers, 0);
    collector.check_invariants();
}
