//! A running switch: open ports, and one thread for each worker.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use fanin_scenario::Errors;

use crate::capture::Captures;
use crate::command::{Control, WakeWorker};
use crate::config::Config;
use crate::control::Operation;
use crate::datapath::Switch;
use crate::driver::Driver;
use crate::snapshot::Snapshot;
use crate::sys;
use crate::worker::{Clock, Worker, WorkerResult};
use crate::workers::{Peers, SharedCounts, Wakeup};
use crate::xdp::{OpenError, XdpPorts};

/// Error of a switch's start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] Errors),
    /// A port cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The program is built without DPDK.
    #[error("port `{port}` needs DPDK; this program was built without it (cargo feature `dpdk`)")]
    NoDpdk {
        /// Name of the port.
        port: String,
    },
    /// A DPDK device cannot be opened.
    #[cfg(feature = "dpdk")]
    #[error(transparent)]
    Dpdk(#[from] crate::dpdk::DpdkError),
    /// Another system call fails.
    #[error("{action}: {error}")]
    System {
        /// The step that failed.
        action: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

impl StartError {
    /// Returns true if a privilege or a feature of the system is missing; false if the configuration is wrong.
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::Config(_) => false,
            Self::Open(error) => error.is_unsupported(),
            Self::NoDpdk { .. } => true,
            Self::System { .. } => true,
            #[cfg(feature = "dpdk")]
            Self::Dpdk(_) => false,
        }
    }
}

/// The result of a stopped switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchResult {
    /// The last counters of the switch.
    pub snapshot: Snapshot,
    /// Frames still queued at the drain timeout.
    pub abandoned: u64,
}

/// A running switch.
#[derive(Debug)]
pub struct Running {
    control: Control,
    captures: Captures,
    stop: Arc<AtomicBool>,
    wakeups: Vec<Arc<Wakeup>>,
    threads: Vec<JoinHandle<WorkerResult>>,
}

impl Running {
    /// Opens the ports, gives up all capabilities, and starts. One thread keeps the capabilities to reopen interfaces
    /// that are deleted and made again.
    ///
    /// The calling thread has no capabilities afterwards.
    ///
    /// # Errors
    /// If a port cannot be opened, or a thread cannot be started.
    pub fn start(config: &Config) -> Result<Self, StartError> {
        if let Some(_port) = config.port.iter().find(|port| port.dpdk.is_some()) {
            #[cfg(feature = "dpdk")]
            {
                let ports = crate::dpdk::DpdkPorts::open(config)?;
                sys::drop_capabilities()
                    .map_err(|error| StartError::System { action: "giving up capabilities", error })?;
                return Self::over(config, ports);
            }
            #[cfg(not(feature = "dpdk"))]
            return Err(StartError::NoDpdk { port: _port.name.clone() });
        }
        let ports = XdpPorts::open(config)?;
        sys::drop_capabilities()
            .map_err(|error| StartError::System { action: "giving up capabilities", error })?;
        Self::over(config, ports)
    }

    /// Starts over open drivers, one for each worker.
    ///
    /// # Errors
    /// If the configuration is wrong, or a thread cannot be started.
    pub fn over<D: Driver + Send + 'static>(config: &Config, drivers: Vec<D>) -> Result<Self, StartError> {
        let clock = Clock::start();
        let captures = Captures::new(drivers.len(), since_1970_ns());
        let stop = Arc::new(AtomicBool::new(false));
        let system = |action| move |error| StartError::System { action, error };
        let mut wakeups = Vec::new();
        let mut wakes: Vec<WakeWorker> = Vec::new();
        for _ in &drivers {
            let wakeup = Arc::new(Wakeup::new().map_err(system("opening an eventfd"))?);
            let other = Arc::clone(&wakeup);
            wakes.push(Box::new(move || other.wake()));
            wakeups.push(wakeup);
        }
        let (control, commands) = Control::new(wakes);
        let mut running = Self {
            control,
            captures: captures.clone(),
            stop: Arc::clone(&stop),
            wakeups: wakeups.clone(),
            threads: Vec::new(),
        };
        let peers = Peers::between(&wakeups, &config.owners());
        let receiving = Arc::new(AtomicUsize::new(drivers.len()));
        let shared = Arc::new(SharedCounts::new(drivers.len(), config.port.len()));
        let mut workers = Vec::new();
        for (number, ((driver, commands), peers)) in drivers.into_iter().zip(commands).zip(peers).enumerate()
        {
            let checked = config.clone().checked()?;
            let mut switch = Switch::for_worker(checked, driver, peers, Arc::clone(&shared))?;
            switch.attach(&captures);
            workers.push(Worker {
                switch,
                receiving: Arc::clone(&receiving),
                commands,
                wakeup: Arc::clone(&wakeups[number]),
                stop: Arc::clone(&stop),
                clock,
                core: config.switch.cores.get(number).copied(),
            });
        }
        for (number, worker) in workers.into_iter().enumerate() {
            let thread = std::thread::Builder::new()
                .name(format!("switch-{number}"))
                .spawn(move || worker.run())
                .map_err(system("starting a worker"))?;
            running.threads.push(thread);
        }
        Ok(running)
    }

    /// Returns the handle that controls the switch.
    pub const fn control(&self) -> &Control {
        &self.control
    }

    /// Returns the operation that a control server needs.
    pub fn operation(&self) -> Operation {
        Operation::new(self.control.clone(), self.captures.clone())
    }

    /// Returns true if a worker has panicked.
    pub fn has_failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Stops receiving, waits for the queues to drain, and ends.
    ///
    /// # Panics
    /// If a worker has panicked.
    pub fn stop(mut self) -> SwitchResult {
        self.ask_to_stop();
        let mut ended = SwitchResult { snapshot: Snapshot::default(), abandoned: 0 };
        for (number, thread) in std::mem::take(&mut self.threads).into_iter().enumerate() {
            let outcome = thread.join().expect("a worker of the switch has panicked");
            ended.abandoned += outcome.abandoned;
            if number == 0 {
                ended.snapshot = outcome.snapshot;
            } else {
                ended.snapshot.merge(outcome.snapshot);
            }
        }
        ended
    }

    fn ask_to_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wakeups.iter().for_each(|wakeup| wakeup.wake());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ask_to_stop();
        for thread in self.threads.drain(..) {
            // The panic has been reported.
            let _ = thread.join();
        }
    }
}

/// Returns the nanoseconds since 1970; 0 if the clock is before that.
fn since_1970_ns() -> u64 {
    std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos() as u64)
}
