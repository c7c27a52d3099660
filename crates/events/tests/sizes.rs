//! Numbers of real files, and scenarios made from them.

mod common;

use common::shared;
use fanin_events::{FileSummary, SizeShape, models, sample};

fn near(actual: f64, needed: f64, tolerance: f64) {
    assert!((actual - needed).abs() <= tolerance, "{actual} is not {needed} ± {tolerance}");
}

#[test]
fn the_numbers_of_the_km3net_file() {
    let Some(bytes) = shared("frag/km3net_run25291_L1.frag") else { return };
    let summary = FileSummary::read(&bytes).unwrap();
    assert_eq!((summary.events, summary.sources.len()), (3, 453));
    // numpy's values.
    near(summary.fragment_bytes.mean, 2278.3, 0.1);
    near(summary.fragment_bytes.sd, 536.2, 0.5);
    assert_eq!((summary.fragment_bytes.min, summary.fragment_bytes.max), (326, 8318));
}

#[test]
fn the_numbers_of_the_sample_and_its_scenario() {
    let summary = FileSummary::read(&sample::km3net()).unwrap();
    assert_eq!(summary.event_bytes.total, 1_030_362 + 1_035_852);
    near(summary.spread.sigma, 0.002_656_9, 1e-6);
    // Nearly all of the spread is the fragments' own.
    near(summary.spread.fragment_sd, summary.fragment_bytes.sd, 0.1);
    let mean = summary.fragment_bytes.mean.round();
    let sd = summary.spread.fragment_sd.round();
    assert_eq!(
        summary.size_line(SizeShape::LogNormal),
        format!(
            "fragment_size = {{ distribution = \"log-normal\", mean = \"{mean} B\", sigma = 0.002657, \
             fragment_sd = \"{sd} B\" }}"
        )
    );
    let rms = (summary.spread.fragment_sd / summary.fragment_bytes.mean * 1e6).round() / 1e6;
    assert_eq!(
        summary.size_line(SizeShape::Polynomial),
        format!(
            "fragment_size = {{ distribution = \"polynomial\", offset = \"0 B\", slope = \"{mean} B\", \
             square = \"0 B\", sigma = 0.002657, rms = {rms} }}"
        )
    );
    let text = summary.to_string();
    assert!(text.contains("events          2\n") && text.contains("sources         453\n"), "{text}");
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["fragment_bytes"]["count"], 906);
    assert_eq!(json["sources"][0]["source"], summary.sources[0].source);
    assert_eq!(json["format"], "frag");
}

#[test]
fn models_of_the_bes3_sources_add_up_to_the_events() {
    let bytes = sample::bes3();
    let summary = FileSummary::read(&bytes).unwrap();
    let models = models::fit(&bytes).unwrap();
    assert_eq!(models.len(), 42);
    // A least-squares fit with a constant term passes through the means, so that sources add up to the mean event.
    let events: Vec<f64> = fanin_events::Events::open(&bytes)
        .unwrap()
        .map(|event| event.unwrap().fragment_bytes().get() as f64 / summary.event_bytes.mean)
        .collect();
    let fitted: f64 = events.iter().flat_map(|&x| models.iter().map(move |model| model.mean_bytes(x))).sum();
    near(fitted / summary.event_bytes.total as f64, 1.0, 2e-3);
}

#[test]
fn the_public_tables_of_cms_are_read() {
    for (name, sources, event_bytes) in
        [("cms/fedSizes_2017_rms.csv", 818, 1.39e6), ("cms/fedSizes_run276870_Andre_rms.csv", 675, 1.16e6)]
    {
        let Some(text) = shared(name) else { continue };
        let models = models::from_csv(str::from_utf8(&text).unwrap()).unwrap();
        assert_eq!(models.len(), sources, "{name}");
        let mean: f64 = models.iter().map(|model| model.mean_bytes(1.0)).sum();
        near(mean / event_bytes, 1.0, 0.01);
    }
}
