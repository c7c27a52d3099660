//! The arguments of `fanin run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use crate::output::{self, Json};

#[derive(Debug, Args)]
#[command(
    after_help = "Every role is a process of its own. With root, each host is a network namespace, and each link a
pair of virtual devices. The links meet in a software switch with the scenario's buffers and rates.
Without root, all processes meet on 127.0.0.1. Journals, logs and stored events lie in the folder
`live` of --out.

Example: fanin run replay --loopback --set \"run.duration=1 s\" --out out/run

Exit codes: 1 events were lost, doubled or damaged; 3 a privilege or a feature of the kernel is
missing. Also 4 this machine was the bottleneck; 130 Ctrl-C. Results are written in each case."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) source: OptionalSource,
    /// Seed of all random streams, in place of the scenario's `run.seed`.
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Write summary, tables, resolved scenario and page into a folder, and keep the live system's files.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) out: Option<PathBuf>,
    /// Delete the files of an earlier run in the folder of --out, rather than moving them aside.
    #[arg(long, requires = "out")]
    pub(super) overwrite: bool,
    /// Write the summary as JSON to a file; `-` is standard output, which then holds nothing else.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) json: Option<Json>,
    /// Place of the processes.
    #[arg(long, value_enum, default_value_t = Place::Auto)]
    pub(super) place: Place,
    /// The same as `--place loopback`.
    #[arg(long, conflicts_with = "place")]
    pub(super) loopback: bool,
    /// Capture segments, cut to headers, as pcapng: those that arrive at the host of `record.capture`, or, on
    /// 127.0.0.1, those between the processes. Needs CAP_NET_RAW.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) pcap: Option<PathBuf>,
    /// Write events, watched queues and watched windows as a trace that Perfetto opens (<https://ui.perfetto.dev>).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) trace: Option<PathBuf>,
    /// Serve the metrics of every process, each at a free port of its host that is printed.
    #[arg(long)]
    pub(super) metrics: bool,
    /// Show no progress and no summary.
    #[arg(long, short)]
    pub(super) quiet: bool,
    /// Only list this machine's features for a live run, and the missing ones with their use.
    #[arg(long, conflicts_with_all = ["clean", "source", "out", "json"])]
    pub(super) check: bool,
    /// Only remove the remains of killed runs; live runs are not touched.
    #[arg(long, conflicts_with_all = ["source", "out", "json"])]
    pub(super) clean: bool,
}

/// The source, as [`Source`], but absent with `--check` and `--clean`.
#[derive(Debug, Args)]
pub(super) struct OptionalSource {
    /// A scenario file, or the name of a preset (`fanin scenario list`).
    #[arg(value_name = "SCENARIO", value_hint = ValueHint::FilePath, required_unless_present_any = ["check", "clean"])]
    pub(super) source: Option<String>,
    /// Override one setting, checked like the file itself; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(super) sets: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Place {
    /// Namespaces where this user may make them, otherwise the loopback.
    Auto,
    /// All on 127.0.0.1: the applications for real, without a network to measure.
    Loopback,
    /// Each host a network namespace, joined by the software switch; needs root.
    Namespaces,
}

impl Arguments {
    /// Returns the place that the arguments ask for.
    pub(super) fn wanted_place(&self) -> Place {
        if self.loopback { Place::Loopback } else { self.place }
    }

    /// Returns true if text for people is printed.
    pub(super) fn prints(&self) -> bool {
        !self.quiet && output::is_for_text(&self.json)
    }
}
