//! Control of a switch that runs: HTTP over a local socket, and over TCP on the loopback address or with a token.
//!
//! Everything here runs on threads of its own. The data path is asked through [`Control`](crate::Control)'s bounded queue, at most
//! ten times a second for the same picture however many clients ask, and never waits for anybody.
//!
//! What can be asked stands in one table, `routes`; the OpenAPI description is made from it.

mod answer;
mod body;
mod client;
mod handlers;
mod metrics;
mod openapi;
mod operation;
mod query;
mod routes;
mod serve;
mod settings;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread::JoinHandle;

pub use client::{Address, Client, ClientError, Response};
pub use openapi::description;
pub use operation::Operation;
pub use settings::{Settings, StartError, TOKEN_BYTES_MIN};

/// The thread that answers. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    http: Option<SocketAddr>,
    socket: Option<PathBuf>,
}

impl Server {
    /// Listens, and answers from a thread of its own. Start it before the data path is pinned: threads inherit their
    /// parent's core.
    ///
    /// # Errors
    /// Where an address cannot be had or should not be.
    pub fn start(settings: &Settings, operation: Operation) -> Result<Self, StartError> {
        let (listeners, http) = serve::listen(settings)?;
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("fanin-control".to_owned())
            .spawn(move || serve::run(listeners, operation, stopped))
            .map_err(|error| StartError::Listen { place: "a thread".to_owned(), error })?;
        Ok(Self { stop: Some(stop), thread: Some(thread), http, socket: settings.socket.clone() })
    }

    /// The address that HTTP is served on.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http
    }

    /// Answers nobody any more, and waits for the thread to end.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread may have ended by itself.
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

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}
