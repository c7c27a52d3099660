//! `fanin node`: one process of a live system.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use fanin_node::config::{LogFormat, Role, System};
use fanin_node::process::{LifeSign, Signals, run_watched};
use fanin_node::roles::processor;
use fanin_node::{background, barrier};
use fanin_switch::ServiceNotifier;

use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(
    after_help = "The file names the scenario and says which host is which; docs/running.md describes it. After
SIGTERM the process ends when its work is finished. After SIGHUP it reads the file again.

Example: fanin node readout SYSTEM.toml --index 3 --metrics 0.0.0.0:9100"
)]
pub(crate) struct Arguments {
    /// The role of the process.
    #[arg(value_enum)]
    role: RoleName,
    /// The file that describes the system.
    #[arg(value_name = "CONFIG", value_hint = ValueHint::FilePath)]
    config: PathBuf,
    /// The number of this process in its role, from 0 (for a processor: its collector's). By default the host's
    /// name decides.
    #[arg(long, env = "FANIN_INDEX", value_name = "N")]
    index: Option<u16>,
    /// Run the supervisor of `hosts.standby`, which takes over when the other one is lost.
    #[arg(long, conflicts_with = "index")]
    standby: bool,
    /// The unit of its collector that a processor is, from 0. By default one without a processor.
    #[arg(long, value_name = "N")]
    unit: Option<u16>,
    /// Serve /metrics, /healthz and /readyz here, in place of the file's `metrics.listen`.
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// Format of log lines, in place of the file's `log.format`.
    #[arg(long, value_enum)]
    log: Option<LogName>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum RoleName {
    /// Assigns events to processing units.
    Supervisor,
    /// Holds fragments until the supervisor deletes them.
    Readout,
    /// Builds events for the processors of its host.
    Collector,
    /// Decides about events; collectors start theirs by themselves.
    Processor,
    /// Stores accepted events in files.
    Logger,
    /// Asks all senders at once, again and again: a barrier-synchronised workload.
    Aggregator,
    /// Answers an aggregator.
    Sender,
    /// Receives background traffic on a collector's host, and discards it.
    BackgroundSink,
    /// Sends background traffic from a readout's host.
    BackgroundSource,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogName {
    /// Plain text, for people.
    Text,
    /// One JSON object a line.
    Json,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    fanin_node::panic::abort_on_panic();
    processor::end_with_parent()?;
    match arguments.role {
        RoleName::Aggregator => {
            let signals = Signals::install()?;
            let system = barrier::BarrierSystem::load(&arguments.config)?;
            return Ok(barrier::aggregate(&system, &signals.stop)?);
        }
        RoleName::Sender => {
            let system = barrier::BarrierSystem::load(&arguments.config)?;
            return Ok(barrier::send(&system, arguments.index.unwrap_or(0))?);
        }
        RoleName::BackgroundSink | RoleName::BackgroundSource => {
            let signals = Signals::install()?;
            let system = background::BackgroundSystem::load(&arguments.config)?;
            let index = arguments.index.unwrap_or(0);
            return Ok(match arguments.role {
                RoleName::BackgroundSink => background::receive(&system, index, &signals.stop),
                _ => background::send(&system, index, &signals.stop),
            }?);
        }
        _ => {}
    }
    let mut system = System::load(&arguments.config)?;
    system.metrics_option = arguments.metrics;
    let role = match arguments.role {
        RoleName::Supervisor => Role::Supervisor,
        RoleName::Readout => Role::Readout,
        RoleName::Collector => Role::Collector,
        RoleName::Processor => Role::Processor,
        RoleName::Logger => Role::Logger,
        RoleName::Aggregator | RoleName::Sender | RoleName::BackgroundSink | RoleName::BackgroundSource => {
            return Ok(());
        }
    };
    let format = match arguments.log {
        Some(LogName::Text) => LogFormat::Text,
        Some(LogName::Json) => LogFormat::Json,
        None => system.log_format,
    };
    fanin_node::log::install(format, system.log_level);
    let index = match arguments.index {
        _ if arguments.standby => 1,
        Some(index) => index,
        None => system.index_here(role, &host_name())?,
    };
    if role == Role::Processor {
        return Ok(processor::run(&system, index, arguments.unit)?);
    }
    let signals = Signals::install()?;
    let mut service = ServiceNotifier::from_environment();
    let watch = |sign| match sign {
        LifeSign::Ready => service.ready(),
        LifeSign::Turn => service.watch(|| true),
        LifeSign::Stopping => service.stopping(),
    };
    Ok(run_watched(&system, role, index, &signals, watch)?)
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}
