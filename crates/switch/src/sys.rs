//! The few calls to the system that the data path makes beside its ports'.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::time::Duration;

use crate::doze::Doze;

/// Waits for any of these files, for so long at most.
pub(crate) fn poll(files: &mut [libc::pollfd], timeout: Duration) {
    let timeout = libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(timeout.subsec_nanos()),
    };
    // SAFETY: the kernel reads and writes the entries of the slice, whose length it is told. A signal ends the wait.
    unsafe {
        libc::ppoll(files.as_mut_ptr(), files.len() as libc::nfds_t, &raw const timeout, std::ptr::null());
    }
}

/// A file that one thread makes readable to wake another.
#[derive(Debug)]
pub(crate) struct Wakeup {
    file: File,
    doze: Doze,
}

impl Wakeup {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: opens a descriptor and touches no memory.
        let file = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened for us.
        let file = unsafe { File::from_raw_fd(file) };
        Ok(Self { file, doze: Doze::new() })
    }

    pub(crate) fn wake(&self) {
        // It can only fail where its count is at its end, and then it is readable all the same.
        let _ = (&self.file).write(&1u64.to_ne_bytes());
    }

    /// Wakes the other thread if it sleeps or is about to. What it shall see has been written.
    #[inline]
    pub(crate) fn wake_sleeper(&self) {
        if self.doze.must_wake() {
            self.wake();
        }
    }

    /// Others can see from now on that this thread sleeps. It looks once more for something to do before it does.
    pub(crate) fn begin_sleep(&self) {
        self.doze.begin();
    }

    /// It is awake again.
    pub(crate) fn end_sleep(&self) {
        self.doze.end();
        self.clear();
    }

    /// Takes the wake-ups back that have come so far.
    pub(crate) fn clear(&self) {
        let _ = (&self.file).read(&mut [0; 8]);
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

/// Keeps the calling thread on one core. `false` where the system has no such core for us.
pub(crate) fn pin(core: u16) -> bool {
    // SAFETY: a set of bits, for which zero is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if usize::from(core) >= 8 * size_of::<libc::cpu_set_t>() {
        return false;
    }
    // SAFETY: inside the set, as just checked.
    unsafe { libc::CPU_SET(core.into(), &mut set) };
    // SAFETY: the kernel reads a set of the size given.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) == 0 }
}

/// Lets the calling thread sleep as exactly as the system can.
pub(crate) fn sleep_exactly() {
    // SAFETY: sets a number of the calling thread's.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// Gives up every capability of the calling thread, and with it of threads that it starts, for good.
///
/// # Errors
/// Where the system refuses, which it has no reason to.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    let header: [u32; 2] = [VERSION_3, 0];
    let none = [[0u32; 3]; 2];
    // SAFETY: a header and two triples of words, as version 3 wants them; the kernel only reads.
    let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: sets a flag of the calling thread's.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
