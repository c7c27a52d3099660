//! A switch over ports in memory with a control server, for the tests of its commands.

#[path = "../../../switch/examples/busy/traffic.rs"]
mod traffic;

use std::sync::Arc;

use fanin_switch::Running;
use fanin_switch::control::{ControlServer, ControlSettings};
use traffic::{Counts, Traffic};

use crate::common::Folder;

/// The token of the control server.
pub(crate) const TOKEN: &str = "0123456789abcdef";

/// A running switch with its traffic.
pub(crate) struct ServedSwitch {
    /// The path of its control socket.
    pub(crate) socket: String,
    /// The server, at the socket and over HTTP with [`TOKEN`].
    pub(crate) server: ControlServer,
    /// The switch itself.
    pub(crate) running: Running,
    /// Frames sent and arrived.
    pub(crate) counts: Arc<Counts>,
}

impl ServedSwitch {
    /// Starts it, with a control socket in `folder`.
    pub(crate) fn start(folder: &Folder) -> Self {
        let config = traffic::config();
        let counts = Arc::new(Counts::default());
        let traffic = Traffic::new(&config, 2_000, Arc::clone(&counts));
        let running = Running::over(&config, vec![traffic]).unwrap();
        let socket = folder.file("switch.sock");
        let settings = ControlSettings {
            socket: Some(socket.clone().into()),
            http: Some("127.0.0.1:0".parse().unwrap()),
            token: Some(TOKEN.to_owned()),
            ..ControlSettings::default()
        };
        let server = ControlServer::start(&settings, running.operation()).unwrap();
        Self { socket, server, running, counts }
    }
}
