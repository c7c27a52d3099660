//! Reopens interfaces that were deleted and created again, on a thread that alone keeps the capabilities for it.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use super::device::Device;
use super::error::OpenError;
use super::port::{PortRecipe, XdpPort};
use super::queue::Umem;
use crate::sys;

/// Interval between two checks for a deleted interface.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A request to open an interface again.
struct ReopenRequest {
    port: usize,
    recipe: PortRecipe,
    /// The packet memory of another port.
    umem: Option<Umem>,
    answer: Sender<Reopened>,
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
        let _ = self.requests.send(ReopenRequest { port, recipe, umem, answer });
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
                let Some(opened) = opened else { return true };
                // If the worker has ended, the port is closed again.
                let _ = request.answer.send(Reopened { port: request.port, opened });
                false
            }
            // Deleted again in the meantime, or still held by the old one's end.
            Err(error) if is_passing(&error.error) => true,
            Err(error) => {
                eprintln!("warning: {error}; its port stays down until the switch restarts");
                false
            }
        });
    }
}

/// Opens the interface if it exists.
fn open(request: &mut ReopenRequest) -> Result<Option<XdpPort>, OpenError> {
    let recipe = &request.recipe;
    let Ok(device) = Device::open(&recipe.interface) else { return Ok(None) };
    let port = match recipe.open(device, &mut request.umem) {
        // The other port's interface is gone as well: register the memory anew.
        Err(error) if request.umem.is_some() && is_unbound(&error.error) => {
            request.umem = None;
            return Ok(None);
        }
        opened => opened?,
    };
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
        Some(libc::ENODEV | libc::ENXIO | libc::EBUSY | libc::ENETDOWN | libc::EINVAL)
    )
}
