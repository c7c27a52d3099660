//! Reopens interfaces that were deleted and created again, on the only thread with the capabilities for it.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::device::Device;
use super::error::OpenError;
use super::port::{PortRecipe, XdpPort};
use super::queue::Umem;
use crate::sys;

/// Interval between two checks for a deleted interface.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time after which an error that should pass is reported.
const PASSES_WITHIN: Duration = Duration::from_secs(5);

/// A request to open an interface again.
struct ReopenRequest {
    port: usize,
    recipe: PortRecipe,
    /// The packet memory of another port.
    umem: Option<Umem>,
    answer: Sender<Reopened>,
    lasting: LastingError,
}

/// Notes since when an interface that is there cannot be opened.
#[derive(Debug, Default)]
struct LastingError {
    since: Option<Instant>,
    is_reported: bool,
}

impl LastingError {
    /// Returns true, once, if errors have lasted too long.
    fn is_due(&mut self, now: Instant) -> bool {
        let since = *self.since.get_or_insert(now);
        let is_due = !self.is_reported && now.saturating_duration_since(since) >= PASSES_WITHIN;
        self.is_reported |= is_due;
        is_due
    }
}

/// A port whose interface was opened again.
pub(super) struct Reopened {
    pub(super) port: usize,
    pub(super) opened: XdpPort,
}

/// One worker's access to the thread.
#[derive(Debug)]
pub(super) struct Reopener {
    requests: Sender<ReopenRequest>,
    answer: Sender<Reopened>,
    answers: Receiver<Reopened>,
}

impl Reopener {
    /// Starts the thread and returns one value for each worker; the thread ends with the last of them.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn start(workers: usize) -> io::Result<Vec<Self>> {
        let (requests, received) = mpsc::channel();
        thread::Builder::new().name("switch-reopen".to_owned()).spawn(move || run(&received))?;
        let one = |_| {
            let (answer, answers) = mpsc::channel();
            Self { requests: requests.clone(), answer, answers }
        };
        Ok((0..workers).map(one).collect())
    }

    /// Requests that a port's interface is opened as soon as it exists again; it shares `umem`.
    pub(super) fn request(&self, port: usize, recipe: &PortRecipe, umem: Option<Umem>) {
        let (recipe, answer) = (recipe.clone(), self.answer.clone());
        // Without the thread the port stays down.
        let lasting = LastingError::default();
        let _ = self.requests.send(ReopenRequest { port, recipe, umem, answer, lasting });
    }

    /// Returns the next port that was opened again.
    pub(super) fn poll(&self) -> Option<Reopened> {
        self.answers.try_recv().ok()
    }
}

fn run(requests: &Receiver<ReopenRequest>) {
    if let Err(error) = sys::keep_port_capabilities() {
        eprintln!("warning: deleted interfaces will not be attached again: {error}");
        return;
    }
    let mut waiting: Vec<ReopenRequest> = Vec::new();
    loop {
        match requests.recv_timeout(LOOK_EVERY) {
            Ok(request) => waiting.push(request),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        waiting.retain_mut(|request| match open(request) {
            Ok(opened) => {
                let Some(opened) = opened else {
                    request.lasting = LastingError::default();
                    return true;
                };
                // If the worker has ended, the port is closed again.
                let _ = request.answer.send(Reopened { port: request.port, opened });
                false
            }
            // Deleted again in the meantime, or still held by the old one's end.
            Err(error) if is_passing(&error.error) => {
                if request.lasting.is_due(Instant::now()) {
                    let seconds = PASSES_WITHIN.as_secs();
                    eprintln!("warning: {error}, for {seconds} s already; its port stays down, and the switch tries again");
                }
                true
            }
            Err(error) => {
                eprintln!("warning: {error}; its port stays down until the switch restarts");
                false
            }
        });
    }
}

/// Opens the interface; `None` if it does not exist.
fn open(request: &mut ReopenRequest) -> Result<Option<XdpPort>, OpenError> {
    let recipe = &request.recipe;
    let Ok(device) = Device::open(&recipe.interface) else { return Ok(None) };
    let opened = recipe.open(device, &mut request.umem);
    if opened.as_ref().is_err_and(|error| is_unbound(&error.error)) {
        // The other port's interface may be gone as well: register the memory anew.
        request.umem = None;
    }
    let port = opened?;
    for (number, queue) in (0..).zip(&port.queues) {
        port.redirect.connect(number, &queue.socket).map_err(recipe.fail("connecting the socket"))?;
    }
    Ok(Some(port))
}

/// Returns true if the error says that the socket whose memory should be shared belongs to a deleted interface.
fn is_unbound(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBADF | libc::EINVAL))
}

fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        // A socket of a deleted interface (EBADF, EINVAL) shares no memory. A queue that is not there is EINVAL as well.
        Some(libc::ENODEV | libc::ENXIO | libc::EBUSY | libc::ENETDOWN | libc::EINVAL | libc::EBADF)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_lasts_is_reported_once() {
        let mut lasting = LastingError::default();
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        assert!(!lasting.is_due(at(0)) && !lasting.is_due(at(4999)));
        assert!(lasting.is_due(at(5000)));
        assert!(!lasting.is_due(at(5001)) && !lasting.is_due(at(60_000)));
    }
}
