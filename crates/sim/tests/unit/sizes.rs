//! Fragment sizes follow their distribution, or the file that was read.

use super::*;
use fanin_units::Ratio;

#[test]
fn sizes_have_the_mean_and_the_tail_of_the_thesis() {
    // T059: log-normal with scale 0.25 scaled to the mean, and N(0, 200 B) a fragment.
    let model = SizeModel::LogNormal {
        mean: Bytes::new(1100),
        sigma: Ratio::new(250_000),
        fragment_sd: Bytes::new(200),
    };
    let readouts: Vec<_> =
        (0..20).map(|readout| Sizes::new(&model, &RecordedSizes::None, 12, 1, readout)).collect();
    let all = FragmentSet::first(12);
    let mut events: Vec<u64> =
        (0..4000).map(|event| readouts.iter().map(|one| one.size(L1Id(event), all).get()).sum()).collect();
    let mean = events.iter().sum::<u64>() as f64 / events.len() as f64 / (20.0 * 12.0);
    assert!((mean / 1100.0 - 1.0).abs() < 0.015, "mean {mean}");
    events.sort_unstable();
    // The 99th percentile of the event's own part lies at exp(2.326 σ - σ² / 2) = 1.73 times the mean.
    let p99 = events[events.len() * 99 / 100] as f64 / (1100.0 * 240.0);
    assert!((p99 - 1.73).abs() < 0.06, "p99 {p99}");
    // Parts add up to the whole.
    let parts = [FragmentSet::first(5), all.without(FragmentSet::first(5))];
    let sum: Bytes = parts.iter().map(|&part| readouts[3].size(L1Id(9), part)).sum();
    assert_eq!(sum, readouts[3].size(L1Id(9), all));
}

#[test]
fn a_histogram_gives_its_sizes() {
    let sets =
        ["readout.fragment_size={ distribution = \"empirical\", edges = [\"1 kB\", \"2 kB\", \"2 kB\"], \
         counts = [30, 70] }"];
    let scenario = fanin_scenario::load("replay", &sets.map(str::to_owned)).unwrap().scenario;
    let model = &scenario.readout.fragment_size;
    let sizes = Sizes::new(model, &RecordedSizes::None, 12, 1, 3);
    let one = FragmentSet::first(1);
    let drawn: Vec<u64> = (0..2_000).map(|event| sizes.size(L1Id(event), one).get()).collect();
    assert!(drawn.iter().all(|size| (1_000..=2_000).contains(size)));
    assert!((1_340..1_460).contains(&drawn.iter().filter(|&&size| size == 2_000).count()));
}

#[test]
fn a_sample_is_replayed_with_its_true_sizes() {
    let scenario = fanin_scenario::load("replay", &[]).unwrap().scenario;
    let data = RecordedSizes::Events(Arc::new(EventSizes::read("km3net", 24, 19).unwrap()));
    let event = |number: u64| -> u64 {
        (0..24)
            .map(|host| Sizes::new(&scenario.readout.fragment_size, &data, 19, 1, host))
            .map(|sizes| sizes.event_bytes(L1Id(number)).get())
            .sum()
    };
    // Two time slices of 2 066 214 bytes together, over and over.
    assert_eq!(event(0) + event(1), 2_066_214);
    assert_eq!((event(0), event(1)), (event(2), event(7)));
    assert_eq!(data.mean(&scenario), Bytes::new(2265));
}

#[test]
fn each_source_may_have_a_model_of_its_own() {
    let sets = ["readout.fragment_size={ distribution = \"per-source\", path = \"km3net\", sigma = 0.2 }"];
    let scenario = fanin_scenario::load("replay", &sets.map(str::to_owned)).unwrap().scenario;
    let data = RecordedSizes::Models(Arc::new(sizes::read_models("km3net", 24, 19).unwrap()));
    let readouts: Vec<_> =
        (0..24).map(|host| Sizes::new(&scenario.readout.fragment_size, &data, 19, 1, host)).collect();
    let events: Vec<u64> = (0..500)
        .map(|event| readouts.iter().map(|sizes| sizes.event_bytes(L1Id(event)).get()).sum())
        .collect();
    let mean = events.iter().sum::<u64>() as f64 / 500.0;
    let expected = data.mean(&scenario).get() as f64 * 456.0;
    assert!((mean / expected - 1.0).abs() < 0.05, "{mean} {expected}");
    assert!(events.iter().max() > events.iter().min());
}

/// The live readouts have the same events (`drawn_fragments_have_the_sizes_of_the_simulation` of `node`).
#[test]
fn the_live_readouts_have_these_sizes() {
    let model = SizeModel::LogNormal {
        mean: Bytes::new(2000),
        sigma: Ratio::new(500_000),
        fragment_sd: Bytes::new(200),
    };
    let event = |event| {
        let of = |readout| Sizes::new(&model, &RecordedSizes::None, 2, 1, readout);
        (0..3).map(|readout| of(readout).event_bytes(L1Id(event)).get()).sum::<u64>()
    };
    assert_eq!([0, 1, 2].map(event), [17_593, 5_856, 48_728]);
}
