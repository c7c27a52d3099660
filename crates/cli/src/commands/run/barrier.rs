//! Live runs of the barrier-synchronised workloads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fanin_node::barrier::{BarrierLaunch, BarrierPlace, LiveBarrier, read_result};
use fanin_node::launch::ended_cpu_seconds;
use fanin_report::{Records, RunResult, Span, Speed};
use fanin_testbed::live::{Bench, LiveNetwork};
use fanin_units::Instant as Moment;

use super::job::{AttemptEnd, Job, end_capture, finish, start_capture, summary_of, unrecorded};
use super::measured::{check_switches, in_turns, measured};
use super::{background, network};
use crate::failure::Failure;
use crate::{interrupt, summary};

pub(super) fn run(job: &Job<'_>) -> Result<AttemptEnd, Failure> {
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
    let background = background::start(job, bench.as_ref())?;
    let mut live = LiveBarrier::start(&launch)?;
    let mut watch = bench.as_ref().map(|bench| bench.watch(slow)).transpose()?;
    let health = watch.as_ref().map(|watch| watch.health());
    let health = health.as_ref();
    let worked = live.wait_ready_with(stop, || check_switches(health)).and_then(|is_ready| match is_ready {
        false => Ok(None),
        true => measured(job, watch.as_mut(), stop, |time, tick| {
            in_turns(time, health, stop, tick, |turn, tick| Ok(live.work(turn, stop, tick)?))
        }),
    });
    let early = match worked {
        Ok(None) => None,
        Ok(Some(reason)) => {
            drop((live, watch, background));
            bench.map_or(Ok(()), Bench::remove)?;
            return Ok(AttemptEnd::Spoilt(reason));
        }
        Err(failure @ Failure::LiveSwitch(_)) if job.spoilt_by(&failure).is_none() => Some(failure),
        Err(failure) => return Err(failure),
    };
    match early {
        None => live.finish(stop)?,
        // Without a network the end does not reach the senders: they are killed.
        Some(_) => drop(live.finish(&AtomicBool::new(true))),
    }
    drop(live);
    let background = match background::finish(job, background) {
        Err(_) if early.is_some() => None,
        finished => finished?,
    };
    let captured = end_capture(job, tap)?;
    let (result, early) = match (read_result(&folder, slow), early) {
        // Before the first round there is no result.
        (Err(_), Some(failure)) => return Err(failure),
        (result, early) => (result?, early),
    };
    let mut observed = match watch.map(|watch| watch.finish(result.start_unix_us)) {
        Some(Err(_)) if early.is_some() => None,
        watched => watched.transpose()?,
    };
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
    let start_unix_us = result.start_unix_us;
    let skipped = background::fill(job, &mut summary, &mut records, background.as_ref(), start_unix_us);
    if let Some(observed) = &observed {
        network::fill(job, &mut summary, observed);
    }
    let network = LiveNetwork::of(scenario)?;
    let round = network.round(scenario)?;
    if observed.is_some() {
        for row in &mut records.events {
            row.ideal_ps = Some(round.time().get());
        }
        summary.ideal = Some(fanin_report::IdealFigures {
            collection_time_ms: Some(round.time().as_millis_f64()),
            goodput_bps: Some(round.goodput_bps()),
            how: Some(round.how()),
        });
    }
    let from = Moment::START + scenario.run.warmup;
    let last = records.events.last().map_or(0, |row| row.last_byte_ps.unwrap_or(0) + 1);
    // A run that ended early ends with the last round.
    let stopped = stop.load(Ordering::Relaxed);
    let whole = from + scenario.run.duration;
    let until = if stopped || early.is_some() { whole.min(Moment::new(last.max(from.get()))) } else { whole };
    summary.fill_requests(&records.events, Span { from, until }, 1);
    network::fill_ports(&mut summary, &records);
    summary.tcp = result.tcp;
    summary.speed = Some(Speed {
        wall_s: Some(began.elapsed().as_secs_f64()),
        cpu_s: Some(ended_cpu_seconds() - cpu),
        ..Speed::default()
    });
    if let Some(bench) = &bench {
        network::fill_techniques(&mut summary, bench);
    }
    let mut text = summary::text(&summary) + &skipped + &unrecorded(job) + &captured;
    if let Some(failure) = &early {
        text += &format!("{:<18}{failure}\n", "ended early");
    }
    if summary.tcp.is_none() {
        text += &format!("{:<18}no figures: senders were killed before they wrote theirs\n", "TCP");
    }
    let stopped = if stopped { Err(Failure::Stopped) } else { Ok(()) };
    let mut ending = early.map_or(stopped, Err);
    if let (Some(bench), Some(observed)) = (&bench, &observed) {
        text += &network::notes(job, bench, observed);
        let late_max = network::late_max(&job.slow.scenario);
        if let (Ok(()), Some(reason)) = (&ending, network::bottleneck(late_max, observed)) {
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
    ending.map(|()| AttemptEnd::Done)
}
