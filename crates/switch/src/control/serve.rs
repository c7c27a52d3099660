//! Connections: authorization, and limits on number, size and time.

use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{sleep, timeout};

use crate::capture::CaptureStream;
use crate::control::answer::{Answer, Refusal};
use crate::control::body::{BODY_BYTES_MAX, BodyError, ResponseBody, collect};
use crate::control::operation::Operation;
use crate::control::places::{CONNECTIONS_MAX, HttpPlaces, PlaceAdmission};
use crate::control::query::Query;
use crate::control::routes::{Call, Found, PCAPNG, Route, find, routes};
use crate::control::settings::{ControlSettings, ControlStartError};

/// Requests that may wait for the data path.
const WAITING_MAX: usize = 4;
/// The longest time for a request's head, including the idle time before it.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest time for a request's body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest time of a connection. A capture's duration is added.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(120);
/// The most bytes of a request's head.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// The interval at which a capture collects copies.
const CAPTURE_EVERY: Duration = Duration::from_millis(5);
/// Parts of a capture that wait for a slow client; beyond them, copies are dropped and counted.
const CAPTURE_PARTS_MAX: usize = 16;
/// The interval at which alarms are checked.
const ALARM_EVERY: Duration = Duration::from_secs(1);

/// The open sockets, before the server starts.
pub(super) struct Listeners {
    socket: Option<StdUnixListener>,
    http: Option<std::net::TcpListener>,
    token: Option<String>,
}

struct ServerState {
    operation: Operation,
    routes: Vec<Route>,
    token: Option<String>,
    waiting: Semaphore,
}

/// The listener of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Via {
    /// The local socket: file permissions authorize its clients.
    Socket,
    /// The HTTP address.
    Http,
}

/// Opens the sockets. Returns them and the address of HTTP.
pub(super) fn listen(
    settings: &ControlSettings,
) -> Result<(Listeners, Option<SocketAddr>), ControlStartError> {
    settings.check()?;
    let mut listeners = Listeners { socket: None, http: None, token: settings.token.clone() };
    let mut address = None;
    if let Some(wanted) = settings.http {
        let fail = |error| ControlStartError::Listen { place: wanted.to_string(), error };
        let listener = std::net::TcpListener::bind(wanted).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        address = Some(listener.local_addr().map_err(fail)?);
        listeners.http = Some(listener);
    }
    if let Some(path) = &settings.socket {
        listeners.socket = Some(listen_at(path)?);
    }
    Ok((listeners, address))
}

/// Opens a local socket that only its owner can use. Replaces a stale socket, but not one in use.
fn listen_at(path: &Path) -> Result<StdUnixListener, ControlStartError> {
    let fail = |error| ControlStartError::Listen { place: path.display().to_string(), error };
    if let Ok(found) = std::fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(ControlStartError::NoSocket { path: path.to_owned() });
        }
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(ControlStartError::Taken { path: path.to_owned() });
        }
        std::fs::remove_file(path).map_err(fail)?;
    }
    // The socket gets its name after its permissions are set.
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}", std::process::id()));
    let hidden = path.with_file_name(name);
    let listener = StdUnixListener::bind(&hidden).map_err(fail)?;
    let ready = std::fs::set_permissions(&hidden, std::fs::Permissions::from_mode(0o600))
        .and_then(|()| listener.set_nonblocking(true))
        .and_then(|()| std::fs::rename(&hidden, path));
    if let Err(error) = ready {
        let _ = std::fs::remove_file(&hidden);
        return Err(fail(error));
    }
    Ok(listener)
}

/// Serves until `stopped` completes.
pub(super) fn run(listeners: Listeners, operation: Operation, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(WAITING_MAX)
        .build()
        .expect("a runtime needs nothing but memory and an epoll instance");
    let Listeners { socket, http, token } = listeners;
    let shared =
        Arc::new(ServerState { operation, routes: routes(), token, waiting: Semaphore::new(WAITING_MAX) });
    runtime.block_on(async {
        if let Some(socket) = socket.and_then(|socket| UnixListener::from_std(socket).ok()) {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
                loop {
                    match socket.accept().await {
                        Ok((stream, _)) => admit(stream, &shared, &places),
                        // `accept` fails, for instance, if no file descriptor is free: retry later.
                        Err(_) => sleep(CAPTURE_EVERY * 20).await,
                    }
                }
            });
        }
        if let Some(http) = http.and_then(|http| TcpListener::from_std(http).ok()) {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                let mut places = HttpPlaces::new();
                loop {
                    match http.accept().await {
                        Ok((stream, caller)) => admit_caller(stream, caller.ip(), &shared, &mut places),
                        Err(_) => sleep(CAPTURE_EVERY * 20).await,
                    }
                }
            });
        }
        tokio::spawn(watch_alarms(Arc::clone(&shared)));
        // Sent by `stop`, or dropped with the server.
        let _ = stopped.await;
    });
    // Running handlers are abandoned: their clients' connections are closed.
    runtime.shutdown_background();
}

/// Serves a connection of the local socket if there is a place for it.
fn admit(stream: UnixStream, shared: &Arc<ServerState>, places: &Arc<Semaphore>) {
    match Arc::clone(places).try_acquire_owned() {
        Ok(place) => {
            let shared = Arc::clone(shared);
            tokio::spawn(async move {
                serve(stream, Via::Socket, shared, Arc::default()).await;
                drop(place);
            });
        }
        Err(_) => refuse_connection(stream),
    }
}

/// Serves a connection of the HTTP address if there is a place for it, or another one makes room.
fn admit_caller(stream: TcpStream, caller: IpAddr, shared: &Arc<ServerState>, places: &mut HttpPlaces) {
    match places.admit(caller) {
        PlaceAdmission::Free => {
            let is_authorized = Arc::<AtomicBool>::default();
            let served = serve(stream, Via::Http, Arc::clone(shared), Arc::clone(&is_authorized));
            places.add(caller, is_authorized, tokio::spawn(served));
        }
        PlaceAdmission::Full => refuse_connection(stream),
        PlaceAdmission::TooFrequent => {}
    }
}

fn refuse_connection(mut stream: impl AsyncWrite + Unpin + Send + 'static) {
    tokio::spawn(async move {
        let text = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n\
                    content-length: 0\r\n\r\n";
        let _ = timeout(Duration::from_secs(1), stream.write_all(text.as_bytes())).await;
    });
}

/// State of a connection that its requests change.
struct HttpConnectionState {
    /// The longest time of the connection, ms.
    allowed_ms: AtomicU64,
    is_authorized: Arc<AtomicBool>,
}

/// Serves one connection, for a limited time.
async fn serve<S>(stream: S, via: Via, shared: Arc<ServerState>, is_authorized: Arc<AtomicBool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let start = Instant::now();
    let allowed_ms = AtomicU64::new(CONNECTION_TIMEOUT.as_millis() as u64);
    let state = Arc::new(HttpConnectionState { allowed_ms, is_authorized });
    let of_requests = Arc::clone(&state);
    let service = service_fn(move |request| {
        let (shared, state) = (Arc::clone(&shared), Arc::clone(&of_requests));
        async move { Ok::<_, std::convert::Infallible>(respond(request, via, &shared, &state).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(HEAD_BYTES_MAX);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    loop {
        let left =
            Duration::from_millis(state.allowed_ms.load(Ordering::Relaxed)).saturating_sub(start.elapsed());
        if left.is_zero() {
            return;
        }
        // An error of a client ends its connection only.
        if timeout(left, connection.as_mut()).await.is_ok() {
            return;
        }
    }
}

async fn respond(
    request: Request<Incoming>,
    via: Via,
    shared: &Arc<ServerState>,
    state: &HttpConnectionState,
) -> Response<ResponseBody> {
    match answer(request, via, shared, state).await {
        Ok((answer, status, is_head)) => good(answer, status, is_head, &state.allowed_ms),
        Err(Failed { refusal, allow }) => {
            let text = serde_json::to_string(&refusal).expect("a refusal is JSON");
            let mut response = Response::new(ResponseBody::Whole(Bytes::from(text)));
            *response.status_mut() = refusal.status();
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
            match refusal.status() {
                StatusCode::UNAUTHORIZED => {
                    headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                }
                StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                    headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
                }
                _ => {}
            }
            if let Some(value) = allow.and_then(|methods| HeaderValue::from_str(&methods).ok()) {
                headers.insert(ALLOW, value);
            }
            response
        }
    }
}

struct Failed {
    refusal: Refusal,
    allow: Option<String>,
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, allow: None }
    }
}

fn refuse(status: StatusCode, detail: impl std::fmt::Display) -> Failed {
    Refusal::new(status, detail).into()
}

async fn answer(
    request: Request<Incoming>,
    via: Via,
    shared: &Arc<ServerState>,
    state: &HttpConnectionState,
) -> Result<(Answer, u16, bool), Failed> {
    let may_ask = |is_open| may_ask(&request, via, shared, is_open, &state.is_authorized);
    let (index, name) = match find(&shared.routes, request.method(), request.uri().path())? {
        Found::Route(route, name) => {
            let index =
                shared.routes.iter().position(|other| std::ptr::eq(other, route)).expect("of this table");
            (index, name)
        }
        Found::Methods(methods) => {
            may_ask(false)?;
            let mut names: Vec<&str> = methods.iter().map(|method| method.as_str()).collect();
            if names.contains(&"GET") {
                names.push("HEAD");
            }
            let allow = names.join(", ");
            let detail = format!("{} accepts {allow}", request.uri().path());
            let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, detail);
            return Err(Failed { refusal, allow: Some(allow) });
        }
        Found::Nothing => {
            may_ask(false)?;
            let detail =
                format!("{} does not exist; /v1/openapi.json lists all requests", request.uri().path());
            return Err(refuse(StatusCode::NOT_FOUND, detail));
        }
    };
    let route = &shared.routes[index];
    may_ask(route.is_open)?;
    let query = Query::parse(request.uri().query(), route.query)?;
    let is_head = *request.method() == Method::HEAD;
    let body = if route.body.is_some() {
        let kind =
            request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("nothing");
        if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
            let detail = format!("the body is application/json, not {kind}");
            return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        }
        match timeout(BODY_TIMEOUT, collect(request.into_body(), BODY_BYTES_MAX)).await {
            Ok(Ok(body)) => body,
            Ok(Err(BodyError::TooLarge)) => {
                let detail = format!("a body has at most {BODY_BYTES_MAX} bytes");
                return Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, detail));
            }
            Ok(Err(BodyError::Broken)) => {
                return Err(refuse(StatusCode::BAD_REQUEST, "the body broke off"));
            }
            Err(_) => {
                let detail = format!("the body took longer than {} s", BODY_TIMEOUT.as_secs());
                return Err(refuse(StatusCode::REQUEST_TIMEOUT, detail));
            }
        }
    } else {
        Vec::new()
    };
    // Few handlers may wait for the data path, so that threads remain free to refuse the other requests.
    let Ok(_place) = timeout(HEAD_TIMEOUT, shared.waiting.acquire()).await else {
        return Err(refuse(StatusCode::SERVICE_UNAVAILABLE, "too many requests wait for the data path"));
    };
    let status = route.status;
    let shared = Arc::clone(shared);
    let call = Call { name, query, body };
    let handled =
        tokio::task::spawn_blocking(move || (shared.routes[index].handle)(&shared.operation, &call)).await;
    match handled {
        Ok(answer) => Ok((answer?, status, is_head)),
        Err(_) => Err(refuse(StatusCode::INTERNAL_SERVER_ERROR, "internal error of the switch")),
    }
}

/// Authorizes a request by its token. Without a token, accepts requests from this machine, except from web pages. Sets
/// `is_authorized` for a request that is not open to all.
fn may_ask(
    request: &Request<Incoming>,
    via: Via,
    shared: &ServerState,
    is_open: bool,
    is_authorized: &AtomicBool,
) -> Result<(), Failed> {
    if via == Via::Socket {
        return Ok(());
    }
    let headers = request.headers();
    if headers.contains_key(ORIGIN) {
        return Err(refuse(StatusCode::FORBIDDEN, "web pages may not control a switch"));
    }
    let Some(token) = &shared.token else {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        // A web page may resolve any name to this machine (DNS rebinding), but not an address.
        if !is_loopback(host) {
            let detail = format!(
                "without a token the switch accepts the hosts 127.0.0.1, [::1] and localhost, not `{host}`"
            );
            return Err(refuse(StatusCode::FORBIDDEN, detail));
        }
        is_authorized.fetch_or(!is_open, Ordering::Relaxed);
        return Ok(());
    };
    if is_open {
        return Ok(());
    }
    let shown = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    match shown {
        Some(shown) if is_equal(shown, token.as_bytes()) => {
            is_authorized.store(true, Ordering::Relaxed);
            Ok(())
        }
        Some(_) => Err(refuse(StatusCode::UNAUTHORIZED, "the token is wrong")),
        None => Err(refuse(StatusCode::UNAUTHORIZED, "send the token: `Authorization: Bearer …`")),
    }
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Compares in constant time.
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

fn good(answer: Answer, status: u16, is_head: bool, more: &AtomicU64) -> Response<ResponseBody> {
    let (kind, body) = match answer {
        Answer::Json(status, text) => {
            let mut response = Response::new(ResponseBody::Whole(Bytes::from(text)));
            *response.status_mut() = status;
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            return response;
        }
        Answer::Done => {
            let mut response = Response::new(ResponseBody::Whole(Bytes::new()));
            *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::NO_CONTENT);
            return response;
        }
        Answer::Text(kind, text) => (kind, ResponseBody::Whole(Bytes::from(text))),
        // An answer to HEAD has no body.
        Answer::Capture(_) if is_head => (PCAPNG, ResponseBody::Whole(Bytes::new())),
        Answer::Capture(stream) => {
            more.fetch_add(stream.spec().seconds * 1000, Ordering::Relaxed);
            let (parts, queue) = mpsc::channel(CAPTURE_PARTS_MAX);
            tokio::spawn(send_capture(stream, parts));
            (PCAPNG, ResponseBody::Stream(queue))
        }
    };
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Sends the parts of a capture until it ends or its client leaves.
async fn send_capture(mut stream: CaptureStream, parts: mpsc::Sender<Bytes>) {
    while let Some(bytes) = stream.poll_bytes() {
        if bytes.is_empty() {
            if parts.is_closed() {
                return;
            }
            sleep(CAPTURE_EVERY).await;
        } else if parts.send(Bytes::from(bytes)).await.is_err() {
            return;
        }
    }
}

/// Logs rings that rise above their alarm level or fall below it.
async fn watch_alarms(shared: Arc<ServerState>) {
    let mut raised: Vec<String> = Vec::new();
    loop {
        sleep(ALARM_EVERY).await;
        let operation = shared.operation.clone();
        let Ok(Ok(snapshot)) = tokio::task::spawn_blocking(move || operation.snapshot(false)).await else {
            continue;
        };
        for ring in &snapshot.rings {
            let was_raised = raised.contains(&ring.name);
            if ring.alarm && !was_raised {
                eprintln!(
                    "alarm: ring `{}` holds {} frames, {} bytes; at most {} frames, {} bytes since its marks were reset",
                    ring.name,
                    ring.queue.frames,
                    ring.queue.bytes,
                    ring.queue.frames_max,
                    ring.queue.bytes_max
                );
                raised.push(ring.name.clone());
            } else if !ring.alarm && was_raised {
                eprintln!("alarm over: ring `{}` holds {} frames", ring.name, ring.queue.frames);
                raised.retain(|name| *name != ring.name);
            }
        }
        raised.retain(|name| snapshot.rings.iter().any(|ring| ring.name == *name));
    }
}

impl std::fmt::Debug for Listeners {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the token.
        out.debug_struct("Listeners")
            .field("socket", &self.socket)
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine_are_known() {
        for host in ["localhost", "localhost:9414", "127.0.0.1:80", "127.3.0.1", "[::1]:9414", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in
            ["", "evil.example:9414", "10.0.0.1:80", "127.0.0.1.evil.example", "[::2]:80", "localhost.evil"]
        {
            assert!(!is_loopback(host), "{host}");
        }
        assert!(is_equal(b"abc", b"abc") && !is_equal(b"abc", b"abd") && !is_equal(b"abc", b"ab"));
    }
}
