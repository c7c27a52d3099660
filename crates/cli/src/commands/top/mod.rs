//! `fanin top`: a live view of a running system, over its metrics.

mod drops;
mod fetch;
mod live;
mod predicted;
mod roles;
mod screen;
mod series;
mod switches;
mod table;
mod target;
mod watched;

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::failure::Failure;
use crate::output;
use crate::token::read_token;
use target::targets;
use watched::{REFRESH, Watched, ask_all};

#[derive(Debug, Args)]
#[command(
    after_help = "Reads /metrics of processes (`fanin run --metrics`, `metrics.listen` of `fanin node`) and of
switches. Rates are means of the last 5 s. Keys: q or Ctrl-C leaves, the arrows and page keys
scroll.

Example: fanin top FOLDER --once"
)]
pub(crate) struct Arguments {
    /// HOST:PORT or URL of a process or switch, the path of a switch's socket, or the folder that --out of a run named.
    #[arg(value_name = "AT", required = true, value_hint = ValueHint::AnyPath)]
    at: Vec<String>,
    /// A file with the token that the HTTP interface of a switch wants.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,
    /// Print one screen as text, with rates of one second, and exit.
    #[arg(long)]
    once: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let token = arguments.token_file.as_ref().map(read_token).transpose()?;
    let mut watched: Vec<Watched> = targets(&arguments.at)?.into_iter().map(Watched::new).collect();
    if !arguments.once {
        return live::run(watched, token);
    }
    ask_all(&mut watched, token.as_deref());
    std::thread::sleep(REFRESH);
    ask_all(&mut watched, token.as_deref());
    let mut text = String::new();
    for line in screen::lines(&watched) {
        text += &line.text;
        text.push('\n');
    }
    output::print(&text)?;
    if watched.iter().all(|one| one.silence.is_some()) { Err(Failure::NoAnswer) } else { Ok(()) }
}
