//! Messages to systemd, which started this process as a service of type `notify` (`sd_notify(3)`).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

/// Sends this process's state to systemd. Without systemd, it sends nothing.
#[derive(Debug, Default)]
pub struct ServiceNotifier {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// Interval between two signs of life; `None` without `WatchdogSec`.
    every: Option<Duration>,
    sent: Option<Instant>,
}

impl ServiceNotifier {
    /// Creates a notifier for the service whose environment this process has.
    pub fn from_environment() -> Self {
        let variable = |name| std::env::var(name).ok();
        let is_mine = variable("WATCHDOG_PID").is_none_or(|pid| pid == std::process::id().to_string());
        let limit = variable("WATCHDOG_USEC").filter(|_| is_mine).and_then(|limit| limit.parse().ok());
        variable("NOTIFY_SOCKET").map_or_else(Self::default, |address| Self::to(&address, limit))
    }

    /// `limit_us` is the time without a sign of life after which systemd kills this process.
    fn to(address: &str, limit_us: Option<u64>) -> Self {
        let address = match address.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name),
            None => SocketAddr::from_pathname(address),
        };
        let socket = UnixDatagram::unbound().and_then(|socket| Ok((socket, address?))).ok();
        Self { socket, every: limit_us.map(|limit| Duration::from_micros(limit / 4)), sent: None }
    }

    fn send(&self, state: &str) {
        if let Some((socket, address)) = &self.socket {
            // systemd may be gone, or restart.
            let _ = socket.send_to_addr(state.as_bytes(), address);
        }
    }

    /// Says that the service works.
    pub fn ready(&self) {
        self.send("READY=1");
    }

    /// Says that the service ends.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// Sends a sign of life if one is due and `is_alive` returns true. Call it more often than a quarter of `WatchdogSec`.
    pub fn watch(&mut self, is_alive: impl FnOnce() -> bool) {
        let Some(every) = self.every.filter(|_| self.socket.is_some()) else { return };
        if self.sent.is_some_and(|sent| sent.elapsed() < every) || !is_alive() {
            return;
        }
        self.send("WATCHDOG=1");
        self.sent = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 64];
        let len = socket.recv(&mut bytes).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..len]).into_owned()
    }

    #[test]
    fn signs_of_life_are_sent_while_the_process_works() {
        let name = format!("fanin-notify-{}", std::process::id());
        let systemd = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        systemd.set_nonblocking(true).unwrap();
        let mut service = ServiceNotifier::to(&format!("@{name}"), Some(0));
        service.ready();
        service.watch(|| false);
        service.watch(|| true);
        service.stopping();
        let said: Vec<String> = (0..4).map(|_| received(&systemd)).collect();
        assert_eq!(said, ["READY=1", "WATCHDOG=1", "STOPPING=1", ""]);
        // Without a limit, systemd awaits none; with a long one, the first is enough.
        for (limit, signs) in [(None, 0), (Some(u64::MAX), 1)] {
            let mut service = ServiceNotifier::to(&format!("@{name}"), limit);
            service.watch(|| true);
            service.watch(|| true);
            let said = (0..2).filter(|_| received(&systemd) == "WATCHDOG=1").count();
            assert_eq!(said, signs);
        }
        ServiceNotifier::default().watch(|| panic!("nothing awaits a sign"));
    }
}
