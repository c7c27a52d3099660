//! Errors of opening a port.

use std::io;

/// Error while a port is opened.
#[derive(Debug, thiserror::Error)]
#[error("{interface}: {action}: {error}{}", self.advice())]
pub struct OpenError {
    /// Name of the interface.
    pub interface: String,
    /// The step that failed.
    pub action: &'static str,
    /// The system's error.
    pub error: io::Error,
}

impl OpenError {
    /// Returns true if a privilege or a feature of the kernel is missing; false if the configuration is wrong.
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self.error.raw_os_error(),
            Some(
                libc::EPERM
                    | libc::EACCES
                    | libc::EOPNOTSUPP
                    | libc::EAFNOSUPPORT
                    | libc::ENOSYS
                    | libc::EPROTONOSUPPORT
            )
        )
    }

    fn advice(&self) -> &'static str {
        match self.error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                " (needs root, or the capabilities CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF)"
            }
            Some(libc::EAFNOSUPPORT) => " (the kernel has no AF_XDP: CONFIG_XDP_SOCKETS)",
            Some(libc::EBUSY) => " (another program uses this queue)",
            Some(libc::EOPNOTSUPP) => {
                " (the driver does not support this: try `attach = \"generic\"` or `copy = \"copy\"`)"
            }
            _ => "",
        }
    }
}
