//! Commands to a running switch. A bounded queue carries a command to every worker, which applies it between two rounds. No
//! queued frame is lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fanin_units::Rate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::address::{Mac, Vlan};
use crate::config::{Config, Ecn, ImpairSpec, Mistake, RingSpec, RuleSpec, StationSpec, StormSpec};
use crate::snapshot::Snapshot;

/// Commands that may wait for a worker.
const QUEUE_LEN: usize = 64;
/// The longest time to wait for a worker's answer.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// A command to a running switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "command", content = "with")]
pub enum Command {
    /// Adds a ring, which no rule refers to yet.
    AddRing(RingSpec),
    /// Changes capacity, rate, burst, priority, mark or alarm of the ring of this name. Queued frames stay.
    SetRing(RingSpec),
    /// Removes a ring once it has drained. No rule may refer to it.
    RemoveRing {
        /// Name of the ring.
        name: String,
    },
    /// Appends a rule, after those of its priority.
    AddRule(RuleSpec),
    /// Removes a rule.
    RemoveRule {
        /// Name of the rule.
        name: String,
    },
    /// Changes a port.
    SetPort(PortChange),
    /// Adds a station that is neither learned nor forgotten.
    AddStation(StationSpec),
    /// Removes a station.
    RemoveStation {
        /// MAC address of the station.
        mac: Mac,
        /// The station's VLAN, if the switch separates VLANs.
        vlan: Option<Vlan>,
    },
    /// Forgets all learned stations, or those of one port.
    FlushStations {
        /// The port's name.
        port: Option<String>,
    },
    /// Resets all high-water marks.
    ResetMarks,
    /// Takes a snapshot.
    Snapshot {
        /// True to include every station.
        stations: bool,
    },
    /// Returns the current configuration.
    Config,
}

impl Command {
    /// Returns true if workers must check the command before they apply it.
    const fn changes(&self) -> bool {
        !matches!(self, Self::ResetMarks | Self::Snapshot { .. } | Self::Config)
    }
}

/// A change of a port. Absent settings stay.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PortChange {
    /// Name of the port to change.
    pub name: String,
    /// The port's rate; zero removes the limit.
    pub rate: Option<Rate>,
    /// True to flood frames to unknown stations out of it.
    pub flood: Option<bool>,
    /// New limits of storm control.
    pub storm: Option<StormSpec>,
    /// Congestion signals of its plain queue: of frames that no rule sends to a ring.
    pub ecn: Option<Ecn>,
    /// Impairment. Delayed frames keep their departure times.
    pub impair: Option<ImpairSpec>,
}

/// The answer to a command.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The command was applied.
    Done,
    /// The requested value.
    Snapshot(Box<Snapshot>),
    /// The requested value.
    Config(Box<Config>),
}

/// Reason for refusing a command. A refused command has changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// Settings are wrong.
    #[error("{}", .0.iter().map(Mistake::with_key).collect::<Vec<_>>().join("; "))]
    Wrong(Vec<Mistake>),
    /// The name is unknown.
    #[error("there is no {kind} `{name}`")]
    Unknown {
        /// A port, ring, rule or station.
        kind: &'static str,
        /// The name given.
        name: String,
    },
    /// The name is taken.
    #[error("there is a {kind} `{name}` already")]
    Exists {
        /// A ring or rule.
        kind: &'static str,
        /// The name given.
        name: String,
    },
    /// Rules refer to the ring.
    #[error("the rule `{rule}` sends frames to the ring `{ring}`: remove it first")]
    InUse {
        /// The ring that was to be removed.
        ring: String,
        /// A rule that names it.
        rule: String,
    },
    /// A ring cannot move to another port.
    #[error("the ring `{ring}` belongs to port `{port}`; remove it and add another")]
    Moved {
        /// The ring that was to be moved.
        ring: String,
        /// The port that it belongs to.
        port: String,
    },
    /// A table of the switch is full.
    #[error("{message}")]
    Full {
        /// The table and its limit.
        message: String,
    },
    /// The queue of commands is full.
    #[error("{QUEUE_LEN} commands wait already: try again")]
    Busy,
    /// The switch has stopped, or does not answer.
    #[error("the switch has stopped")]
    Stopped,
}

/// The two phases of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Checks the command and changes nothing.
    Check,
    /// Applies the command, which all workers have accepted.
    Do,
}

/// A command and the channel for its answer.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) command: Command,
    pub(crate) stage: Stage,
    pub(crate) reply: SyncSender<Result<Reply, CommandError>>,
}

/// A worker's end of the command queue.
#[derive(Debug)]
pub(crate) struct Commands {
    queue: Receiver<Request>,
    pending: Arc<AtomicBool>,
}

impl Commands {
    /// Takes the next command. Costs one load if none waits.
    #[inline]
    pub(crate) fn poll(&self) -> Option<Request> {
        if !self.pending.load(Ordering::Acquire) {
            return None;
        }
        self.poll_queue()
    }

    /// Returns true if a command may be waiting.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Acquire)
    }

    #[cold]
    fn poll_queue(&self) -> Option<Request> {
        match self.queue.try_recv() {
            Ok(request) => Some(request),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => {
                self.pending.store(false, Ordering::Release);
                // A command may have arrived between the check and the store.
                self.queue.try_recv().ok()
            }
        }
    }
}

/// A function that wakes a sleeping worker.
pub(crate) type WakeWorker = Box<dyn Fn() + Send + Sync>;

struct Line {
    queue: SyncSender<Request>,
    pending: Arc<AtomicBool>,
    wake: WakeWorker,
}

/// Sends a request to every worker and collects the answers.
fn ask(
    lines: &[Line],
    command: &Command,
    stage: Stage,
) -> Result<Vec<Result<Reply, CommandError>>, CommandError> {
    let mut waiting = Vec::new();
    for line in lines {
        let (reply, answer) = sync_channel(1);
        let request = Request { command: command.clone(), stage, reply };
        // Commands are sent one at a time, so the queue has room unless its worker has stopped.
        line.queue.try_send(request).map_err(|error| match error {
            std::sync::mpsc::TrySendError::Full(_) => CommandError::Busy,
            std::sync::mpsc::TrySendError::Disconnected(_) => CommandError::Stopped,
        })?;
        line.pending.store(true, Ordering::Release);
        (line.wake)();
        waiting.push(answer);
    }
    waiting
        .iter()
        .map(|answer| answer.recv_timeout(REPLY_TIMEOUT).map_err(|_| CommandError::Stopped))
        .collect()
}

/// Handle that controls a running switch, from any thread.
#[derive(Clone)]
pub struct Control {
    lines: Arc<Mutex<Vec<Line>>>,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Control").finish_non_exhaustive()
    }
}

impl Control {
    /// Makes one queue for each worker; `wakes` wakes the workers.
    pub(crate) fn new(wakes: Vec<WakeWorker>) -> (Self, Vec<Commands>) {
        let (mut lines, mut ends) = (Vec::new(), Vec::new());
        for wake in wakes {
            let (queue, end) = sync_channel(QUEUE_LEN);
            let pending = Arc::new(AtomicBool::new(false));
            lines.push(Line { queue, pending: Arc::clone(&pending), wake });
            ends.push(Commands { queue: end, pending });
        }
        (Self { lines: Arc::new(Mutex::new(lines)) }, ends)
    }

    /// Sends a command to every worker and waits for the answers. All workers see all commands in the same order. All
    /// workers check a change before any applies it: it applies to all or to none.
    ///
    /// # Errors
    /// If it is refused, or the switch has stopped. Nothing has changed, unless a worker died while it applied the command.
    pub fn send(&self, command: &Command) -> Result<Reply, CommandError> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if command.changes() {
            let mut refusals = ask(&lines, command, Stage::Check)?.into_iter().filter_map(Result::err);
            let refusal = match command {
                // One worker that knows the station is enough.
                Command::RemoveStation { .. } => refusals.nth(lines.len().saturating_sub(1)),
                _ => refusals.next(),
            };
            if let Some(refusal) = refusal {
                return Err(refusal);
            }
        }
        let mut joined: Option<Reply> = None;
        for reply in ask(&lines, command, Stage::Do)? {
            match (&mut joined, reply?) {
                (Some(Reply::Snapshot(all)), Reply::Snapshot(more)) => all.merge(*more),
                (Some(_), _) => {}
                (none, reply) => *none = Some(reply),
            }
        }
        joined.ok_or(CommandError::Stopped)
    }

    /// Takes a snapshot.
    ///
    /// # Errors
    /// If the switch has stopped.
    pub fn snapshot(&self, stations: bool) -> Result<Snapshot, CommandError> {
        match self.send(&Command::Snapshot { stations })? {
            Reply::Snapshot(snapshot) => Ok(*snapshot),
            Reply::Done | Reply::Config(_) => Err(CommandError::Stopped),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs workers with given answers to the check; returns the commands that they applied.
    fn sent_to(
        answers: &[Result<(), CommandError>],
        command: &Command,
    ) -> (Result<Reply, CommandError>, Vec<usize>) {
        let (control, ends) = Control::new(answers.iter().map(|_| Box::new(|| ()) as WakeWorker).collect());
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let worker = |(commands, answer): (Commands, Result<(), CommandError>)| {
                let is_over = &is_over;
                scope.spawn(move || {
                    let mut done = 0;
                    while !is_over.load(Ordering::Acquire) {
                        let Some(request) = commands.poll() else {
                            std::thread::yield_now();
                            continue;
                        };
                        let reply = match request.stage {
                            Stage::Check => answer.clone().map(|()| Reply::Done),
                            Stage::Do => Ok(Reply::Done),
                        };
                        done += usize::from(request.stage == Stage::Do);
                        request.reply.send(reply).unwrap();
                    }
                    done
                })
            };
            let workers: Vec<_> = ends.into_iter().zip(answers.iter().cloned()).map(worker).collect();
            let result = control.send(command);
            is_over.store(true, Ordering::Release);
            (result, workers.into_iter().map(|worker| worker.join().unwrap()).collect())
        })
    }

    #[test]
    fn a_command_that_one_worker_refuses_none_carries_out() {
        let full = || Err(CommandError::Full { message: "here".to_owned() });
        let add = Command::AddRing(RingSpec::new("r", "p"));
        assert_eq!(sent_to(&[Ok(()), Ok(())], &add), (Ok(Reply::Done), vec![1, 1]));
        for answers in [[Ok(()), full(), Ok(())], [full(), Ok(()), Ok(())], [Ok(()), Ok(()), full()]] {
            let (result, done) = sent_to(&answers, &add);
            assert_eq!((result, done), (full().map(|()| Reply::Done), vec![0, 0, 0]));
        }
    }

    #[test]
    fn a_station_that_one_worker_knows_is_forgotten() {
        let gone = || Err(CommandError::Unknown { kind: "station", name: "it".to_owned() });
        let remove = Command::RemoveStation { mac: Mac::default(), vlan: None };
        assert_eq!(sent_to(&[gone(), Ok(())], &remove), (Ok(Reply::Done), vec![1, 1]));
        assert_eq!(sent_to(&[gone(), gone()], &remove), (gone().map(|()| Reply::Done), vec![0, 0]));
    }
}
