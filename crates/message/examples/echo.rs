//! Answers every message with the same message, and prints its port: a peer for experiments.
//!
//! `cargo run -p fanin-message --example echo -- [NAME] [ADDRESS] [epoll|uring]`

use std::error::Error;
use std::io::Write;

use fanin_message::{Backend, ConnectionOptions, EndpointEvent, EndpointSettings, MessageEndpoint};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "echo".into());
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:0".into());
    let backend = match arguments.next().as_deref() {
        Some("uring") => Backend::Uring,
        _ => Backend::Epoll,
    };
    let mut endpoint =
        MessageEndpoint::new(EndpointSettings { name, backend, ..EndpointSettings::default() })?;
    let listener = endpoint.listen(address.parse()?, ConnectionOptions::default())?;
    let address = endpoint.local_address(listener).ok_or("the listener has no address")?;
    writeln!(std::io::stdout(), "{address}")?;
    while let Some(event) = endpoint.poll(None)? {
        match event {
            EndpointEvent::Message { peer, kind, stream, payload } => {
                // The connection of a peer that sends more than it reads is closed.
                if endpoint.send_shared(peer, kind, stream, &[], &[payload]).is_err() {
                    endpoint.abort(peer);
                }
            }
            other => writeln!(std::io::stderr(), "{other:?}")?,
        }
    }
    Ok(())
}
