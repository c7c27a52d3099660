//! Work inside a namespace.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use thiserror::Error;

/// The directory in which `ip netns` keeps named namespaces.
pub(crate) const DIRECTORY: &str = "/run/netns";

/// An open network namespace, which exists at least as long as this value.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    file: File,
}

/// Errors of entering a namespace.
#[derive(Debug, Error)]
pub enum InsideError {
    /// No namespace has this name.
    #[error("cannot open the network namespace {name}: {source}")]
    Open {
        /// The name of the namespace in `ip netns`.
        name: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The thread cannot enter the namespace, which requires CAP_SYS_ADMIN.
    #[error("cannot enter the network namespace {name}: {source}")]
    Enter {
        /// The name of the namespace in `ip netns`.
        name: String,
        /// The kernel's error.
        source: io::Error,
    },
}

impl Namespace {
    /// Opens a namespace by its name.
    ///
    /// # Errors
    /// [`InsideError::Open`].
    pub fn open(name: &str) -> Result<Self, InsideError> {
        let file = File::open(PathBuf::from(DIRECTORY).join(name))
            .map_err(|source| InsideError::Open { name: name.into(), source })?;
        Ok(Self { name: name.into(), file })
    }

    /// Returns the name of the namespace in `ip netns`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Moves the calling thread inside, permanently. In a child between fork and exec, the call moves the whole process.
    /// `setns` is one system call and allocates nothing.
    ///
    /// # Errors
    /// The kernel's error; EPERM without CAP_SYS_ADMIN.
    pub fn enter(&self) -> io::Result<()> {
        move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(io::Error::from)
    }

    /// Runs `work` inside on a separate thread: a namespace belongs to a thread, and the calling thread stays outside. A
    /// socket created inside stays in the namespace, even if it is used outside.
    ///
    /// # Errors
    /// [`InsideError::Enter`], before `work` starts.
    ///
    /// # Panics
    /// If `work` panics.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, InsideError> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                self.enter().map_err(|source| InsideError::Enter { name: self.name.clone(), source })?;
                Ok(work())
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
