//! TLS 1.3 with certificates on both sides, for networks that other parties can reach.

use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection};

use crate::net::Socket;

/// Most encrypted bytes that wait inside one connection.
const BUFFER_BYTES_MAX: usize = 128 << 10;

/// This side's certificate, and the authorities that it trusts.
///
/// Each side shows a certificate from an authority that the other trusts. The certificate has to be valid for the name
/// in the greeting, as a DNS name among its alternative names. Only TLS 1.3 is supported.
#[derive(Clone)]
pub struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

/// Error in certificates or keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A text is not valid PEM.
    #[error("{item}: {error}")]
    Pem {
        /// Name of the text: `"certificates"`, `"key"` or `"authorities"`.
        item: &'static str,
        /// Error of the parser.
        error: String,
    },
    /// A text has no certificate, and at least one is needed.
    #[error("{0}: no certificate found")]
    Empty(&'static str),
    /// Certificates and key do not match, or their type is not supported.
    #[error("{0}")]
    Unusable(String),
}

impl Tls {
    /// Creates settings from PEM texts. `certificates` has this side's own first, then the intermediate ones. `key` is
    /// the first one's key; `authorities` are the trusted ones.
    ///
    /// # Errors
    ///
    /// [`TlsError`] for texts that are not PEM or do not match.
    pub fn from_pem(certificates: &[u8], key: &[u8], authorities: &[u8]) -> Result<Self, TlsError> {
        let read = |item, text| {
            let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
            let all = all.map_err(|error| TlsError::Pem { item, error: error.to_string() })?;
            if all.is_empty() { Err(TlsError::Empty(item)) } else { Ok(all) }
        };
        let unusable = |error: &dyn fmt::Display| TlsError::Unusable(error.to_string());
        let chain = read("certificates", certificates)?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| TlsError::Pem { item: "key", error: error.to_string() })?;
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
        let name =
            ServerName::try_from(name.to_owned()).map_err(|_| format!("{name:?} is not a DNS name"))?;
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

/// TLS layer of one connection.
pub(crate) struct Session {
    connection: Connection,
    /// True if the peer has sent `close_notify`.
    pub(crate) farewell: bool,
}

/// Result of a read.
pub(crate) struct Arrived {
    /// Decrypted bytes that can be taken.
    pub(crate) readable: usize,
    /// True if the peer's TCP has ended.
    pub(crate) ended: bool,
}

impl Session {
    fn new(mut connection: Connection) -> Self {
        connection.set_buffer_limit(Some(BUFFER_BYTES_MAX));
        Self { connection, farewell: false }
    }

    /// Reads from the socket once, and decrypts the bytes.
    pub(crate) fn receive(&mut self, socket: &Socket) -> Result<Arrived, SessionError> {
        let bytes = match self.connection.read_tls(&mut TlsStream(socket)) {
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
                // The alert gives the peer the reason, if it still reads.
                let _ = self.connection.write_tls(&mut TlsStream(socket));
                Err(SessionError::Tls(error.to_string()))
            }
        }
    }

    /// Copies decrypted bytes into `into`; returns their number.
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

    /// Encrypts bytes as far as the buffer has room; returns their number.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> usize {
        self.connection.writer().write(bytes).unwrap_or(0)
    }

    /// Returns true if encrypted bytes are waiting to be written.
    pub(crate) fn waits(&self) -> bool {
        self.connection.wants_write()
    }

    /// Writes the waiting bytes; returns their number.
    pub(crate) fn send(&mut self, socket: &Socket) -> io::Result<usize> {
        self.connection.write_tls(&mut TlsStream(socket))
    }

    /// Queues `close_notify`: no more data follows.
    pub(crate) fn say_farewell(&mut self) {
        self.connection.send_close_notify();
    }

    /// Checks that the peer's certificate is valid for a name.
    pub(crate) fn check_name(&self, name: &str) -> Result<(), String> {
        let no = || format!("the peer's certificate is not valid for the name {name:?} of its greeting");
        let certificate = self.connection.peer_certificates().and_then(<[_]>::first).ok_or_else(no)?;
        let parsed = ParsedCertificate::try_from(certificate).map_err(|error| error.to_string())?;
        let name = ServerName::try_from(name).map_err(|_| no())?;
        verify_server_name(&parsed, &name).map_err(|_| no())
    }
}

/// Reason for which the TLS layer stops.
pub(crate) enum SessionError {
    Socket(io::Error),
    Tls(String),
}

/// A socket with the traits that rustls needs.
struct TlsStream<'a>(&'a Socket);

impl Read for TlsStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(self.0.receive(buffer, &mut [])?)
    }
}

impl Write for TlsStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(self.0.send(bytes)?)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(self.0.send_pieces(slices)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
