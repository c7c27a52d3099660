//! How a command can end, and the exit code of each end. Scripts rely on the codes; CHANGELOG.md lists changes.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::output;

/// The exit code of a command that Ctrl-C stopped.
pub(crate) const INTERRUPTED: i32 = 130;

/// Why a command did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The scenario is wrong; every problem with its line and a caret.
    #[error("the scenario is wrong")]
    Scenario(#[from] fanin_scenario::Errors),
    /// The scenario cannot be planned.
    #[error(transparent)]
    Plan(#[from] fanin_plan::PlanError),
    /// The catalogue of prices cannot be used.
    #[error(transparent)]
    Catalogue(#[from] fanin_plan::CatalogueError),
    /// A file that was asked for cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Standard output cannot be written.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
}

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Self::Scenario(_) | Self::Plan(_) | Self::Catalogue(_) | Self::Write { .. } | Self::Output(_) => {
                2
            }
        }
    }

    /// Says on standard error what went wrong, and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            // Whoever closed the pipe has seen enough: that is a use, not a failure.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
            // These bring their own word "error", one for each problem.
            Self::Scenario(errors) => eprintln!("{}", errors.render(output::is_coloured(&io::stderr()))),
            _ => eprintln!("error: {self}"),
        }
        ExitCode::from(self.code())
    }
}
