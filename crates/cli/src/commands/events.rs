//! `fanin events`: content, checks and conversions of raw-data files.

use std::fmt::Write;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use fanin_events::atlas::FileHeader;
use fanin_events::convert::{ConvertError, FragmentComparison, Pairing, compare, to_atlas, to_frag};
use fanin_events::hdf5::to_hdf5;
use fanin_events::{FileSummary, Report, SizeShape, file, sample, verify};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{self, Json};

/// Faults that are printed; JSON has more.
const FAULTS_SHOWN: usize = 20;

#[derive(Debug, Args)]
#[command(
    after_help = "Formats are recognised by content: ATLAS bytestream, LHCb MDF, ALICE pages (RDH 7) and plain
fragment containers, also compressed by gzip. The samples `km3net` and `bes3` need no file.

Example: fanin events info km3net"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: EventsCommand,
}

#[derive(Debug, Subcommand)]
enum EventsCommand {
    /// Show the content of a file: events, sources, sizes, and a scenario's line for such sizes.
    #[command(after_help = "Example: fanin events info bes3 --sources")]
    Info(Info),
    /// Check every size, marker, checksum and L1 ID of a file; exit code 1 where there is a fault.
    #[command(after_help = "Example: fanin events verify bes3")]
    Verify(Verify),
    /// Write the events of a file in another format.
    #[command(after_help = "Example: fanin events convert km3net slices.data --to atlas")]
    Convert(Convert),
}

#[derive(Debug, Args)]
struct Info {
    /// A raw-data file, or the name of a sample.
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// List every source with its sizes.
    #[arg(long)]
    sources: bool,
    /// Write everything as JSON to a file; `-` is standard output, which then holds nothing else.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<Json>,
}

#[derive(Debug, Args)]
struct Verify {
    /// A raw-data file, or the name of a sample.
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Compare it, fragment by fragment, with the file that its events were made from.
    #[arg(long, value_name = "INPUT", value_hint = ValueHint::FilePath)]
    against: Option<PathBuf>,
    /// The input was replayed over and over: compare event n with input event n modulo their number.
    #[arg(long, requires = "against")]
    cycle: bool,
    /// Write everything as JSON to a file; `-` is standard output, which then holds nothing else.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<Json>,
}

#[derive(Debug, Args)]
struct Convert {
    /// A raw-data file, or the name of a sample.
    #[arg(value_hint = ValueHint::FilePath)]
    input: PathBuf,
    /// The file to write.
    #[arg(value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// The format to write; by default that of the output's suffix: .data (ATLAS), .frag, .h5 or .hdf5.
    #[arg(long, value_enum)]
    to: Option<OutputFormat>,
}

/// The formats that are written.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum OutputFormat {
    /// Full events in the ATLAS format, version 4, with checksums and file records.
    Atlas,
    /// The plain fragment container.
    Frag,
    /// Columns in an HDF5 file, for h5py and awkward. It is not read again here.
    Hdf5,
}

impl OutputFormat {
    fn of_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "data" => Some(Self::Atlas),
            "frag" => Some(Self::Frag),
            "h5" | "hdf5" => Some(Self::Hdf5),
            _ => None,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        EventsCommand::Info(arguments) => info(arguments),
        EventsCommand::Verify(arguments) => check(arguments),
        EventsCommand::Convert(arguments) => convert(arguments),
    }
}

/// Reads a file, or the sample of this name if the file does not exist.
fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    if !path.exists() {
        match path.to_str() {
            Some("km3net") => return Ok(sample::km3net()),
            Some("bes3") => return Ok(sample::bes3()),
            _ => {}
        }
    }
    file::read(path, file::LIMIT).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, reason: &impl ToString) -> Failure {
    Failure::Events { path: path.to_owned(), reason: reason.to_string() }
}

/// Writes the JSON where `--json` asks for it, and the text unless standard output holds the JSON.
fn emit(text: &str, json: Option<&Json>, value: &impl Serialize) -> Result<(), Failure> {
    if let Some(json) = json {
        json.write(value)?;
        if json.is_stdout() {
            return Ok(());
        }
    }
    output::print(text)
}

fn info(arguments: &Info) -> Result<(), Failure> {
    let bytes = read(&arguments.file)?;
    let summary = FileSummary::read(&bytes).map_err(|error| unreadable(&arguments.file, &error))?;
    // Writing to a string cannot fail.
    let mut text = format!("{summary}\n");
    if arguments.sources {
        let _ = writeln!(
            text,
            "\n{:>10}  {:>8}  {:>10}  {:>9}  {:>8}  {:>8}",
            "source", "events", "mean B", "sd B", "min B", "max B"
        );
        for source in &summary.sources {
            let fanin_events::SizeMoments { count, mean, sd, min, max, .. } = source.bytes;
            let name = format!("{:#x}", source.source);
            let _ = writeln!(text, "{name:>10}  {count:>8}  {mean:>10.1}  {sd:>9.1}  {min:>8}  {max:>8}");
        }
    }
    let _ = writeln!(text, "\nIn a scenario's [readout]:\n{}", summary.size_line(SizeShape::LogNormal));
    emit(&text, arguments.json.as_ref(), &summary)
}

#[derive(Serialize)]
struct Findings {
    #[serde(flatten)]
    report: Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<FragmentComparison>,
}

fn check(arguments: &Verify) -> Result<(), Failure> {
    let path = &arguments.file;
    let bytes = read(path)?;
    let report = verify(&bytes).map_err(|error| unreadable(path, &error))?;
    let against = match &arguments.against {
        // Events of a file with faults cannot all be compared; the faults are listed instead.
        Some(input_path) if report.fault_count == 0 => {
            let input = read(input_path)?;
            let pairing = if arguments.cycle { Pairing::Cycle } else { Pairing::SameL1Id };
            Some(compare(&bytes, &input, pairing).map_err(|error| unreadable(input_path, &error))?)
        }
        _ => None,
    };
    let findings = Findings { report, against };
    emit(&text(&findings), arguments.json.as_ref(), &findings)?;
    let failed = |finding: String| Err(Failure::Check { path: path.clone(), finding });
    match (findings.report.fault_count, &findings.against) {
        (0, Some(against)) if !against.is_same() => {
            failed("differs from the file that it was compared with".to_owned())
        }
        (0, _) => Ok(()),
        (1, _) => failed("has a fault".to_owned()),
        (count, _) => failed(format!("has {count} faults")),
    }
}

fn text(findings: &Findings) -> String {
    let Findings { report, against } = findings;
    let mut text = format!(
        "{}: {} events, {} fragments, {} bytes in them\n{} fault{}, {} checksums recomputed",
        report.format,
        report.events,
        report.fragments,
        report.fragment_bytes,
        report.fault_count,
        if report.fault_count == 1 { "" } else { "s" },
        report.checksums_checked
    );
    // Writing to a string cannot fail.
    if report.checksums_unchecked > 0 {
        let _ = write!(text, ", {} of kinds that cannot be checked here", report.checksums_unchecked);
    }
    text.push('\n');
    for fault in report.faults.iter().take(FAULTS_SHOWN) {
        let _ = writeln!(text, "  {fault}");
    }
    if report.fault_count > FAULTS_SHOWN as u64 {
        let _ = writeln!(text, "  … and {} more", report.fault_count - FAULTS_SHOWN as u64);
    }
    if report.duplicates > 0 {
        let _ = writeln!(
            text,
            "note: {} events are there again with the same fragments; the journals of their run say why",
            report.duplicates
        );
    }
    if report.out_of_order > 0 {
        let _ = writeln!(text, "note: {} events follow one with a larger L1 ID", report.out_of_order);
    }
    if report.l1_ids_absent > 0 {
        let _ =
            writeln!(text, "note: {} L1 IDs between the first and the last are absent", report.l1_ids_absent);
    }
    for offset in &report.l1_id_offsets {
        let _ = writeln!(
            text,
            "note: source {:#x} counts L1 IDs from elsewhere: always {:+} to the event's",
            offset.source, offset.offset
        );
    }
    if report.checksums_checked == 0 && against.is_none() {
        text.push_str("note: nothing in it has a checksum to recompute: its bytes may have changed\n");
    }
    if let Some(against) = against {
        let _ = writeln!(
            text,
            "compared: {} fragments the same ({} bytes), {} different, {} added, {} absent; {} events unknown",
            against.same,
            against.same_bytes,
            against.different,
            against.added,
            against.absent,
            against.unknown_events
        );
        if against.missing > 0 {
            let _ = writeln!(text, "  {} fragments are marked missing", against.missing);
        }
        if let Some(first) = against.first {
            let _ = writeln!(text, "  the first difference is at byte {first}");
        }
    }
    text
}

fn convert(arguments: &Convert) -> Result<(), Failure> {
    let path = &arguments.output;
    let Some(to) = arguments.to.or_else(|| OutputFormat::of_name(path)) else {
        return Err(Failure::NoTarget { path: path.clone() });
    };
    let bytes = read(&arguments.input)?;
    fanin_events::Events::open(&bytes).map_err(|error| unreadable(&arguments.input, &error))?;
    // A conversion that fails leaves an existing file as it was, even the input itself. A pipe is written directly.
    let direct = path.exists() && !path.is_file();
    let part = if direct { path.clone() } else { PathBuf::from(format!("{}.part", path.display())) };
    let failed = |error| Failure::Write { path: path.clone(), error };
    let out = BufWriter::new(File::create(&part).map_err(failed)?);
    let converted = match to {
        OutputFormat::Atlas => {
            let names = FileHeader { application: "fanin".to_owned(), ..FileHeader::default() };
            to_atlas(&bytes, &names, out)
        }
        OutputFormat::Frag => to_frag(&bytes, out),
        OutputFormat::Hdf5 => to_hdf5(&bytes, out),
    };
    let renamed = converted.and_then(|converted| {
        if !direct {
            std::fs::rename(&part, path).map_err(ConvertError::Io)?;
        }
        Ok(converted)
    });
    match renamed {
        Ok(converted) => output::print(&format!(
            "{} events, {} fragments, {} bytes in them\n",
            converted.events, converted.fragments, converted.fragment_bytes
        )),
        Err(error) => {
            if !direct {
                // Part of a file would look like a whole one.
                let _ = std::fs::remove_file(&part);
            }
            Err(match error {
                ConvertError::Io(error) => failed(error),
                error => unreadable(&arguments.input, &error),
            })
        }
    }
}
