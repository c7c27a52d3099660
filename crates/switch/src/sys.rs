//! System calls of the data path, except those of ports.

use std::io;
use std::time::Duration;

/// Waits for any of these files, up to the timeout.
pub(crate) fn poll(files: &mut [libc::pollfd], timeout: Duration) {
    let timeout = libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(timeout.subsec_nanos()),
    };
    // SAFETY: the kernel reads and writes the entries of the slice, whose length is passed. A signal ends the wait.
    unsafe {
        libc::ppoll(files.as_mut_ptr(), files.len() as libc::nfds_t, &raw const timeout, std::ptr::null());
    }
}

/// Pins the calling thread to one core. Returns false if the thread may not use it.
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

/// Returns the cores on which the calling thread may run.
pub(crate) fn usable_cores() -> Vec<u16> {
    // SAFETY: a set of bits, for which zero is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes a set of the size given.
    let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    let most = if result == 0 { 8 * size_of::<libc::cpu_set_t>() } else { 0 };
    // SAFETY: inside the set.
    (0..most).filter(|&core| unsafe { libc::CPU_ISSET(core, &set) }).map(|core| core as u16).collect()
}

/// Returns the names of the interfaces in this network namespace.
pub(crate) fn interfaces() -> Vec<String> {
    // SAFETY: allocates a list that is freed below.
    let list = unsafe { libc::if_nameindex() };
    let mut names = Vec::new();
    if list.is_null() {
        return names;
    }
    let mut next = list;
    // SAFETY: the list ends with an entry whose index is 0; every other entry has a name with its end.
    unsafe {
        while (*next).if_index != 0 {
            names.push(std::ffi::CStr::from_ptr((*next).if_name).to_string_lossy().into_owned());
            next = next.add(1);
        }
        libc::if_freenameindex(list);
    }
    names
}

/// Sets the smallest timer slack for the calling thread.
pub(crate) fn sleep_exactly() {
    // SAFETY: sets the timer slack of the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// The version of capset(2)'s structures: two words for each set.
const CAPABILITIES_3: u32 = 0x2008_0522;
/// Numbers of capabilities (linux/capability.h).
const CAP_NET_ADMIN: u32 = 12;
const CAP_NET_RAW: u32 = 13;
const CAP_IPC_LOCK: u32 = 14;
const CAP_BPF: u32 = 39;

/// Effective, permitted and inheritable capabilities: first the lower 32 of each set, then the upper 32.
type CapabilitySets = [[u32; 3]; 2];

fn set_capabilities(sets: &CapabilitySets) -> io::Result<()> {
    let header: [u32; 2] = [CAPABILITIES_3, 0];
    // SAFETY: a header and two triples of words, as version 3 requires. The kernel only reads them.
    let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Drops every capability of the calling thread, and of threads that it starts, permanently.
///
/// # Errors
/// If the system refuses.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    set_capabilities(&[[0; 3]; 2])?;
    give_up_privileges()
}

/// Drops every capability of the calling thread that opening a port does not need, permanently.
///
/// # Errors
/// If the system refuses.
pub(crate) fn keep_port_capabilities() -> io::Result<()> {
    let header: [u32; 2] = [CAPABILITIES_3, 0];
    let mut sets: CapabilitySets = [[0; 3]; 2];
    // SAFETY: a header, and two triples of words that the kernel fills in.
    if unsafe { libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let kept = [(1 << CAP_NET_ADMIN) | (1 << CAP_NET_RAW) | (1 << CAP_IPC_LOCK), 1 << (CAP_BPF - 32)];
    for (set, kept) in sets.iter_mut().zip(kept) {
        let [_, permitted, _] = *set;
        *set = [permitted & kept, permitted & kept, 0];
    }
    set_capabilities(&sets)?;
    give_up_privileges()
}

/// Denies new privileges to programs that the calling thread starts.
fn give_up_privileges() -> io::Result<()> {
    // SAFETY: sets the flag `no_new_privs` of the calling thread.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
