//! Memory that one process writes and another may only read: a sealed memfd (`memfd_create(2)`, `F_SEAL_FUTURE_WRITE`).
//!
//! A processor may crash, hang or write anywhere. Its mapping is read-only, and the seal forbids a writable mapping. The
//! size is fixed, so neither side accesses memory beyond the end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The writer's side of shared memory.
#[derive(Debug)]
pub struct SharedMemory {
    fd: OwnedFd,
    map: Map,
}

impl SharedMemory {
    /// Creates memory of `capacity` bytes, at least 1, all zero. The kernel allocates a page when it is first written.
    ///
    /// # Errors
    /// If the memory cannot be created, mapped or sealed.
    pub fn new(capacity: usize) -> io::Result<Self> {
        let capacity = capacity.max(1);
        let fd = memfd_create("fanin-event", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&fd, capacity as u64)?;
        let map = Map::new(&fd, capacity, ProtFlags::READ | ProtFlags::WRITE)?;
        // This mapping stays writable. Later mappings cannot be writable (Linux 5.1).
        fcntl_add_seals(
            &fd,
            SealFlags::GROW | SealFlags::SHRINK | SealFlags::FUTURE_WRITE | SealFlags::SEAL,
        )?;
        Ok(Self { fd, map })
    }

    /// Returns the descriptor for the reader.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Returns the size of the memory in bytes.
    pub fn capacity(&self) -> usize {
        self.map.size
    }

    /// Returns the memory for writing. The reader must not use its earlier content any more.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is `size` bytes long, readable and writable, and lives as long as `self`; its seals keep
        // the file from shrinking under it. This process has no other reference into it, because `self` is borrowed
        // mutably. The reader's process can only read, and what it sees while this is written is not its event.
        unsafe { std::slice::from_raw_parts_mut(self.map.start.cast::<u8>(), self.map.size) }
    }
}

/// The reader's side of shared memory.
#[derive(Debug)]
pub struct View {
    map: Map,
}

/// Reasons to refuse offered memory.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The memory could shrink, or be written by others than its creator.
    #[error("the shared memory is not sealed")]
    NotSealed,
    /// The memory has another size than announced.
    #[error("the shared memory has {actual} bytes, not {announced}")]
    Size {
        /// Actual size, bytes.
        actual: u64,
        /// Announced size, bytes.
        announced: u64,
    },
    /// The memory cannot be examined or mapped.
    #[error("cannot map the shared memory: {0}")]
    Io(#[from] io::Error),
}

impl View {
    /// Maps memory that another process created, for reading. `announced` is its announced size in bytes.
    ///
    /// # Errors
    /// [`ViewError`]; memory of zero bytes is refused as well.
    pub fn new(fd: &OwnedFd, announced: u64) -> Result<Self, ViewError> {
        let seals = fcntl_get_seals(fd).map_err(io::Error::from)?;
        if !seals.contains(SealFlags::SHRINK | SealFlags::FUTURE_WRITE) {
            return Err(ViewError::NotSealed);
        }
        let actual = fstat(fd).map_err(io::Error::from)?.st_size as u64;
        if actual != announced || actual == 0 {
            return Err(ViewError::Size { actual, announced });
        }
        Ok(Self { map: Map::new(fd, actual as usize, ProtFlags::READ)? })
    }

    /// Returns the memory. It holds the event only until the decision on the event is sent.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is `size` bytes long and readable, and lives as long as `self`. The seal against shrinking
        // was checked, so that every page of it exists. Its maker writes only between two events, when no reference to
        // an event's memory is alive: a processor's function gets one for its call alone.
        unsafe { std::slice::from_raw_parts(self.map.start.cast::<u8>(), self.map.size) }
    }
}

#[derive(Debug)]
struct Map {
    start: *mut core::ffi::c_void,
    size: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread; only the owner of the struct uses it.
unsafe impl Send for Map {}

impl Map {
    fn new(fd: &OwnedFd, size: usize, rights: ProtFlags) -> io::Result<Self> {
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing that Rust knows of.
        let start = unsafe { mmap(ptr::null_mut(), size, rights, MapFlags::SHARED, fd, 0) }?;
        Ok(Self { start, size })
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this size, and every reference into it borrowed from its owner, which is gone.
        let _ = unsafe { munmap(self.start, self.size) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_bytes_are_seen() {
        let mut area = SharedMemory::new(100_000).unwrap();
        let view = View::new(&area.fd().try_clone_to_owned().unwrap(), 100_000).unwrap();
        area.bytes()[99_999] = 42;
        assert_eq!(view.bytes()[99_999], 42);
        assert_eq!((view.bytes().len(), area.capacity()), (100_000, 100_000));
    }

    #[test]
    fn a_reader_can_neither_write_nor_resize() {
        let area = SharedMemory::new(8192).unwrap();
        let fd = area.fd().try_clone_to_owned().unwrap();
        assert!(Map::new(&fd, 8192, ProtFlags::READ | ProtFlags::WRITE).is_err());
        assert!(rustix::io::write(&fd, b"x").is_err());
        assert!(ftruncate(&fd, 1).is_err() && ftruncate(&fd, 100_000).is_err());
        assert!(fcntl_add_seals(&fd, SealFlags::WRITE).is_err());
    }

    #[test]
    fn memory_that_could_change_is_refused() {
        let fd = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&fd, 4096).unwrap();
        assert!(matches!(View::new(&fd, 4096), Err(ViewError::NotSealed)));
        let area = SharedMemory::new(4096).unwrap();
        let fd = area.fd().try_clone_to_owned().unwrap();
        assert!(matches!(View::new(&fd, 8192), Err(ViewError::Size { actual: 4096, announced: 8192 })));
    }
}
