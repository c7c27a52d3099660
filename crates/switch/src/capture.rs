//! Captures: copies of the frames of one port in both directions, or of the frames that one ring accepts.
//!
//! The data path checks once a round for captures. While one runs, the data path copies frames into the capture's buffers.
//! Without a free buffer, the copy is dropped and counted, and the frame is forwarded.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant as Clock};

use fanin_report::{Capture, InterfaceId};
use fanin_units::{Bytes, Instant, Rate};

use crate::config::Config;
use crate::driver::{Driver, Received};

/// The most captures at a time.
pub const CAPTURES_MAX: usize = 4;
/// The longest capture, in seconds.
pub const SECONDS_MAX: u64 = 600;
/// Default length of a capture, in seconds.
pub const SECONDS_DEFAULT: u64 = 10;
/// The largest capture, in bytes of its file.
pub const BYTES_MAX: u64 = 1 << 30;
/// Default size of a capture, in bytes of its file.
pub const BYTES_DEFAULT: u64 = 64 << 20;
/// The largest snap length; longer than any frame.
pub const SNAP_MAX: u64 = 16 << 10;
/// Copies that may wait for one capture, for each worker.
const COPIES_MAX: usize = 1024;
/// Bytes of the file that are returned at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// The settings of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureSpec {
    /// The port or ring.
    pub point: CapturePoint,
    /// Longest duration of the capture in seconds, up to [`SECONDS_MAX`].
    pub seconds: u64,
    /// Largest size of the capture in bytes, up to [`BYTES_MAX`].
    pub bytes: u64,
    /// Bytes of each frame that are kept, up to [`SNAP_MAX`].
    pub snap: u64,
}

/// The place where frames are copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CapturePoint {
    /// A port, by its name: frames as they were received, and frames sent.
    Port(String),
    /// A ring, by its name: frames that it accepts.
    Ring(String),
}

/// A point of the data path at which frames are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TapPlace {
    /// A port, both ways.
    Port(usize),
    /// A ring of a port.
    Ring(usize, usize),
}

impl TapPlace {
    /// Finds the place of a point among the ports `mine`, or returns `None`. `ring` returns the number of a port's ring by
    /// name.
    pub(crate) fn of(
        point: &CapturePoint,
        config: &Config,
        mine: &[usize],
        ring: impl Fn(usize, &str) -> Option<usize>,
    ) -> Option<Self> {
        let port = match point {
            CapturePoint::Port(name) => config.port_index(name)?,
            CapturePoint::Ring(name) => {
                config.port_index(&config.ring.iter().find(|ring| ring.name == *name)?.port)?
            }
        };
        if !mine.contains(&port) {
            return None;
        }
        Some(match point {
            CapturePoint::Port(_) => Self::Port(port),
            CapturePoint::Ring(name) => Self::Ring(port, ring(port, name)?),
        })
    }
}

/// An error: [`CAPTURES_MAX`] captures are running already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{CAPTURES_MAX} captures are running: wait until one ends")]
pub struct TooManyCaptures;

/// All captures of one switch. Clones refer to the same captures.
#[derive(Debug, Clone)]
pub struct Captures {
    shared: Arc<CaptureState>,
}

#[derive(Debug)]
struct CaptureState {
    workers: usize,
    epoch_ns: u64,
    /// Counts changes of `sessions`, so that the data path needs the lock only after one.
    generation: AtomicU64,
    sessions: Mutex<Vec<Arc<CaptureSession>>>,
    copied: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Debug)]
struct CaptureSession {
    spec: CaptureSpec,
    /// The data path's end for each worker; the worker takes it once.
    ends: Mutex<Vec<Option<CaptureEnd>>>,
    /// Frames that were not copied for lack of a buffer.
    dropped: AtomicU64,
}

/// The data path's end: receives empty buffers and returns full ones.
#[derive(Debug)]
struct CaptureEnd {
    empty: Receiver<Vec<u8>>,
    full: SyncSender<Copied>,
}

/// The reader's end of one worker.
#[derive(Debug)]
struct Outlet {
    empty: SyncSender<Vec<u8>>,
    full: Receiver<Copied>,
}

#[derive(Debug)]
struct Copied {
    at: Instant,
    /// Interface in the pcapng file: 0 for frames received or queued, 1 for frames sent.
    interface: usize,
    length: u32,
    bytes: Vec<u8>,
}

impl Captures {
    /// Makes the captures of a switch with this number of workers. The switch's clock started `epoch_ns` nanoseconds after
    /// 1970.
    pub fn new(workers: usize, epoch_ns: u64) -> Self {
        let shared = CaptureState {
            workers,
            epoch_ns,
            generation: AtomicU64::new(0),
            sessions: Mutex::default(),
            copied: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Starts a capture; it ends when the stream ends or is dropped.
    ///
    /// # Errors
    /// If [`CAPTURES_MAX`] captures are running.
    pub fn start(&self, mut spec: CaptureSpec) -> Result<CaptureStream, TooManyCaptures> {
        spec.seconds = spec.seconds.min(SECONDS_MAX);
        spec.bytes = spec.bytes.min(BYTES_MAX);
        spec.snap = spec.snap.min(SNAP_MAX);
        let mut sessions = self.shared.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= CAPTURES_MAX {
            return Err(TooManyCaptures);
        }
        let (mut ends, mut outlets) = (Vec::new(), Vec::new());
        for _ in 0..self.shared.workers {
            let (give, empty) = sync_channel(COPIES_MAX);
            let (full, take) = sync_channel(COPIES_MAX);
            for _ in 0..COPIES_MAX {
                // The channel has room for all buffers. A buffer allocates its memory at its first use.
                let _ = give.try_send(Vec::new());
            }
            ends.push(Some(CaptureEnd { empty, full }));
            outlets.push(Outlet { empty: give, full: take });
        }
        let session = Arc::new(CaptureSession { spec, ends: Mutex::new(ends), dropped: AtomicU64::new(0) });
        sessions.push(Arc::clone(&session));
        drop(sessions);
        self.shared.generation.fetch_add(1, Ordering::Release);
        Ok(CaptureStream::new(Arc::clone(&self.shared), session, outlets))
    }

    /// Makes one worker's end of all captures.
    pub(crate) fn tap(&self, worker: usize) -> Tap {
        Tap { shared: Arc::clone(&self.shared), worker, seen: 0, active: Vec::new() }
    }

    /// Returns the number of running captures.
    pub fn len(&self) -> usize {
        self.shared.sessions.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns true if no capture runs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of frames copied for captures since the switch started.
    pub fn copied(&self) -> u64 {
        self.shared.copied.load(Ordering::Relaxed)
    }

    /// Returns the number of copies dropped because the reader was too slow.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }
}

/// One worker's end of all captures, in the data path.
#[derive(Debug)]
pub(crate) struct Tap {
    shared: Arc<CaptureState>,
    worker: usize,
    seen: u64,
    active: Vec<Active>,
}

#[derive(Debug)]
struct Active {
    session: Arc<CaptureSession>,
    end: CaptureEnd,
    /// Place at which the capture copies frames; `None` if its port or ring does not exist, or belongs to another worker.
    place: Option<TapPlace>,
    /// Buffers that hold no frame.
    spare: Vec<Vec<u8>>,
    /// Copies of frames that the driver has not taken yet.
    leaving: Vec<Option<Copied>>,
}

impl Tap {
    /// Returns true if a capture runs.
    #[inline]
    pub(crate) const fn is_active(&self) -> bool {
        !self.active.is_empty()
    }

    /// Updates the captures once a round. If it returns true, [`Self::find`] must be called. Costs one load if nothing has changed.
    #[inline]
    pub(crate) fn poll(&mut self) -> bool {
        self.shared.generation.load(Ordering::Acquire) != self.seen && self.renew()
    }

    #[cold]
    fn renew(&mut self) -> bool {
        // The holder of the lock changes the sessions and increments the generation: the next round tries again.
        let Ok(sessions) = self.shared.sessions.try_lock() else { return false };
        self.seen = self.shared.generation.load(Ordering::Acquire);
        self.active.retain(|active| sessions.iter().any(|session| Arc::ptr_eq(session, &active.session)));
        for session in sessions.iter() {
            match session.ends.try_lock() {
                Ok(mut ends) => {
                    if let Some(end) = ends[self.worker].take() {
                        self.active.push(Active {
                            session: Arc::clone(session),
                            end,
                            place: None,
                            spare: Vec::new(),
                            leaving: Vec::new(),
                        });
                    }
                }
                // Another thread holds the lock: the next round tries again.
                Err(_) => self.seen = self.seen.wrapping_sub(1),
            }
        }
        true
    }

    /// Updates the places of captures, after every change of ports or rings.
    pub(crate) fn find(&mut self, find: impl Fn(&CapturePoint) -> Option<TapPlace>) {
        for active in &mut self.active {
            active.place = find(&active.session.spec.point);
        }
    }

    /// Copies a frame for each capture of this place.
    #[cold]
    pub(crate) fn copy<D: Driver>(
        &mut self,
        now: Instant,
        passing: TapPlace,
        frame: Received<D::Handle>,
        driver: &D,
    ) {
        for active in &mut self.active {
            if active.place == Some(passing) {
                let copied = active.copy(now, 0, frame, driver);
                active.hand_on(copied, &self.shared);
            }
        }
    }

    /// Copies frames that are about to leave by a port. Call [`Self::left`] with the number that has left.
    #[cold]
    pub(crate) fn leaving<D: Driver>(
        &mut self,
        now: Instant,
        port: usize,
        frames: &[Received<D::Handle>],
        driver: &D,
    ) {
        for active in self.active.iter_mut().filter(|active| active.place == Some(TapPlace::Port(port))) {
            for &frame in frames {
                let copied = active.copy(now, 1, frame, driver);
                active.leaving.push(copied);
            }
        }
    }

    /// Keeps the copies of the first `count` frames of [`Self::leaving`]: they have left.
    #[cold]
    pub(crate) fn left(&mut self, count: usize) {
        for active in &mut self.active {
            let mut leaving = std::mem::take(&mut active.leaving);
            for (place, copied) in leaving.drain(..).enumerate() {
                if place < count {
                    active.hand_on(copied, &self.shared);
                } else if let Some(copied) = copied {
                    active.spare.push(copied.bytes);
                }
            }
            active.leaving = leaving;
        }
    }
}

impl Active {
    /// Copies a frame into a free buffer, and keeps the first `snap` bytes. Returns `None` if no buffer is free.
    fn copy<D: Driver>(
        &mut self,
        at: Instant,
        interface: usize,
        frame: Received<D::Handle>,
        driver: &D,
    ) -> Option<Copied> {
        let mut bytes = self.spare.pop().or_else(|| self.end.empty.try_recv().ok())?;
        bytes.clear();
        driver.copy_out(frame, &mut bytes);
        bytes.truncate(self.session.spec.snap as usize);
        Some(Copied { at, interface, length: frame.bytes, bytes })
    }

    fn hand_on(&mut self, copied: Option<Copied>, shared: &CaptureState) {
        match copied {
            Some(copied) => {
                // There are as many slots as buffers: the send fails only if the reader has gone.
                let _ = self.end.full.try_send(copied);
                shared.copied.fetch_add(1, Ordering::Relaxed);
            }
            None => {
                self.session.dropped.fetch_add(1, Ordering::Relaxed);
                shared.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// A running capture that yields the bytes of a pcapng file.
#[derive(Debug)]
pub struct CaptureStream {
    shared: Arc<CaptureState>,
    session: Arc<CaptureSession>,
    outlets: Vec<Outlet>,
    file: Capture<Vec<u8>>,
    interfaces: Vec<InterfaceId>,
    until: Clock,
    bytes: u64,
    last: Instant,
    has_ended: bool,
}

impl CaptureStream {
    fn new(shared: Arc<CaptureState>, session: Arc<CaptureSession>, outlets: Vec<Outlet>) -> Self {
        let names = match &session.spec.point {
            CapturePoint::Port(name) => vec![format!("{name} in"), format!("{name} out")],
            CapturePoint::Ring(name) => vec![format!("ring {name}")],
        };
        const IN_MEMORY: &str = "writing to memory succeeds";
        let application = concat!("fanin switch ", env!("CARGO_PKG_VERSION"));
        let mut file = Capture::new(Vec::new(), application, shared.epoch_ns).expect(IN_MEMORY);
        let snap = Bytes::new(session.spec.snap);
        let interfaces =
            names.iter().map(|name| file.add_interface(name, Rate::ZERO, snap).expect(IN_MEMORY)).collect();
        let until = Clock::now() + Duration::from_secs(session.spec.seconds);
        let last = Instant::START;
        Self { shared, session, outlets, file, interfaces, until, bytes: 0, last, has_ended: false }
    }

    /// Returns the settings, limited to [`SECONDS_MAX`], [`BYTES_MAX`] and [`SNAP_MAX`].
    pub fn spec(&self) -> &CaptureSpec {
        &self.session.spec
    }

    /// Returns the next part of the file; empty if nothing is new, `None` when the file is complete. Never blocks.
    pub fn poll_bytes(&mut self) -> Option<Vec<u8>> {
        if self.has_ended {
            return None;
        }
        let mut is_full = false;
        'outlets: for outlet in &self.outlets {
            while let Ok(copied) = outlet.full.try_recv() {
                let room = 64 + copied.bytes.len() as u64;
                if self.bytes + self.file.writer_mut().len() as u64 + room > self.session.spec.bytes {
                    is_full = true;
                    break 'outlets;
                }
                let id = self.interfaces[copied.interface];
                self.last = self.last.max(copied.at);
                // Writing to memory cannot fail.
                let _ = self.file.write_frame(id, copied.at, &copied.bytes, copied.length);
                let _ = outlet.empty.try_send(copied.bytes);
                if self.file.writer_mut().len() >= CHUNK_BYTES {
                    break 'outlets;
                }
            }
        }
        if is_full || Clock::now() >= self.until {
            self.has_ended = true;
            let dropped = self.session.dropped.load(Ordering::Relaxed);
            let _ = self.file.write_dropped(self.interfaces[0], self.last, dropped);
        }
        let bytes = std::mem::take(self.file.writer_mut());
        self.bytes += bytes.len() as u64;
        Some(bytes)
    }
}

impl Drop for CaptureStream {
    fn drop(&mut self) {
        let mut sessions = self.shared.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| !Arc::ptr_eq(session, &self.session));
        drop(sessions);
        self.shared.generation.fetch_add(1, Ordering::Release);
    }
}
