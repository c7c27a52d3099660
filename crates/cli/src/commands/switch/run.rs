//! `fanin switch CONFIG`: runs the switch.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::{Args, ValueHint};
use fanin_switch::config::ControlSpec;
use fanin_switch::control::{ControlServer, ControlSettings};
use fanin_switch::{Config, Running, ServiceNotifier, SwitchResult};
use fanin_units::Bytes;

use crate::failure::Failure;
use crate::token::read_token;
use crate::{interrupt, output};

/// Interval at which a stop is checked for.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// The text below the help.
pub(super) const AFTER_HELP: &str = "Example: fanin switch --example > switch.toml

Ctrl-C or SIGTERM stops the switch: it accepts no more frames, and ends when its queues are empty.
The exit code is then 0, or 1 if frames are left after the drain timeout. A second Ctrl-C ends it at
once. It needs root, or the capabilities CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF, which it gives up
once its ports are open.";

#[derive(Debug, Args)]
#[group(id = "run")]
pub(super) struct Arguments {
    /// The switch: its ports, rings and rules, as TOML.
    #[arg(value_name = "CONFIG", value_hint = ValueHint::FilePath, required_unless_present = "example")]
    config: Option<PathBuf>,
    /// Print a configuration to begin with.
    #[arg(long, conflicts_with = "config")]
    example: bool,
    /// Only check the configuration, its cores and interfaces on this machine, and the length of its token.
    #[arg(long)]
    check: bool,
    /// Say nothing while all is well.
    #[arg(long, short)]
    quiet: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Some(path) = &arguments.config else {
        return output::print(fanin_switch::config::EXAMPLE);
    };
    let loaded = if arguments.check {
        fanin_switch::config::load_for_this_machine(path)?
    } else {
        fanin_switch::config::load(path)?
    };
    output::warn(&loaded.warnings);
    let config = loaded.config;
    if arguments.check {
        if let Some(settings) = control_settings(&config)? {
            settings.check()?;
        }
        if !arguments.quiet {
            output::print(&format!("{} is a switch: {}\n", path.display(), outline(&config)))?;
        }
        return Ok(());
    }
    let stop = interrupt::flag();
    let settings = control_settings(&config)?;
    let running = Running::start(&config)?;
    // The server's threads start after the capabilities were dropped, and so have none.
    let server = match &settings {
        Some(settings) => Some(ControlServer::start(settings, running.operation())?),
        None => None,
    };
    if !arguments.quiet {
        output::print(&format!("{} is running: {}\n", config.switch.name, outline(&config)))?;
        if let Some(address) = server.as_ref().and_then(ControlServer::http_address) {
            output::print(&format!("control and metrics at http://{address}\n"))?;
        }
    }
    let mut service = ServiceNotifier::from_environment();
    service.ready();
    while !stop.load(Ordering::Relaxed) && !running.has_failed() {
        std::thread::sleep(CHECK_EVERY);
        // Each worker answers between two of its rounds.
        service.watch(|| running.control().snapshot(false).is_ok());
    }
    service.stopping();
    let ended = running.stop();
    if !arguments.quiet {
        output::print(&text(&ended))?;
    }
    match ended.abandoned {
        0 => Ok(()),
        frames => Err(Failure::Undelivered { frames }),
    }
}

/// Returns the addresses at which the switch listens for operators; `None` if none is configured.
fn control_settings(config: &Config) -> Result<Option<ControlSettings>, Failure> {
    let ControlSpec { socket, http, token_file, authentication } = &config.control;
    if socket.is_none() && http.is_none() {
        return Ok(None);
    }
    let token = token_file.as_ref().map(|path| read_token(&PathBuf::from(path))).transpose()?;
    let socket = socket.as_ref().map(PathBuf::from);
    Ok(Some(ControlSettings { socket, http: *http, token, authentication: *authentication }))
}

/// Returns a configuration in a few words.
fn outline(config: &Config) -> String {
    let many = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    format!(
        "{}, {}, {}, {} of packet memory",
        many(config.port.len(), "port"),
        many(config.ring.len(), "ring"),
        many(config.rule.len(), "rule"),
        config.switch.memory
    )
}

/// Returns a table of the frames and drops of each port and ring.
fn text(ended: &SwitchResult) -> String {
    let mut lines = vec![format!(
        "{:<20} {:>12} {:>12} {:>12} {:>12} {:>12}",
        "port, ring", "frames in", "frames out", "dropped", "most frames", "most bytes"
    )];
    let total = |dropped: &[fanin_switch::Dropped]| -> u64 { dropped.iter().map(|d| d.tally.frames).sum() };
    for port in &ended.snapshot.ports {
        let dropped = total(&port.dropped) + total(&port.queue.dropped);
        lines.push(format!(
            "{:<20} {:>12} {:>12} {:>12} {:>12} {:>12}",
            port.name,
            port.received.frames,
            port.sent.frames,
            dropped,
            port.queue.frames_max,
            Bytes::new(port.queue.bytes_max).to_string()
        ));
        for ring in ended.snapshot.rings.iter().filter(|ring| ring.port == port.name) {
            let queue = &ring.queue;
            lines.push(format!(
                "  {:<18} {:>12} {:>12} {:>12} {:>12} {:>12}",
                ring.name,
                queue.enqueued.frames,
                queue.departed.frames,
                total(&queue.dropped),
                queue.frames_max,
                Bytes::new(queue.bytes_max).to_string()
            ));
        }
    }
    lines.push(String::new());
    lines.join("\n")
}
