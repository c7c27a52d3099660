//! Metrics in the text format of OpenMetrics 1.0, which Prometheus reads. Names are a contract: base units, one
//! line of help each, labels for ports, rings, rules and causes.

use std::fmt::Error;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;

use super::causes::DropCauses;
use crate::capture::Captures;
use crate::config::Config;
use crate::snapshot::{
    Dropped, Histogram, PortSnapshot, QueueSnapshot, RingSnapshot, Snapshot, Tally, WorkerSnapshot,
};

/// Writes all metrics of one snapshot.
pub(crate) fn text(snapshot: &Snapshot, config: &Config, captures: &Captures) -> String {
    let picture = Picture {
        snapshot: snapshot.clone(),
        config: config.clone(),
        captures: [captures.len() as u64, captures.copied(), captures.dropped()],
    };
    let mut registry = Registry::default();
    registry.register_collector(Box::new(picture));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("a string takes what is written");
    text
}

#[derive(Debug)]
struct Picture {
    snapshot: Snapshot,
    config: Config,
    /// Running captures, frames copied, copies dropped.
    captures: [u64; 3],
}

type Result = std::result::Result<(), Error>;
/// Names and values of labels; an empty value means no label.
type Labels<'a> = &'a [(&'static str, &'a str)];

/// Name, help and value.
type MetricRow<T, V> = (&'static str, &'static str, fn(&T) -> V);

const PORT_TALLIES: &[MetricRow<PortSnapshot, Tally>] = &[
    ("port_received", "received by a port", |port| port.received),
    ("port_sent", "that the driver of a port took to send", |port| port.sent),
    ("port_flooded", "received by a port and flooded", |port| port.flooded),
];

const PORT_COUNTERS: &[MetricRow<PortSnapshot, u64>] = &[
    ("port_missed_frames", "Frames that the driver of a port lost before the switch saw them.", |port| {
        port.missed
    }),
    (
        "port_unlearned_frames",
        "Frames received by a port whose source was not learned, for lack of room in the station table.",
        |port| port.unlearned,
    ),
    ("port_pauses_received_frames", "PAUSE frames received by a port.", |port| port.pauses_received),
    ("port_pauses_sent_frames", "PAUSE frames sent by a port.", |port| port.pauses_sent),
];

const PORT_GAUGES: &[MetricRow<PortSnapshot, u64>] = &[
    ("port_up", "1 if a port has a link.", |port| port.is_up.into()),
    ("port_paused", "1 while a PAUSE frame holds a port.", |port| port.is_paused.into()),
    ("port_delayed_frames", "Frames that the impairment of a port holds.", |port| port.delayed),
    ("port_stations", "Stations learned behind a port.", |port| port.stations.into()),
];

const QUEUE_TALLIES: &[MetricRow<QueueSnapshot, Tally>] = &[
    ("queue_enqueued", "that a queue accepted", |queue| queue.enqueued),
    ("queue_departed", "that left a queue", |queue| queue.departed),
    ("queue_marked", "that were marked in a queue", |queue| queue.marked),
];

const QUEUE_GAUGES: &[MetricRow<QueueSnapshot, u64>] = &[
    ("queue_frames", "Frames that a queue holds.", |queue| queue.frames),
    ("queue_bytes", "Bytes that a queue holds.", |queue| queue.bytes),
    ("queue_high_water_frames", "The most frames in a queue since the marks were reset.", |queue| {
        queue.frames_max
    }),
    ("queue_high_water_bytes", "The most bytes in a queue since the marks were reset.", |queue| {
        queue.bytes_max
    }),
    (
        "queue_period_high_water_frames",
        "The most frames in a queue in the last whole period of 10 s.",
        |queue| queue.frames_max_period,
    ),
    (
        "queue_period_high_water_bytes",
        "The most bytes in a queue in the last whole period of 10 s.",
        |queue| queue.bytes_max_period,
    ),
];

const WORKER_COUNTERS: &[MetricRow<WorkerSnapshot, u64>] = &[
    ("worker_rounds", "Rounds of a worker over its ports.", |worker| worker.rounds),
    ("worker_busy_rounds", "Rounds of a worker in which a frame moved.", |worker| worker.busy_rounds),
];

const WORKER_GAUGES: &[MetricRow<WorkerSnapshot, u64>] = &[
    ("worker_chunks", "Chunks of packet memory of a worker.", |worker| worker.chunks),
    (
        "worker_free_chunks",
        "Chunks of packet memory that are neither queued nor lent to a driver.",
        |worker| worker.chunks_free,
    ),
];

impl Collector for Picture {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result {
        self.switch(&mut encoder)?;
        let causes = DropCauses::new(&self.config);
        self.ports(&mut encoder, &causes)?;
        self.queues(&mut encoder, &causes)?;
        self.rings(&mut encoder)?;
        self.rules(&mut encoder)?;
        self.workers(&mut encoder)?;
        let [under_way, copied, dropped] = self.captures;
        gauge(&mut encoder, "captures", "Running captures.", [(&[] as Labels<'_>, under_way as f64)])?;
        counter(
            &mut encoder,
            "capture_copied_frames",
            "Frames copied for captures.",
            [(&[] as Labels<'_>, copied)],
        )?;
        let help = "Copies dropped because the reader of a capture was too slow.";
        counter(&mut encoder, "capture_dropped_frames", help, [(&[] as Labels<'_>, dropped)])
    }
}

impl Picture {
    fn switch(&self, encoder: &mut DescriptorEncoder<'_>) -> Result {
        let labels: Labels<'_> = &[("name", &self.snapshot.name), ("version", env!("CARGO_PKG_VERSION"))];
        encoder
            .encode_descriptor("fanin_switch", "Version of the switch.", None, MetricType::Info)?
            .encode_info(&labels)?;
        let uptime = self.snapshot.uptime_ns as f64 / 1e9;
        gauge(encoder, "uptime_seconds", "Time since the switch started.", [(&[] as Labels<'_>, uptime)])?;
        let stations = self.snapshot.stations_len as f64;
        gauge(encoder, "stations", "Known stations.", [(&[] as Labels<'_>, stations)])
    }

    fn ports(&self, encoder: &mut DescriptorEncoder<'_>, causes: &DropCauses<'_>) -> Result {
        let labels: Vec<[(&'static str, &str); 1]> =
            self.snapshot.ports.iter().map(|port| [("port", port.name.as_str())]).collect();
        let ports = || labels.iter().zip(&self.snapshot.ports);
        for (name, help, value) in PORT_TALLIES {
            tally(encoder, name, help, ports().map(|(labels, port)| (labels.as_slice(), value(port))))?;
        }
        for (name, help, value) in PORT_COUNTERS {
            counter(encoder, name, help, ports().map(|(labels, port)| (labels.as_slice(), value(port))))?;
        }
        for (name, help, value) in PORT_GAUGES {
            gauge(
                encoder,
                name,
                help,
                ports().map(|(labels, port)| (labels.as_slice(), value(port) as f64)),
            )?;
        }
        let rows: Vec<([(&str, &str); 2], Tally)> = self
            .snapshot
            .ports
            .iter()
            .flat_map(|port| {
                causes
                    .of_port(&port.name, &port.dropped)
                    .into_iter()
                    .map(move |d| ([("port", port.name.as_str()), ("cause", d.cause)], d.tally))
            })
            .collect();
        let help = "received by a port and dropped, or lost by its impairment, by cause";
        tally(encoder, "port_dropped", help, rows.iter().map(|(labels, tally)| (labels.as_slice(), *tally)))
    }

    /// Returns every queue with its labels. A port's plain queue has no label for a ring.
    fn all_queues(&self) -> Vec<([(&'static str, &str); 2], &QueueSnapshot)> {
        let own = self
            .snapshot
            .ports
            .iter()
            .map(|port| ([("port", port.name.as_str()), ("ring", "")], &port.queue));
        let rings = self.snapshot.rings.iter();
        let rings =
            rings.map(|ring| ([("port", ring.port.as_str()), ("ring", ring.name.as_str())], &ring.queue));
        own.chain(rings).collect()
    }

    fn queues(&self, encoder: &mut DescriptorEncoder<'_>, causes: &DropCauses<'_>) -> Result {
        let queues = self.all_queues();
        for (name, help, value) in QUEUE_TALLIES {
            tally(
                encoder,
                name,
                help,
                queues.iter().map(|(labels, queue)| (labels.as_slice(), value(queue))),
            )?;
        }
        for (name, help, value) in QUEUE_GAUGES {
            gauge(
                encoder,
                name,
                help,
                queues.iter().map(|(labels, queue)| (labels.as_slice(), value(queue) as f64)),
            )?;
        }
        let dropped: Vec<([(&str, &str); 3], Dropped)> = queues
            .iter()
            .flat_map(|([port, ring], queue)| {
                let dropped = causes.of_queue(port.1, ring.1, &queue.dropped);
                dropped.into_iter().map(|d| ([*port, *ring, ("cause", d.cause)], d))
            })
            .collect();
        let help = "that a queue refused, by the limit reached";
        tally(
            encoder,
            "queue_dropped",
            help,
            dropped.iter().map(|(labels, d)| (labels.as_slice(), d.tally)),
        )?;

        let help = "Samples of a queue's length in frames, taken every 10 ms.";
        let mut metric = describe(
            encoder,
            "fanin_switch_queue_occupancy_frames",
            help.trim_end_matches('.'),
            MetricType::Histogram,
        )?;
        for (labels, queue) in &queues {
            let labels = &labels.as_slice();
            histogram(&mut metric.encode_family(labels)?, &queue.histogram)?;
        }
        Ok(())
    }

    fn rings(&self, encoder: &mut DescriptorEncoder<'_>) -> Result {
        let labels = |ring: &RingSnapshot| [("port", ring.port.clone()), ("ring", ring.name.clone())];
        let rings: Vec<_> = self.snapshot.rings.iter().map(|ring| (labels(ring), ring)).collect();
        let rings: Vec<([(&'static str, &str); 2], &RingSnapshot)> = rings
            .iter()
            .map(|(l, ring)| ([(l[0].0, l[0].1.as_str()), (l[1].0, l[1].1.as_str())], *ring))
            .collect();
        let help = "1 while a ring is above its alarm level.";
        gauge(
            encoder,
            "ring_alarm",
            help,
            rings.iter().map(|(l, ring)| (l.as_slice(), f64::from(u8::from(ring.alarm)))),
        )?;
        let help = "Alarms raised by a ring.";
        counter(encoder, "ring_alarms", help, rings.iter().map(|(l, ring)| (l.as_slice(), ring.alarms)))?;

        let specs: Vec<_> = self
            .config
            .ring
            .iter()
            .map(|spec| ([("port", spec.port.as_str()), ("ring", spec.name.as_str())], spec))
            .collect();
        let bytes = specs.iter().filter_map(|(l, spec)| Some((l.as_slice(), spec.bytes?.get() as f64)));
        gauge(encoder, "ring_capacity_bytes", "Capacity of a ring in bytes, if it has such a limit.", bytes)?;
        let frames = specs.iter().filter_map(|(l, spec)| Some((l.as_slice(), spec.frames?.get() as f64)));
        gauge(
            encoder,
            "ring_capacity_frames",
            "Capacity of a ring in frames, if it has such a limit.",
            frames,
        )?;
        let rates = specs.iter().filter_map(|(l, spec)| Some((l.as_slice(), spec.rate?.get() as f64 / 8.0)));
        let help = "Rate of a ring's token bucket, if it has one, in bytes per second.";
        gauge(encoder, "ring_rate_bytes_per_second", help, rates)
    }

    fn rules(&self, encoder: &mut DescriptorEncoder<'_>) -> Result {
        let rules: Vec<_> =
            self.snapshot.rules.iter().map(|rule| ([("rule", rule.name.as_str())], rule.matched)).collect();
        let help = "that matched a rule";
        tally(
            encoder,
            "rule_matched",
            help,
            rules.iter().map(|(labels, matched)| (labels.as_slice(), *matched)),
        )
    }

    fn workers(&self, encoder: &mut DescriptorEncoder<'_>) -> Result {
        let numbers: Vec<String> =
            self.snapshot.workers.iter().map(|worker| worker.worker.to_string()).collect();
        let labels: Vec<[(&'static str, &str); 1]> =
            numbers.iter().map(|number| [("worker", number.as_str())]).collect();
        let workers = || labels.iter().zip(&self.snapshot.workers);
        for (name, help, value) in WORKER_COUNTERS {
            counter(
                encoder,
                name,
                help,
                workers().map(|(labels, worker)| (labels.as_slice(), value(worker))),
            )?;
        }
        for (name, help, value) in WORKER_GAUGES {
            gauge(
                encoder,
                name,
                help,
                workers().map(|(labels, worker)| (labels.as_slice(), value(worker) as f64)),
            )?;
        }
        Ok(())
    }
}

fn describe<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    name: &'a str,
    help: &str,
    kind: MetricType,
) -> std::result::Result<MetricEncoder<'a>, Error> {
    encoder.encode_descriptor(name, help, None, kind)
}

fn full(name: &str) -> String {
    format!("fanin_switch_{name}")
}

fn counter<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (Labels<'a>, u64)>,
) -> Result {
    let name = full(name);
    let mut metric = describe(encoder, &name, help.trim_end_matches('.'), MetricType::Counter)?;
    for (labels, value) in values {
        metric.encode_family(&labels)?.encode_counter(&value, None::<&Exemplar<NoLabelSet, u64>>)?;
    }
    Ok(())
}

fn gauge<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (Labels<'a>, f64)>,
) -> Result {
    let name = full(name);
    let mut metric = describe(encoder, &name, help.trim_end_matches('.'), MetricType::Gauge)?;
    for (labels, value) in values {
        metric.encode_family(&labels)?.encode_gauge(&value)?;
    }
    Ok(())
}

/// Writes frames and bytes as two metrics.
fn tally<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (Labels<'a>, Tally)> + Clone,
) -> Result {
    let frames = values.clone().map(|(labels, tally)| (labels, tally.frames));
    counter(encoder, &format!("{name}_frames"), &format!("Frames {help}."), frames)?;
    let bytes = values.map(|(labels, tally)| (labels, tally.bytes));
    counter(encoder, &format!("{name}_bytes"), &format!("Bytes of frames {help}."), bytes)
}

fn histogram(metric: &mut MetricEncoder<'_>, samples: &Histogram) -> Result {
    let buckets: Vec<(f64, u64)> = samples
        .buckets
        .iter()
        .enumerate()
        // Our bounds are exclusive, and OpenMetrics' bounds are inclusive.
        .map(|(n, count)| (Histogram::bound(n).map_or(f64::INFINITY, |bound| (bound - 1) as f64), *count))
        .collect();
    let count = samples.buckets.iter().sum();
    metric.encode_histogram::<NoLabelSet>(samples.sum as f64, count, &buckets, None)
}
