//! State that control threads share: the command handle and the last snapshot.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::capture::Captures;
use crate::command::{Command, CommandError, Control, Reply};
use crate::config::Config;
use crate::snapshot::Snapshot;

/// Age up to which a snapshot is reused, so that many clients do not load the data path.
const PICTURE_AGE_MAX: Duration = Duration::from_millis(100);

/// A running switch for its operators. Clones refer to the same switch.
#[derive(Debug, Clone)]
pub struct Operation {
    control: Control,
    captures: Captures,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    picture: Option<(Instant, Arc<Snapshot>)>,
    /// A snapshot with every station: large, and seldom requested.
    stations: Option<(Instant, Arc<Snapshot>)>,
}

impl Operation {
    /// Makes the operation of a switch from its handles.
    pub fn new(control: Control, captures: Captures) -> Self {
        Self { control, captures, seen: Arc::default() }
    }

    /// Sends a command. Snapshots from before the command are not reused.
    ///
    /// # Errors
    /// As for [`Control::send`].
    pub fn change(&self, command: &Command) -> Result<(), CommandError> {
        let result = self.control.send(command);
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Seen::default();
        result.map(|_| ())
    }

    /// Asks the workers for the current configuration.
    ///
    /// # Errors
    /// If the switch has stopped.
    pub fn config(&self) -> Result<Config, CommandError> {
        match self.control.send(&Command::Config)? {
            Reply::Config(config) => Ok(*config),
            Reply::Done | Reply::Snapshot(_) => Err(CommandError::Stopped),
        }
    }

    /// Returns a snapshot that is at most a tenth of a second old.
    ///
    /// # Errors
    /// If the switch has stopped.
    pub fn snapshot(&self, stations: bool) -> Result<Arc<Snapshot>, CommandError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let place = if stations { &mut seen.stations } else { &mut seen.picture };
        if let Some((at, picture)) = place
            && at.elapsed() < PICTURE_AGE_MAX
        {
            return Ok(Arc::clone(picture));
        }
        let picture = Arc::new(self.control.snapshot(stations)?);
        *place = Some((Instant::now(), Arc::clone(&picture)));
        Ok(picture)
    }

    /// Returns the captures of this switch.
    pub fn captures(&self) -> &Captures {
        &self.captures
    }
}
