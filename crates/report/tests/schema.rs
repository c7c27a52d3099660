//! The summary's names, in full, as scripts outside the project read them.

use std::fs;

use fanin_report::{
    ConnectionFigures, EventCounts, Goodput, IdealFigures, LateCause, LateSummary, Load, MeasuredPeriod,
    NetworkFigures, Overload, PlanBracket, PlanLink, PlanQueue, PlanRow, PlanSummary, PlanVerdict,
    RequestCounts, ResultKind, ScenarioName, ShapingFigures, Slowdown, Speed, Summary, TcpFigures, Times,
    WarmupLosses,
};

/// The range of a queue's losses.
fn bracket() -> PlanBracket {
    PlanBracket {
        queue: "tor->collector".into(),
        losing_share_min: Some(0.01),
        losing_share_max: Some(0.05),
        losing_share_expected: Some(0.03),
        waiting_bytes_min: 500_000,
        waiting_bytes_max: Some(2_286_240),
        fits_bytes: 786_432,
    }
}

/// A summary in which every key stands.
fn everything() -> Summary {
    let times = Times {
        ideal: Some(18.29),
        mean: 19.2,
        std: 0.5,
        min: 18.3,
        p01: 18.31,
        p25: 18.9,
        p50: 19.1,
        p75: 19.5,
        p90: 19.9,
        p99: 20.5,
        p999: 21.25,
        max: 22.0,
    };
    let scenario = ScenarioName { name: "thesis-a-500hz".into(), hash: "4fe2a81c".into() };
    let mut summary = Summary::new(ResultKind::Sim, "0.1.0", scenario);
    summary.commit = Some("5d7de1c".into());
    summary.seed = Some(u64::MAX);
    summary.duration_s = Some(10.0);
    summary.measured_ps = Some(MeasuredPeriod { from: 2_000_000_000_000, until: 12_000_000_000_000 });
    summary.events = Some(EventCounts {
        assigned: 5000,
        collected: 4990,
        accepted: Some(50),
        rejected: Some(4940),
        stored: Some(50),
        debug: Some(2),
        lost: 0,
        duplicated: 0,
        timeouts_mean: Some(0.25),
        rate_hz: Some(499.0),
    });
    summary.requests = Some(RequestCounts {
        completed: 12,
        deadlines_met: Some(9),
        timeouts_mean: Some(0.5),
        time_ms: Some(times.clone()),
    });
    summary.collection_time_ms = Some(times);
    summary.slowdown = Some(Slowdown { mean: 1.05, p50: 1.04, p99: 1.12, max: 1.2 });
    summary.goodput_bps = Some(Goodput { total: 8.43e9, per_collector_mean: Some(216e6) });
    summary.load = Some(Load { last_hop: Some(0.23), uplink: Some(0.45) });
    summary.network = Some(NetworkFigures {
        packets: Some(7_000_000),
        bytes: Some(10_600_000_000),
        reverse_bytes: Some(310_000_000),
        drops: Some(0),
        link_losses: Some(12),
        ecn_marks: Some(0),
        pauses: Some(0),
        queue_bytes_max: Some(412_000),
        losing_share: Some(0.02),
    });
    summary.warmup = Some(WarmupLosses { drops: 900, timeouts: 60 });
    summary.tcp = Some(TcpFigures {
        segments: Some(7_000_000),
        retransmits: Some(0),
        timeouts: Some(0),
        fast_retransmits: Some(0),
        spurious_retransmits: Some(0),
        tail_loss_probes: Some(0),
    });
    summary.shaping = Some(ShapingFigures { credits: Some(480), wait_ms_mean: Some(6.2) });
    summary.speed = Some(Speed {
        wall_s: Some(5.5),
        cpu_s: Some(5.25),
        packet_hops: Some(28_000_000),
        packet_hops_per_cpu_s: Some(5.3e6),
        simulated_bytes_per_cpu_s: Some(2e9),
        peak_rss_bytes: Some(30_000_000),
    });
    summary.ideal = Some(IdealFigures {
        collection_time_ms: Some(18.29),
        goodput_bps: Some(923.8e6),
        how: Some("2286240 B × 8 / 1 Gb/s = 18.29 ms".into()),
    });
    summary.plan = Some(PlanSummary {
        verdict: Some(PlanVerdict {
            outcome: "loses".into(),
            loses_frames: Some(true),
            losses: Some("in-share".into()),
            losing_share: Some(0.03),
            bracket: Some(bracket()),
            text: "loses frames".into(),
        }),
        links: vec![PlanLink {
            name: "tor->collector".into(),
            count: 39,
            rate_bps: 1_000_000_000,
            offered_bps: 18_048_000_000,
            load: 0.46,
            load_reverse: Some(0.02),
        }],
        queues: vec![PlanQueue {
            name: "tor->collector".into(),
            outcome: "loses".into(),
            losses: Some("always".into()),
            inflow_bps: 20_000_000_000,
            outflow_bps: 1_000_000_000,
            burst_bytes: 2_286_240,
            peak_bytes: 2_112_800,
            capacity_bytes: Some(786_432),
            overflow_share: Some(1.0),
            bracket: Some(bracket()),
            text: "burst > buffer".into(),
        }],
        derivations: vec![PlanRow {
            name: "credit_window".into(),
            value: 63_200,
            unit: "B".into(),
            text: "63.2 kB".into(),
            formula: "rate × RTT + block".into(),
            numbers: "1 Gb/s × 400 us + 13.2 kB".into(),
            source: "thesis §4.3".into(),
        }],
        ..PlanSummary::default()
    });
    summary.label = Some("credits".into());
    summary.connections = vec![ConnectionFigures {
        name: "readout:43->collector:0".into(),
        timeouts: Some(5),
        retransmits: 48,
    }];
    summary.late = Some(LateSummary {
        event: 7,
        time_ms: 220.5,
        text: "Event 7 took 220.5 ms.".into(),
        chain: vec![LateCause {
            kind: "rto".into(),
            until_ms: 200.0,
            time_ms: Some(180.0),
            event: Some(5),
            count: Some(3),
            ..LateCause::default()
        }],
        explained: Some(0.9),
    });
    summary.overload = Some(Overload {
        wanted_hz: 1000.0,
        assigned_hz: 640.0,
        cause: Some("credits".into()),
        text: "The system does not keep up.".into(),
    });
    summary.techniques.insert("m21tcp".into(), serde_json::json!({ "window_bytes_min": 1460 }));
    summary
}

#[test]
fn every_name_is_the_contracts() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/summary.json");
    let written = everything().to_json().unwrap();
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(path, &written).unwrap();
    }
    let golden = fs::read_to_string(path).unwrap();
    assert_eq!(written, golden, "run with UPDATE_GOLDENS=1, then read the diff: these names are a contract");
    assert_eq!(serde_json::from_str::<Summary>(&golden).unwrap(), everything());
}

#[test]
fn fields_of_a_later_version_are_kept() {
    let mut tree = everything().to_value().unwrap();
    tree["weather"] = serde_json::json!({ "rain": [1, 2.5, "much"] });
    let summary: Summary = serde_json::from_value(tree.clone()).unwrap();
    assert_eq!(summary.to_value().unwrap(), tree);
}

#[test]
fn a_sparse_summary_is_read() {
    let text = r#"{"schema":"fanin.summary/1","kind":"run","version":"0.1.0","scenario":{"name":"x","hash":"y"},
        "network":{"drops":3},"events":{"assigned":4,"collected":4,"lost":0,"duplicated":0}}"#;
    let summary: Summary = serde_json::from_str(text).unwrap();
    assert_eq!(summary.network.as_ref().unwrap().drops, Some(3));
    assert_eq!(summary.network.unwrap().ecn_marks, None);
}
