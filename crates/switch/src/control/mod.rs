//! Control of a running switch: HTTP over a local socket, and over TCP on the loopback address or with a token.
//!
//! The control threads send commands through [`Control`](crate::Control)'s bounded queue. The data path never waits for them.
//! It makes a snapshot at most ten times a second, for any number of clients.
//!
//! All requests are in one table, `routes`; the OpenAPI description is made from it.

mod answer;
mod body;
mod causes;
mod client;
mod handlers;
mod metrics;
mod openapi;
mod operation;
mod places;
mod query;
mod routes;
mod serve;
mod settings;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread::JoinHandle;

pub use client::{Client, ClientError, ControlAddress, Response};
pub use openapi::description;
pub use operation::Operation;
pub use settings::{ControlSettings, ControlStartError, TOKEN_BYTES_MIN};

/// The server thread. Dropping it stops the server.
#[derive(Debug)]
pub struct ControlServer {
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    http: Option<SocketAddr>,
    socket: Option<PathBuf>,
}

impl ControlServer {
    /// Opens the sockets, and starts the server thread. Start it before the data path is pinned: a thread inherits its
    /// parent's affinity.
    ///
    /// # Errors
    /// If an address cannot be opened, or [`ControlSettings::check`] refuses the settings.
    pub fn start(settings: &ControlSettings, operation: Operation) -> Result<Self, ControlStartError> {
        let (listeners, http) = serve::listen(settings)?;
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("fanin-control".to_owned())
            .spawn(move || serve::run(listeners, operation, stopped))
            .map_err(|error| ControlStartError::Listen { place: "a thread".to_owned(), error })?;
        Ok(Self { stop: Some(stop), thread: Some(thread), http, socket: settings.socket.clone() })
    }

    /// Returns the address at which HTTP is served; `None` if it is not.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http
    }

    /// Stops the server, and waits for its thread to end.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread may have ended already.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let Some(path) = self.socket.take() {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.end();
    }
}
