//! The barrier-synchronised workloads, live.

use std::sync::atomic::Ordering;
use std::time::Instant;

use fanin_node::barrier::{BARRIER_REQUEST_BYTES, BarrierLaunch, BarrierPlace, LiveBarrier, read_result};
use fanin_node::launch::ended_cpu_seconds;
use fanin_report::{Records, RunResult, Span, Speed};
use fanin_scenario::machines;
use fanin_testbed::live::LiveNetwork;
use fanin_units::{Bytes, Instant as Moment};

use super::job::{Job, end_capture, finish, start_capture, summary_of, unrecorded};
use super::measured::measured;
use super::network;
use crate::failure::Failure;
use crate::{interrupt, summary};

pub(super) fn run(job: &Job<'_>) -> Result<(), Failure> {
    let (scenario, slow) = (&job.loaded.scenario, &job.slow.scenario);
    let folder = job.folder.live();
    std::fs::create_dir_all(&folder).map_err(|error| Failure::Write { path: folder.clone(), error })?;
    let stop = interrupt::flag();
    let (began, cpu) = (Instant::now(), ended_cpu_seconds());
    let bench = network::build(job)?;
    let tap = start_capture(job, bench.as_ref())?;
    if let Some(tap) = &tap {
        tap.choose_all();
    }
    let program = std::env::current_exe()?;
    let place = bench.as_ref().map(|bench| bench as &dyn BarrierPlace);
    let launch = BarrierLaunch { loaded: &job.slow, folder: &folder, program: &program, place };
    let mut live = LiveBarrier::start(&launch)?;
    let mut watch = bench.as_ref().map(|bench| bench.watch(slow)).transpose()?;
    if live.wait_ready(stop)? {
        measured(job, watch.as_mut(), |time, tick| Ok(live.work(time, stop, tick)?))?;
    }
    live.finish(stop)?;
    drop(live);
    let captured = end_capture(job, tap)?;
    let result = read_result(&folder, slow)?;
    let mut observed = watch.map(|watch| watch.finish(result.start_unix_us)).transpose()?;
    let queues = observed.as_mut().map_or_else(Vec::new, |observed| std::mem::take(&mut observed.queues));
    let mut records = Records {
        events: result.rows,
        queues,
        flows: result.flows,
        windows: result.windows,
        ..Records::default()
    };
    if let Some(carried) = &job.carried {
        carried.rescale(&mut records);
    }

    let mut summary = summary_of(&job.loaded);
    if let Some(observed) = &observed {
        network::fill(job, &mut summary, observed);
    }
    let network = LiveNetwork::of(scenario)?;
    let (senders, request_size) = (scenario.workload.senders, machines::request_size(scenario));
    let answers = (0..senders).map(|sender| request_size.answer(sender, senders).get());
    let shortest = answers.clone().min().unwrap_or(0);
    let ideal = network.ideal(scenario, fanin_units::Duration::ZERO, BARRIER_REQUEST_BYTES, shortest)?;
    let (payload, wire) =
        answers.fold((0, 0), |(payload, wire), bytes| (payload + bytes, wire + ideal.wire_bytes(bytes)));
    let least = ideal.time(wire);
    if observed.is_some() {
        for row in &mut records.events {
            row.ideal_ps = Some(least.get());
        }
        summary.ideal = Some(fanin_report::Ideal {
            collection_time_ms: Some(least.as_millis_f64()),
            goodput_bps: Some(payload as f64 * 8.0 / least.as_secs_f64()),
            how: Some(ideal.how(Bytes::new(payload), wire)),
        });
    }
    let from = Moment::START + scenario.run.warmup;
    let last = records.events.last().map_or(0, |row| row.last_byte_ps.unwrap_or(0) + 1);
    // What Ctrl-C cut short ends with the last round.
    let stopped = stop.load(Ordering::Relaxed);
    let whole = from + scenario.run.duration;
    let until = if stopped { whole.min(Moment::new(last.max(from.get()))) } else { whole };
    summary.fill_requests(&records.events, Span { from, until }, 1);
    network::fill_ports(&mut summary, &records);
    summary.tcp = Some(result.tcp);
    summary.speed = Some(Speed {
        wall_s: Some(began.elapsed().as_secs_f64()),
        cpu_s: Some(ended_cpu_seconds() - cpu),
        ..Speed::default()
    });
    if let Some(bench) = &bench {
        network::fill_techniques(&mut summary, bench);
    }
    let mut text = summary::text(&summary) + &unrecorded(job) + &captured;
    let mut ending = if stopped { Err(Failure::Stopped) } else { Ok(()) };
    if let (Some(bench), Some(observed)) = (&bench, &observed) {
        text += &network::notes(job, bench, observed);
        if let (Ok(()), Some(reason)) = (&ending, network::bottleneck(&job.slow.scenario, observed)) {
            ending = Err(Failure::Bottleneck { reason });
        }
    }
    let mut result = RunResult::new(summary);
    result.scenario_toml = Some(job.loaded.to_toml());
    result.records = records;
    finish(job, &result, &text)?;
    if let Some(bench) = bench {
        bench.remove()?;
    }
    ending
}
