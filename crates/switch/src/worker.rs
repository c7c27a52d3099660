//! One worker: a thread that drives its part of the switch by the clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fanin_units::{Duration, Instant};

use crate::command::{Commands, Reply, Stage};
use crate::config::Idle;
use crate::datapath::Switch;
use crate::driver::Driver;
use crate::snapshot::Snapshot;
use crate::sys;
use crate::workers::Wakeup;

/// Time that an idle worker polls before it sleeps.
const SPIN: Duration = Duration::from_micros(50);
/// The longest sleep, so that periodic tasks run.
const SLEEP_MAX: Duration = Duration::from_millis(10);
/// Interval between attempts to send while a driver has no room.
const RETRY: Duration = Duration::from_micros(20);
/// Rounds between two checks for a command.
const COMMANDS_EVERY: u32 = 16;

/// Time since the switch started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(std::time::Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// Returns the present time. It is never zero, so that it differs from "never".
    #[inline]
    pub(crate) fn now(self) -> Instant {
        let since = self.0.elapsed();
        Instant::new(since.as_secs() * 1_000_000_000_000 + u64::from(since.subsec_nanos()) * 1_000 + 1)
    }
}

/// The result of a worker.
#[derive(Debug)]
pub(crate) struct WorkerResult {
    pub(crate) snapshot: Snapshot,
    pub(crate) abandoned: u64,
}

#[derive(Debug)]
pub(crate) struct Worker<D: Driver> {
    pub(crate) switch: Switch<D>,
    pub(crate) commands: Commands,
    pub(crate) wakeup: Arc<Wakeup>,
    pub(crate) stop: Arc<AtomicBool>,
    /// Workers that still receive.
    pub(crate) receiving: Arc<AtomicUsize>,
    pub(crate) clock: Clock,
    pub(crate) core: Option<u16>,
}

impl<D: Driver> Worker<D> {
    /// Runs until it is stopped, and then until its queues have drained or the drain timeout is over.
    pub(crate) fn run(mut self) -> WorkerResult {
        if let Some(core) = self.core
            && !sys::pin(core)
        {
            eprintln!("warning: worker {} cannot be pinned to core {core}", self.switch.worker());
        }
        sys::sleep_exactly();
        let mut rounds = 0u32;
        let mut busy_at = self.clock.now();
        while !self.stop.load(Ordering::Relaxed) {
            let idles = self.round(&mut rounds, &mut busy_at, true);
            if idles {
                rounds = 0;
            }
        }
        // Frames are handed over only by a worker that receives.
        self.receiving.fetch_sub(1, Ordering::AcqRel);
        let end = self.clock.now() + self.switch.config().switch.drain;
        while self.clock.now() < end {
            let is_last = self.receiving.load(Ordering::Acquire) == 0;
            if is_last && !self.switch.has_messages() && self.switch.is_drained() && self.switch.is_sent() {
                break;
            }
            self.round(&mut rounds, &mut busy_at, false);
        }
        let abandoned = self.switch.abandon();
        WorkerResult { snapshot: self.switch.snapshot(false), abandoned }
    }

    /// Makes one round. Sleeps if the worker has been idle for [`SPIN`], and returns true if it slept.
    #[inline]
    fn round(&mut self, rounds: &mut u32, busy_at: &mut Instant, receives: bool) -> bool {
        let now = self.clock.now();
        let activity = self.switch.poll(now, receives);
        *rounds = rounds.wrapping_add(1);
        if rounds.is_multiple_of(COMMANDS_EVERY) || activity.frames == 0 {
            self.carry_out();
        }
        if activity.frames > 0 {
            *busy_at = now;
            return false;
        }
        if self.switch.config().switch.idle == Idle::Poll || now.saturating_since(*busy_at) < SPIN {
            std::hint::spin_loop();
            return false;
        }
        let mut time = match activity.next {
            Some(next) if next <= now => RETRY,
            Some(next) => next.saturating_since(now).min(SLEEP_MAX),
            None => SLEEP_MAX,
        };
        if !self.switch.is_sent() {
            time = time.min(RETRY);
        }
        let time = std::time::Duration::from_nanos(time.as_nanos());
        self.wakeup.begin_sleep();
        if !self.commands.is_pending() && !self.switch.has_messages() {
            self.switch.driver_mut().wait(time, self.wakeup.fd());
        }
        self.wakeup.end_sleep();
        true
    }

    fn carry_out(&mut self) {
        while let Some(request) = self.commands.poll() {
            let answer = match request.stage {
                Stage::Check => self.switch.check_command(&request.command).map(|()| Reply::Done),
                Stage::Do => self.switch.carry_out(request.command),
            };
            // The sender may have given up waiting.
            let _ = request.reply.send(answer);
        }
    }
}
