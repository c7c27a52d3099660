//! What the control threads share: the way to the data path, and the picture that it gave last.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::capture::Captures;
use crate::command::{Command, CommandError, Control, Reply};
use crate::config::Config;
use crate::snapshot::Snapshot;

/// A picture younger than this is shown again, so that many who look do not keep the data path busy.
const PICTURE_AGE_MAX: Duration = Duration::from_millis(100);

/// A running switch, as its operators see it. Copies are of the same switch.
#[derive(Debug, Clone)]
pub struct Operation {
    control: Control,
    captures: Captures,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    picture: Option<(Instant, Arc<Snapshot>)>,
    /// With every station, which are many and seldom asked for.
    stations: Option<(Instant, Arc<Snapshot>)>,
}

impl Operation {
    /// A switch that is controlled and captured by these handles.
    pub fn new(control: Control, captures: Captures) -> Self {
        Self { control, captures, seen: Arc::default() }
    }

    /// Changes something. Nobody sees a picture from before the change afterwards.
    ///
    /// # Errors
    /// As for [`Control::send`].
    pub fn change(&self, command: &Command) -> Result<(), CommandError> {
        let result = self.control.send(command);
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Seen::default();
        result.map(|_| ())
    }

    /// The configuration as it is now.
    ///
    /// # Errors
    /// Where the switch has stopped.
    pub fn config(&self) -> Result<Config, CommandError> {
        match self.control.send(&Command::Config)? {
            Reply::Config(config) => Ok(*config),
            Reply::Done | Reply::Snapshot(_) => Err(CommandError::Stopped),
        }
    }

    /// A picture of everything, at most a tenth of a second old.
    ///
    /// # Errors
    /// Where the switch has stopped.
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

    /// The captures of this switch.
    pub fn captures(&self) -> &Captures {
        &self.captures
    }
}
