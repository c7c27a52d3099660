//! The cost of a large result: its summary, its files, its page. `cargo bench -p fanin-report [-- DIR]`
//!
//! A million events and two million samples of 40 queues are about 17 minutes of a rack at 1 kHz. The
//! files stay in DIR where one is given.

use std::path::PathBuf;
use std::time::Instant as Clock;

use fanin_report::{
    EventOutcome, EventRow, QueueRow, Records, ResultKind, RunResult, ScenarioName, Span, Summary,
};
use fanin_units::Instant;

const EVENTS: u64 = 1_000_000;
const QUEUES: u64 = 40;
const SAMPLES: u64 = 50_000;

fn timed<T>(task: &str, work: impl FnOnce() -> T) -> T {
    let start = Clock::now();
    let result = work();
    eprintln!("{task:<28} {:>8.1} ms", start.elapsed().as_secs_f64() * 1e3);
    result
}

fn records() -> Records {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut below = move |limit: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % limit
    };
    let events = (0..EVENTS)
        .map(|id| {
            let assigned_ps = id * 1_000_000_000;
            let collection_time_ps = 18_448_000_000 + below(3_000_000_000);
            EventRow {
                id,
                size_bytes: 2_112_000,
                assigned_ps,
                first_request_ps: Some(assigned_ps + 400_000),
                last_byte_ps: Some(assigned_ps + collection_time_ps),
                collection_time_ps: Some(collection_time_ps),
                ideal_ps: Some(18_448_000_000),
                collector: (id % 39) as u32,
                outcome: EventOutcome::Collected,
                ..EventRow::default()
            }
        })
        .collect();
    let queues = (0..QUEUES)
        .flat_map(|queue| {
            let name: std::sync::Arc<str> = format!("tor->collector-{queue}").into();
            (0..SAMPLES).map(move |sample| (name.clone(), sample))
        })
        .map(|(queue, sample)| QueueRow {
            queue,
            time_ps: sample * 20_000_000_000,
            queue_bytes: below(786_000),
            queue_frames: below(512),
            limit_bytes: Some(786_000),
            ..QueueRow::default()
        })
        .collect();
    Records { events, queues, ..Records::default() }
}

fn main() {
    let kept = std::env::args().nth(1).filter(|argument| !argument.starts_with("--")).map(PathBuf::from);
    let directory = kept
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join(format!("fanin-report-bench-{}", std::process::id())));
    let records = records();
    let mut summary = Summary::new(ResultKind::Sim, "bench", ScenarioName::default());
    let span = Span { from: Instant::START, until: Instant::new(EVENTS * 1_000_000_000) };
    timed("summary of 1 M events", || summary.fill_events(&records.events, span, 39, false));
    let result = RunResult { records, ..RunResult::new(summary) };
    let page = timed("page", || fanin_report::page(std::slice::from_ref(&result)));
    eprintln!("{:<28} {:>8.1} kB", "page", page.len() as f64 / 1e3);
    timed("write", || fanin_report::write(&directory, &result, &page)).expect("a directory to write to");
    for name in ["events.parquet", "queues.parquet"] {
        let bytes = std::fs::metadata(directory.join(name)).map_or(0, |metadata| metadata.len());
        eprintln!("{name:<28} {:>8.1} kB", bytes as f64 / 1e3);
    }
    let back = timed("read", || fanin_report::read(&directory)).expect("the files just written");
    assert_eq!(back.records, result.records);
    if kept.is_none() {
        std::fs::remove_dir_all(&directory).expect("the directory just written");
    }
}
