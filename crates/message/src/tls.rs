//! TLS 1.3 with certificates on both sides, for networks that others can reach.

use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection};

/// Bytes of encrypted messages that may wait inside one connection.
const BUFFER_BYTES_MAX: usize = 128 << 10;

/// This side's certificate, and the authorities that it trusts.
///
/// Both sides of a connection show a certificate of an authority that the other believes, and it has to be valid for
/// the name in their greeting: as a DNS name among its alternative names. There is no version but TLS 1.3.
#[derive(Clone)]
pub struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

/// Certificates or keys that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A file is not what it should be.
    #[error("{what}: {error}")]
    Pem {
        /// Which one: `"certificates"`, `"key"` or `"authorities"`.
        what: &'static str,
        /// The error.
        error: String,
    },
    /// There is no certificate where at least one is needed.
    #[error("{0}: there is no certificate in it")]
    Empty(&'static str),
    /// They do not fit each other, or are of a kind that is not supported.
    #[error("{0}")]
    Unusable(String),
}

impl Tls {
    /// From PEM texts: this side's certificates, its own first, and then those between it and the authority; the key
    /// of the first; and the authorities whose certificates are believed.
    ///
    /// # Errors
    ///
    /// [`TlsError`] for texts that are not PEM, or that do not fit each other.
    pub fn from_pem(certificates: &[u8], key: &[u8], authorities: &[u8]) -> Result<Self, TlsError> {
        let read = |what, text| {
            let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
            let all = all.map_err(|error| TlsError::Pem { what, error: error.to_string() })?;
            if all.is_empty() { Err(TlsError::Empty(what)) } else { Ok(all) }
        };
        let unusable = |error: &dyn fmt::Display| TlsError::Unusable(error.to_string());
        let chain = read("certificates", certificates)?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| TlsError::Pem { what: "key", error: error.to_string() })?;
        let mut roots = RootCertStore::empty();
        for authority in read("authorities", authorities)? {
            roots.add(authority).map_err(|error| unusable(&error))?;
        }
        let roots = Arc::new(roots);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
            .build()
            .map_err(|error| unusable(&error))?;
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| unusable(&error))?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .map_err(|error| unusable(&error))?;
        let server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| unusable(&error))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(|error| unusable(&error))?;
        Ok(Self { client: Arc::new(client), server: Arc::new(server) })
    }

    pub(crate) fn connect(&self, name: &str) -> Result<Session, String> {
        let name = ServerName::try_from(name.to_owned()).map_err(|_| format!("{name:?} is no DNS name"))?;
        let connection =
            ClientConnection::new(Arc::clone(&self.client), name).map_err(|error| error.to_string())?;
        Ok(Session::new(connection.into()))
    }

    pub(crate) fn accept(&self) -> Result<Session, String> {
        let connection =
            ServerConnection::new(Arc::clone(&self.server)).map_err(|error| error.to_string())?;
        Ok(Session::new(connection.into()))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl PartialEq for Tls {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.client, &other.client)
    }
}

impl Eq for Tls {}

/// The encrypted layer of one connection.
pub(crate) struct Session {
    connection: Connection,
    /// The peer has said that it sends no more.
    pub(crate) farewell: bool,
}

/// The result of a read.
pub(crate) struct Arrived {
    /// Bytes in the clear that may be read.
    pub(crate) readable: usize,
    /// The peer's TCP has ended.
    pub(crate) ended: bool,
}

impl Session {
    fn new(mut connection: Connection) -> Self {
        connection.set_buffer_limit(Some(BUFFER_BYTES_MAX));
        Self { connection, farewell: false }
    }

    /// Read from the socket what it has, and decrypt it.
    pub(crate) fn receive(&mut self, fd: BorrowedFd<'_>) -> Result<Arrived, SessionError> {
        let bytes = match self.connection.read_tls(&mut Socket(fd)) {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Ok(Arrived { readable: 0, ended: false });
            }
            Err(error) => return Err(SessionError::Socket(error)),
        };
        match self.connection.process_new_packets() {
            Ok(state) => {
                self.farewell |= state.peer_has_closed();
                Ok(Arrived { readable: state.plaintext_bytes_to_read(), ended: bytes == 0 })
            }
            Err(error) => {
                // The alert tells the peer why, if it still reads.
                let _ = self.connection.write_tls(&mut Socket(fd));
                Err(SessionError::Tls(error.to_string()))
            }
        }
    }

    /// Take decrypted bytes; returns how many.
    pub(crate) fn take(&mut self, mut into: &mut [u8]) -> usize {
        let mut taken = 0;
        while !into.is_empty() {
            match self.connection.reader().read(into) {
                Ok(bytes @ 1..) => {
                    taken += bytes;
                    into = &mut into[bytes..];
                }
                _ => break,
            }
        }
        taken
    }

    /// Encrypt bytes, as far as there is room; returns how many.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> usize {
        self.connection.writer().write(bytes).unwrap_or(0)
    }

    /// True if encrypted bytes wait to be written.
    pub(crate) fn waits(&self) -> bool {
        self.connection.wants_write()
    }

    /// Write what waits.
    pub(crate) fn send(&mut self, fd: BorrowedFd<'_>) -> io::Result<usize> {
        self.connection.write_tls(&mut Socket(fd))
    }

    /// Tell the peer that no more comes.
    pub(crate) fn say_farewell(&mut self) {
        self.connection.send_close_notify();
    }

    /// True if the peer's certificate is valid for a name.
    pub(crate) fn check_name(&self, name: &str) -> Result<(), String> {
        let no = || format!("the peer's certificate is not valid for the name {name:?} of its greeting");
        let certificate = self.connection.peer_certificates().and_then(<[_]>::first).ok_or_else(no)?;
        let parsed = ParsedCertificate::try_from(certificate).map_err(|error| error.to_string())?;
        let name = ServerName::try_from(name).map_err(|_| no())?;
        verify_server_name(&parsed, &name).map_err(|_| no())
    }
}

/// Why the encrypted layer cannot go on.
pub(crate) enum SessionError {
    Socket(io::Error),
    Tls(String),
}

/// A socket as rustls reads and writes it.
struct Socket<'a>(BorrowedFd<'a>);

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(self.0.as_fd(), buffer)?)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.0.as_fd(), bytes, SendFlags::NOSIGNAL)?)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(sendmsg(self.0.as_fd(), slices, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
