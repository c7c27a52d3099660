//! `fanin switch capture`: frames of a port or a ring of a running switch, as pcapng.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueHint};
use fanin_switch::control::Client;

use crate::commands::switch::target::SwitchTarget;
use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(after_help = "Example: fanin switch capture --ring RING --seconds 30 --out ring.pcapng
Example: fanin switch capture --port PORT --out - | tshark -r -

The data path never waits for a capture. Frames that come faster than they are written are missing
from the file. Its statistics block (`capinfos`) has their number, as does the metric
fanin_switch_capture_dropped_frames_total.")]
#[command(group(ArgGroup::new("point").required(true).args(["port", "ring"])))]
pub(super) struct Arguments {
    /// The port: frames as they come in, and as they go out.
    #[arg(long)]
    port: Option<String>,
    /// The ring: frames that it takes in.
    #[arg(long)]
    ring: Option<String>,
    /// File to write; `-` is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: PathBuf,
    /// Seconds to capture, at most 600.
    #[arg(long, default_value_t = fanin_switch::capture::SECONDS_DEFAULT)]
    seconds: u64,
    /// Most bytes of the file, up to 1 GiB.
    #[arg(long, default_value_t = fanin_switch::capture::BYTES_DEFAULT)]
    bytes: u64,
    /// Bytes kept of each frame.
    #[arg(long, default_value_t = fanin_switch::capture::SNAP_MAX)]
    snap: u64,
    #[command(flatten)]
    target: SwitchTarget,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let point = match (&arguments.port, &arguments.ring) {
        (Some(port), _) => format!("port={}", Client::escape(port)),
        (None, ring) => format!("ring={}", Client::escape(ring.as_deref().unwrap_or_default())),
    };
    let Arguments { seconds, bytes, snap, .. } = arguments;
    let path = format!("/v1/capture?{point}&seconds={seconds}&bytes={bytes}&snap={snap}");
    let client = arguments.target.client()?;
    if arguments.out.as_os_str() == "-" {
        client.download(&path, io::stdout().lock())?;
        return Ok(());
    }
    // Made only once there is something to write, so that a refusal leaves no empty file.
    let written = client.download(&path, LazyFile { path: &arguments.out, file: None })?;
    eprintln!("{}: {written} bytes", arguments.out.display());
    Ok(())
}

/// A file that is made by the first write.
struct LazyFile<'a> {
    path: &'a PathBuf,
    file: Option<BufWriter<File>>,
}

impl Write for LazyFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.file.is_none() {
            self.file = Some(BufWriter::new(File::create(self.path)?));
        }
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}
