//! Failures of commands, and their exit codes. Scripts rely on the codes; CHANGELOG.md lists changes.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::output;

/// The exit code of a command that Ctrl-C stopped.
pub(crate) const INTERRUPTED: i32 = 130;

/// Failures of a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The scenario is wrong; every problem with its line and a caret.
    #[error("the scenario is wrong")]
    Scenario(#[from] fanin_scenario::Errors),
    /// A raw-data file cannot be read, or is no file of a known format.
    #[error("cannot read {}: {reason}", path.display())]
    Events {
        /// Path of the file.
        path: PathBuf,
        /// Reason for the failure.
        reason: String,
    },
    /// The name of a file to be written does not say its format.
    #[error("{}: unknown output format; give --to atlas, --to frag or --to hdf5, or a name that ends in .data, .frag or .h5", path.display())]
    NoTarget {
        /// Path of the file.
        path: PathBuf,
    },
    /// A raw-data file has faults, or differs from the compared one; the details have been printed.
    #[error("{} {finding}", path.display())]
    Check {
        /// Path of the file.
        path: PathBuf,
        /// The finding, in one line.
        finding: String,
    },
    /// A folder does not hold the result of a run that can be simulated.
    #[error(
        "{} has no measurement of a laboratory: name a folder written by `fanin run --out`, with its scenario.toml",
        folder.display()
    )]
    NoLaboratory {
        /// Path of the folder.
        folder: PathBuf,
    },
    /// A laboratory is to be judged, and none was named.
    #[error("--only laboratory needs the result of a measurement; name its folder with --measured")]
    NotMeasured,
    /// A file of another tool cannot be imported.
    #[error("cannot import {}: {reason}", path.display())]
    Import {
        /// Path of the file.
        path: PathBuf,
        /// Reason for the failure.
        reason: String,
    },
    /// The scenario cannot be planned.
    #[error(transparent)]
    Plan(#[from] fanin_plan::PlanError),
    /// The catalogue of prices cannot be read.
    #[error("cannot read the catalogue {}: {error}", path.display())]
    NoCatalogue {
        /// The catalogue that was named.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The catalogue of prices cannot be used.
    #[error(transparent)]
    Catalogue(#[from] fanin_plan::CatalogueError),
    /// The scenario cannot be simulated.
    #[error(transparent)]
    Sim(#[from] fanin_runs::Error),
    /// The objective or the constraints of a search are wrong.
    #[error(transparent)]
    Goal(#[from] fanin_tune::GoalError),
    /// A setting cannot be tuned.
    #[error(transparent)]
    Key(#[from] fanin_tune::TunedKeyError),
    /// The catalogue of switches cannot be used.
    #[error(transparent)]
    Gear(#[from] fanin_tune::GearError),
    /// No setting to tune was given.
    #[error("nothing to tune: name settings, for example --over tor.buffer,shaping.credits=60..1200")]
    NothingToTune,
    /// No tried point meets the constraints.
    #[error("{finding}")]
    Infeasible {
        /// The ranges, the constraints and the nearest point.
        finding: String,
    },
    /// The switch does not start.
    #[error(transparent)]
    Switch(#[from] fanin_switch::StartError),
    /// The switch's control interface cannot be opened as configured.
    #[error(transparent)]
    Control(#[from] fanin_switch::control::ControlStartError),
    /// A running switch does not answer, or refuses.
    #[error(transparent)]
    Client(#[from] fanin_switch::control::ClientError),
    /// Neither a path nor an address.
    #[error("`{given}` is neither IP:PORT nor the path of a socket, which contains a `/`")]
    NoAddress {
        /// The given text.
        given: String,
    },
    /// The token cannot be read.
    #[error("cannot read the token in {}: {error}", path.display())]
    NoToken {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Neither an address nor a folder to watch.
    #[error("`{given}` is not a target: give HOST:PORT, the path of a socket, or the folder of a run")]
    NoTop {
        /// The given text.
        given: String,
    },
    /// The folder names nothing that serves metrics.
    #[error(
        "no process in {} serves metrics: start the run with --metrics, and name its --out folder",
        folder.display()
    )]
    NoMetrics {
        /// The folder that was named.
        folder: PathBuf,
    },
    /// A barrier workload serves no metrics.
    #[error("--predicted is for event building: a barrier workload serves no metrics")]
    NoBands,
    /// A live view needs a terminal.
    #[error("standard output is not a terminal; `fanin top --once` prints one screen as text")]
    NoTerminal,
    /// No target of a view answered.
    #[error("no process and no switch answered")]
    NoAnswer,
    /// An argument is not KEY=VALUE.
    #[error("`{given}` has no `=`; write for example rate=\"344 Mb/s\"")]
    NoChange {
        /// The given text.
        given: String,
    },
    /// The switch stopped with frames in its queues.
    #[error("{frames} frames were still queued when the time to drain was over (switch.drain)")]
    Undelivered {
        /// Number of frames that were still queued.
        frames: u64,
    },
    /// The scenario's network cannot be built.
    #[error(transparent)]
    Network(#[from] fanin_network::NetworkError),
    /// The arguments of a process of a live system contradict its configuration.
    #[error(transparent)]
    Config(#[from] fanin_node::config::ConfigError),
    /// The index of this process of a live system is unknown.
    #[error(transparent)]
    Index(#[from] fanin_node::config::IndexError),
    /// A process of a live system cannot work.
    #[error(transparent)]
    Process(#[from] fanin_node::node::ProcessError),
    /// A live system cannot be started.
    #[error(transparent)]
    Launch(#[from] fanin_node::launch::LaunchError),
    /// The journals of a live system cannot be read.
    #[error(transparent)]
    Journal(#[from] fanin_node::journal::JournalError),
    /// The TCP counters of a live system cannot be read.
    #[error(transparent)]
    Counted(#[from] fanin_node::tcp::CountedError),
    /// The windows that a live system traced cannot be read.
    #[error(transparent)]
    Trace(#[from] fanin_node::trace::TraceError),
    /// The capture cannot run.
    #[error(transparent)]
    Tap(#[from] fanin_testbed::TapError),
    /// A live system broke a promise.
    #[error("the audit failed: {0}")]
    Audit(#[from] fanin_node::audit::AuditFailure),
    /// A folder cannot be audited.
    #[error("nothing to audit in {}: {reason}", folder.display())]
    NothingToAudit {
        /// The folder that was named.
        folder: PathBuf,
        /// Reason for the refusal.
        reason: String,
    },
    /// A run assigned no event.
    #[error("no event was assigned: there is nothing to prove")]
    NothingAssigned,
    /// A run ended without a process of an indispensable role.
    #[error("no {roles} was left when the run ended: each had ended more than 20 times in a row")]
    NoneLeft {
        /// Names of the roles.
        roles: String,
    },
    /// Fragments are missing, and readouts ended.
    #[error("{missing} fragments are missing, and these readouts ended: {readouts}")]
    EndedReadouts {
        /// Number of missing fragments.
        missing: u64,
        /// The readouts that ended before the system stopped.
        readouts: String,
    },
    /// Fragments are missing, and readouts did not work all the time, as on a machine that is too slow.
    #[error("{missing} fragments are missing, and the readouts did not work all the time: {readouts}")]
    HungReadouts {
        /// Number of missing fragments.
        missing: u64,
        /// The readouts that hung, waited for a disk, or were ended by force.
        readouts: String,
    },
    /// The network of a live run cannot be built, or its switches do not run.
    #[error(transparent)]
    Bench(#[from] fanin_testbed::live::BenchError),
    /// The scenario has settings that a live run does not support.
    #[error(transparent)]
    Refused(#[from] fanin_testbed::live::LiveRefusal),
    /// The machine does not hold the scale that was asked for.
    #[error(transparent)]
    TooFast(#[from] fanin_testbed::live::TooFast),
    /// A switch of a live run failed while it ran.
    #[error(transparent)]
    LiveSwitch(#[from] fanin_testbed::live::SwitchError),
    /// A barrier-synchronised workload does not run.
    #[error(transparent)]
    Barrier(#[from] fanin_node::barrier::BarrierError),
    /// Background traffic does not run.
    #[error("background traffic: {0}")]
    Background(#[from] fanin_node::background::BackgroundError),
    /// The leftovers of a killed run cannot be removed.
    #[error(transparent)]
    Ledger(#[from] fanin_testbed::LedgerError),
    /// Namespaces were asked for and cannot be.
    #[error("network namespaces need {missing}; see `fanin run --check`; `--loopback` needs none")]
    NoNamespaces {
        /// The missing privilege or feature.
        missing: String,
    },
    /// The machine lacks features of a live run; the list has been printed.
    #[error("features marked NO are missing; runs that do not need them work")]
    Incomplete,
    /// The machine, not the network, made the result.
    #[error("this measurement is invalid, the machine was the bottleneck: {reason}")]
    Bottleneck {
        /// Reason for the failure.
        reason: String,
    },
    /// A result cannot be written.
    #[error(transparent)]
    Result(#[from] fanin_report::WriteError),
    /// No claim has such a number.
    #[error("no claim's number begins with {ids}; `fanin reproduce` lists them all")]
    NoClaim {
        /// The requested numbers.
        ids: String,
    },
    /// The system ran, and events were lost or collected more than once.
    #[error("{lost} events were lost, {duplicated} collected more than once")]
    Lost {
        /// Number of lost events.
        lost: u64,
        /// Number of events that came twice.
        duplicated: u64,
    },
    /// The simulation stalled.
    #[error("{diagnosis}")]
    Stalled {
        /// The connections and ports that wait.
        diagnosis: String,
    },
    /// Claims do not stand as they should.
    #[error("these claims differ from the record: {ids}")]
    Claims {
        /// Numbers of the claims.
        ids: String,
    },
    /// Cases of the validation set differ.
    #[error("these cases missed their goals or were not measured: {cases}")]
    Validation {
        /// Names of the cases.
        cases: String,
    },
    /// The folder has no case to validate.
    #[error("{} has no case{}", folder.display(), if only.is_empty() { String::new() } else { format!(" whose name begins with {only}") })]
    NoCases {
        /// Path of the folder.
        folder: PathBuf,
        /// The requested names.
        only: String,
    },
    /// The baseline of the validation set cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Baseline {
        /// Path of the file.
        path: PathBuf,
        /// Reason for the failure.
        reason: String,
    },
    /// A live run of a search has no result, or lost data.
    #[error("the run with {set} failed, and the search ends: {reason}")]
    TrialRun {
        /// The settings of the run.
        set: String,
        /// Reason for the failure.
        reason: String,
    },
    /// Cases cannot be run without privileges.
    #[error("{reason}")]
    Unprivileged {
        /// The error of `fanin run`.
        reason: String,
    },
    /// Points of a sweep cannot be simulated.
    #[error("these points have no result: {points}")]
    Unplayable {
        /// Settings of the points.
        points: String,
    },
    /// The user pressed Ctrl-C.
    #[error("stopped; the results until then are written")]
    Stopped,
    /// A result cannot be read.
    #[error(transparent)]
    Read(#[from] fanin_report::ReadError),
    /// A folder that was asked for has the name of a file.
    #[error("cannot write into {}: it is a file; name a folder", path.display())]
    NotAFolder {
        /// The file in the place of a folder.
        path: PathBuf,
    },
    /// A file that was asked for has the name of a folder.
    #[error("cannot write {}: it is a folder; name a file in it, such as {}", path.display(), path.join("result.json").display())]
    NotAFile {
        /// The folder in the place of a file.
        path: PathBuf,
    },
    /// A setting is swept by two options.
    #[error("`{key}` is swept twice: give all its values at once, as in --sweep {key}=V1,V2")]
    SweptTwice {
        /// Name of the setting.
        key: String,
    },
    /// The seed is swept, and another option sets the seed of each point.
    #[error("--sweep run.seed and {option} both choose the seeds: leave one of them out")]
    SeedTwice {
        /// The other option.
        option: &'static str,
    },
    /// The folder of a sweep holds points in the other layout.
    #[error("{} holds a sweep made {how} --resume: choose another folder, or sweep {how} --resume", folder.display())]
    OtherLayout {
        /// The folder of `--out`.
        folder: PathBuf,
        /// `with` or `without`.
        how: &'static str,
    },
    /// A file that is there would be replaced.
    #[error("{} exists: give another name, or --force to replace it", path.display())]
    Exists {
        /// Path of the file.
        path: PathBuf,
    },
    /// No usable answer came to a question.
    #[error("`{given}` is not a valid answer to: {question}")]
    Unanswered {
        /// The question asked.
        question: String,
        /// The last answer.
        given: String,
    },
    /// A file that was asked for cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Neither journals nor tables know the event.
    #[error("no event {event} in {}", folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", "))]
    NoEvent {
        /// Identifier of the event.
        event: u64,
        /// The folders of the run.
        folders: Vec<PathBuf>,
    },
    /// Standard output cannot be written.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
}

impl Failure {
    /// Makes the failure of a simulation. A refused setting is shown at its place in the scenario's file.
    pub(crate) fn simulation(error: fanin_runs::Error, loaded: &fanin_scenario::Loaded) -> Self {
        match error.setting(&loaded.scenario) {
            Some(refused) => Self::Scenario(loaded.refusal(&refused.key, refused.message, refused.help)),
            None => Self::Sim(error),
        }
    }

    /// Returns whether a scenario is refused, so that other scenarios may still be simulated.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Scenario(_) | Self::Sim(_))
    }

    /// Returns true for a live run whose processes or switches hardly ran, as on a machine that is too slow for it. At a smaller
    /// scale the run may succeed. A process that ended is another failure.
    pub(crate) fn is_of_slow_machine(&self) -> bool {
        match self {
            Self::Launch(fanin_node::launch::LaunchError::NotReady { ended, .. }) => ended.is_empty(),
            Self::Bench(fanin_testbed::live::BenchError::Switch(error)) | Self::LiveSwitch(error) => {
                error.is_late()
            }
            Self::Barrier(error) => matches!(error, fanin_node::barrier::BarrierError::NotReady { .. }),
            _ => false,
        }
    }

    fn code(&self) -> u8 {
        match self {
            Self::Lost { .. }
            | Self::Stalled { .. }
            | Self::Claims { .. }
            | Self::Validation { .. }
            | Self::Check { .. }
            | Self::Infeasible { .. }
            | Self::Undelivered { .. }
            | Self::NothingAssigned
            | Self::NoneLeft { .. }
            | Self::EndedReadouts { .. }
            | Self::HungReadouts { .. }
            | Self::NoAnswer => 1,
            Self::Switch(error) if error.is_unsupported() => 3,
            Self::Tap(fanin_testbed::TapError::NotPermitted) => 3,
            Self::Unprivileged { .. } => 3,
            Self::NoNamespaces { .. } | Self::Incomplete => 3,
            Self::Bench(error) if error.is_unsupported() => 3,
            Self::Bench(_) if self.is_of_slow_machine() => 1,
            Self::LiveSwitch(_) => 1,
            Self::Barrier(error) if !error.is_permanent() => 1,
            Self::Background(error) if !error.is_permanent() => 1,
            Self::Bottleneck { .. } | Self::TooFast(_) => 4,
            Self::Process(error) if !error.is_permanent() => 1,
            Self::TrialRun { .. } => 1,
            Self::Audit(_) | Self::Launch(fanin_node::launch::LaunchError::Ended { .. }) => 1,
            Self::Launch(fanin_node::launch::LaunchError::NotReady { .. }) => 1,
            Self::Stopped => INTERRUPTED as u8,
            Self::Scenario(_)
            | Self::Import { .. }
            | Self::Bench(_)
            | Self::Refused(_)
            | Self::Barrier(_)
            | Self::Background(_)
            | Self::Ledger(_)
            | Self::Switch(_)
            | Self::Control(_)
            | Self::Client(_)
            | Self::NoAddress { .. }
            | Self::NoToken { .. }
            | Self::NoTop { .. }
            | Self::NoMetrics { .. }
            | Self::NoBands
            | Self::NothingToAudit { .. }
            | Self::NoTerminal
            | Self::NoChange { .. }
            | Self::Events { .. }
            | Self::NoTarget { .. }
            | Self::Plan(_)
            | Self::NoCatalogue { .. }
            | Self::NoLaboratory { .. }
            | Self::Catalogue(_)
            | Self::Sim(_)
            | Self::Goal(_)
            | Self::Key(_)
            | Self::NothingToTune
            | Self::NotMeasured
            | Self::Gear(_)
            | Self::Network(_)
            | Self::Config(_)
            | Self::Index(_)
            | Self::Process(_)
            | Self::Launch(_)
            | Self::Journal(_)
            | Self::Counted(_)
            | Self::Trace(_)
            | Self::Tap(_)
            | Self::Result(_)
            | Self::NoClaim { .. }
            | Self::NoEvent { .. }
            | Self::NoCases { .. }
            | Self::Baseline { .. }
            | Self::Read(_)
            | Self::NotAFolder { .. }
            | Self::NotAFile { .. }
            | Self::Exists { .. }
            | Self::SweptTwice { .. }
            | Self::SeedTwice { .. }
            | Self::OtherLayout { .. }
            | Self::Unanswered { .. }
            | Self::Write { .. }
            | Self::Unplayable { .. }
            | Self::Output(_) => 2,
        }
    }

    /// Prints the failure on standard error, and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            // A reader that closes the pipe, such as `head`, has read enough: no failure.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
            // The rendered problems have a word "error" of their own.
            Self::Scenario(errors) => complain(&errors.render(output::is_coloured(&io::stderr()))),
            _ => complain(&format!("error: {self}")),
        }
        ExitCode::from(self.code())
    }
}

/// Writes to standard error. A closed standard error is ignored.
fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
