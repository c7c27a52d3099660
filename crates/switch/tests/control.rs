//! Control of a running switch: its answers, and hostile clients.

#[path = "../../../tests/hang_guard.rs"]
mod hang_guard;
#[path = "../../../tests/skip.rs"]
mod skip;
#[path = "../examples/busy/traffic.rs"]
mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fanin_switch::Running;
use fanin_switch::capture::{CAPTURES_MAX, CapturePoint, CaptureSpec};
use fanin_switch::config::HttpAuthentication;
use fanin_switch::control::{
    Client, ControlAddress, ControlServer, ControlSettings, ControlStartError, description,
};
use serde_json::{Value, json};

use hang_guard::HangGuard;
use skip::skip;
use traffic::{Counts, SOURCES, Traffic};

/// A switch with traffic, and a server on a free port and on a socket of its own.
struct Busy {
    running: Running,
    server: ControlServer,
    counts: Arc<Counts>,
    socket: PathBuf,
    http: SocketAddr,
}

fn socket_path() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("fanin-control-{}-{number}.sock", std::process::id()))
}

impl Busy {
    fn new(token: Option<&str>) -> Self {
        let config = traffic::config();
        let counts = Arc::new(Counts::default());
        let ports = Traffic::new(&config, 5_000, Arc::clone(&counts));
        let running = Running::over(&config, vec![ports]).unwrap();
        let socket = socket_path();
        let settings = ControlSettings {
            socket: Some(socket.clone()),
            http: Some("127.0.0.1:0".parse().unwrap()),
            token: token.map(str::to_owned),
            authentication: if token.is_some() {
                HttpAuthentication::Token
            } else {
                HttpAuthentication::None
            },
        };
        let server = ControlServer::start(&settings, running.operation()).unwrap();
        let http = server.http_address().unwrap();
        wait_for("traffic", || counts.arrived.load(Ordering::Relaxed) > 0);
        Self { running, server, counts, socket, http }
    }

    fn client(&self) -> Client {
        Client::new(ControlAddress::Socket(self.socket.clone()))
    }

    /// Status and detail of a request that is refused.
    fn refusal(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, String) {
        let response = self.client().exchange(method, path, body).unwrap();
        assert_eq!(response.kind, "application/problem+json", "{method} {path} {body:?}");
        let problem: Value = serde_json::from_slice(&response.body).unwrap();
        assert_eq!(problem["status"], response.status);
        (response.status, problem["detail"].as_str().unwrap().to_owned())
    }

    /// Sends bytes over TCP and reads until the other side closes.
    fn raw(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.http).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // The other side may close before it has read all of it.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Stops everything, and checks that no frame was lost.
    fn stop(self) {
        self.server.stop();
        assert!(!self.socket.exists());
        let ended = self.running.stop();
        let [sent, arrived, reordered, wrong] =
            [&self.counts.sent, &self.counts.arrived, &self.counts.reordered, &self.counts.wrong]
                .map(|count| count.load(Ordering::Relaxed));
        assert_eq!((arrived, reordered, wrong, ended.snapshot.drops()), (sent, 0, 0, 0));
        assert!(sent > 0);
    }
}

fn wait_for(awaited: &str, mut condition: impl FnMut() -> bool) {
    let guard = HangGuard::new();
    while !condition() {
        guard.check(awaited);
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn rings_and_rules_change_while_frames_pass() {
    let busy = Busy::new(None);
    let client = busy.client();
    assert_eq!(client.read("/healthz").unwrap()["status"], "ok");
    assert_eq!(client.read("/v1/rings").unwrap().as_array().unwrap().len(), 4);

    let ring = json!({"name": "deep:one", "port": "collector-8", "bytes": "1 MiB", "rate": "1 Gb/s"});
    let response = client.send("POST", "/v1/rings", Some(&ring)).unwrap();
    assert_eq!(response.status, 201);
    let rule = json!({"name": "r", "ring": "deep:one", "source_port": "5000-5063", "protocol": "tcp", "priority": 9});
    assert_eq!(client.send("POST", "/v1/rules", Some(&rule)).unwrap().status, 201);
    assert_eq!(client.read("/v1/rules/r").unwrap()["spec"]["source_port"], "5000-5063");

    let change = json!({"rate": null, "bytes": "2 MiB", "priority": 3});
    let response = client.send("PATCH", "/v1/rings/deep%3Aone", Some(&change)).unwrap();
    let item: Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!((&item["spec"]["rate"], &item["spec"]["bytes"]), (&Value::Null, &json!("2 MiB")));
    assert_eq!(item["spec"]["priority"], 3);

    let (status, detail) = busy.refusal("DELETE", "/v1/rings/deep%3Aone", None);
    assert_eq!(
        (status, detail.contains("the rule `r` sends frames to the ring `deep:one`")),
        (409, true),
        "{detail}"
    );
    assert_eq!(client.send("DELETE", "/v1/rules/r", None).unwrap().status, 204);
    assert_eq!(client.send("DELETE", "/v1/rings/deep%3Aone", None).unwrap().status, 204);
    assert_eq!(busy.refusal("GET", "/v1/rings/deep%3Aone", None).0, 404);

    let change = json!({"rate": "5 Gb/s", "flood": false});
    client.send("PATCH", "/v1/ports/collector-9", Some(&change)).unwrap();
    assert_eq!(client.read("/v1/ports/collector-9").unwrap()["spec"]["rate"], "5 Gb/s");
    assert_eq!(client.read("/v1/config").unwrap()["ring"].as_array().unwrap().len(), 4);

    let station = json!({"mac": "02:00:00:00:00:77", "port": "source-0"});
    assert_eq!(client.send("POST", "/v1/stations", Some(&station)).unwrap().status, 204);
    let known = client.read("/v1/stations?port=source-0").unwrap();
    assert!(known.as_array().unwrap().iter().any(|s| s["mac"] == "02:00:00:00:00:77"), "{known}");
    client.send("DELETE", "/v1/stations/02:00:00:00:00:77", None).unwrap();
    assert_eq!(busy.refusal("DELETE", "/v1/stations/02:00:00:00:00:77", None).0, 404);
    client.send("DELETE", "/v1/stations", None).unwrap();
    busy.stop();
}

#[test]
fn marks_and_alarms() {
    let busy = Busy::new(None);
    let client = busy.client();
    let state = |name: &str| client.read(&format!("/v1/rings/{name}")).unwrap()["state"].clone();
    // For a moment the ring is slower than its traffic, and fills beyond its alarm level.
    client.send("PATCH", "/v1/rings/ring-8", Some(&json!({"rate": "100 kb/s", "alarm": 0.001}))).unwrap();
    wait_for("the alarm", || state("ring-8")["alarm"] == true);
    client.send("PATCH", "/v1/rings/ring-8", Some(&json!({"rate": "10 Gb/s"}))).unwrap();
    wait_for("its end", || state("ring-8")["alarm"] == false);
    assert!(state("ring-8")["alarms"].as_u64().unwrap() >= 1);
    assert!(state("ring-8")["queue"]["frames_max"].as_u64().unwrap() > 8);
    // Repeated, because a worker that is preempted in between fills the ring again.
    wait_for("fresh marks", || {
        client.send("POST", "/v1/marks/reset", None).unwrap();
        state("ring-8")["queue"]["frames_max"].as_u64().unwrap() < 8
    });
    busy.stop();
}

#[test]
fn mistakes_are_answered_with_what_was_wrong() {
    let busy = Busy::new(None);
    let ring = |more: &str| {
        let text = format!(r#"{{"name": "x", "port": "collector-8", "bytes": "1 MiB"{more}}}"#);
        Some(serde_json::from_str::<Value>(&text).unwrap())
    };
    for (method, path, body, status, part) in [
        ("GET", "/v1/ring", None, 404, "/v1/openapi.json lists all requests"),
        ("GET", "/v1/rings/", None, 404, "/v1/rings/ does not exist"),
        ("GET", "/v1/rings/a/b", None, 404, "/v1/rings/a/b does not exist"),
        ("GET", "/v1/rings/%ff", None, 400, "not percent-encoded"),
        ("GET", "/v1/rings/nine", None, 404, "there is no ring `nine`"),
        ("PUT", "/v1/rings", None, 405, "accepts GET, POST, HEAD"),
        ("GET", "/v1/rings?all=1", None, 400, "unknown parameter `all`; known here: none"),
        ("POST", "/v1/rings", Some(json!([])), 422, "invalid body"),
        (
            "POST",
            "/v1/rings",
            ring(r#", "ratee": "1 Gb/s""#),
            422,
            "unknown field `ratee`, expected one of `name`, `port`",
        ),
        ("POST", "/v1/rings", ring(r#", "rate": "1 gb/s""#), 422, "unknown unit"),
        ("POST", "/v1/rings", ring(r#", "rate": 5"#), 422, "rate"),
        ("POST", "/v1/rings", Some(json!({"name": "x", "port": "nowhere"})), 422, "nowhere"),
        (
            "POST",
            "/v1/rings",
            Some(json!({"name": "ring-8", "port": "collector-8"})),
            409,
            "there is a ring `ring-8` already",
        ),
        ("POST", "/v1/rules", Some(json!({"name": "x", "ring": "no"})), 422, "ring: there is no ring `no`"),
        ("PATCH", "/v1/rings/ring-8", Some(json!({"alarm": 80})), 422, "alarm: a share is at most 1, not 80"),
        (
            "PATCH",
            "/v1/rings/ring-8",
            Some(json!({"priority": 300})),
            422,
            "expected a whole number from 0 to 255 at line 1",
        ),
        (
            "PATCH",
            "/v1/rings/ring-8",
            Some(json!({"frames": null, "bytes": null})),
            422,
            "has no capacity: give",
        ),
        ("POST", "/v1/rings", ring(r#", "burst": "5 kB""#), 422, "burst: a burst without a rate"),
        (
            "POST",
            "/v1/rules",
            Some(json!({"name": "x", "ring": "ring-8", "vlan": 5000})),
            422,
            "a number from 1 to 4094",
        ),
        (
            "POST",
            "/v1/rules",
            Some(json!({"name": "x", "ring": "ring-8", "destination_port": 80})),
            422,
            "add `protocol",
        ),
        ("POST", "/v1/rules", Some(json!({"name": "x"})), 422, "rule `x` does nothing"),
        (
            "POST",
            "/v1/stations",
            Some(json!({"mac": "ff:ff:ff:ff:ff:ff", "port": "source-0"})),
            422,
            "is not the address of a single station",
        ),
        ("DELETE", "/v1/rings/ring-8", None, 409, "the rule `rule-8` sends frames to the ring `ring-8`"),
        (
            "PATCH",
            "/v1/ports/source-1",
            Some(json!({"impair": {"loss": 2}})),
            422,
            "impair: a share is at most 1",
        ),
        ("PATCH", "/v1/ports/source-1", Some(json!({"rate": "1 b/s"})), 422, "between 10 kb/s and 4 Tb/s"),
        ("POST", "/v1/rings", ring(r#", "ecn": {"mode": "red-mark", "threshold": 7}"#), 422, "nothing reads"),
        ("PATCH", "/v1/rings/ring-8", Some(json!({"ecn": {"threshold": 7}})), 422, "`ecn` has no `mode`"),
        ("POST", "/v1/rings", ring(r#", "mark": {"frames": 7}"#), 422, "the field is `ecn`"),
        ("POST", "/v1/stations", Some(json!({"mark": 7})), 422, "unknown field `mark`, expected one of"),
        ("PATCH", "/v1/ports/source-1", Some(json!([null, null])), 422, "an object without lists"),
        ("PATCH", "/v1/rings/ring-8", Some(json!({"bytes": "99.99 PB"})), 422, "packet memory"),
        ("PATCH", "/v1/rings/nine", Some(json!({})), 404, "there is no ring `nine`"),
        ("PATCH", "/v1/rings/ring-8", Some(json!({"port": "collector-9"})), 422, "unknown field `port`"),
        ("PATCH", "/v1/ports/nine", Some(json!({})), 404, "there is no port `nine`"),
        ("DELETE", "/v1/stations/xy", None, 422, "`xy` is not a valid Ethernet address"),
        ("GET", "/v1/capture", None, 400, "name a port or a ring"),
        ("GET", "/v1/capture?port=collector-8&ring=ring-8", None, 400, "one of them"),
        ("GET", "/v1/capture?port=nine", None, 404, "there is no port `nine`"),
        ("GET", "/v1/capture?port=collector-8&seconds=601", None, 400, "from 1 to 600, not `601`"),
    ] {
        let (answered, detail) = busy.refusal(method, path, body.as_ref());
        assert_eq!(answered, status, "{method} {path}: {detail}");
        assert!(detail.contains(part), "{method} {path}: {detail}");
    }
    busy.stop();
}

fn request(body: &[u8], more: &str) -> Vec<u8> {
    let head = format!(
        "POST /v1/rings HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n{more}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

#[test]
fn hostile_requests_end_in_an_answer_or_a_closed_connection() {
    let busy = Busy::new(None);
    for (request, part) in [
        (request(&vec![b' '; 70_000], ""), "413 "),
        (b"POST /v1/rings HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\nconnection: close\r\n\r\n".to_vec(), "413 "),
        (request(&[b'['; 20_000], ""), "recursion limit"),
        (request(b"{\"name\": ", ""), "EOF while parsing"),
        (request(b"\xff\xfe", ""), "400 "),
        (request(br#"{"name":"a","name":"b","port":"collector-8"}"#, ""), "duplicate field `name`"),
        (request(b"{}", "origin: https://evil.example\r\n"), "403 "),
        (b"POST /v1/rings HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}".to_vec(), "415 "),
        (b"GET /v1/rings HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n".to_vec(), "403 "),
        (b"GET /v1/rings HTTP/1.1\r\nconnection: close\r\n\r\n".to_vec(), "403 "),
        ([b"GET /".to_vec(), vec![b'a'; 40_000], b" HTTP/1.1\r\n\r\n".to_vec()].concat(), "HTTP/1.1 4"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(), ""),
        (b"BREW /pot HTCPCP/1.0\r\n\r\n".to_vec(), ""),
    ] {
        let answer = busy.raw(&request);
        assert!(answer.contains(part), "{:?}…: {answer}", String::from_utf8_lossy(&request[..60.min(request.len())]));
        assert!(!answer.contains("500 "), "{answer}");
    }
    // Silent connections make room for those that ask, also at the same address.
    let silent: Vec<TcpStream> = (0..64).map(|_| TcpStream::connect(busy.http).unwrap()).collect();
    let asked = busy.raw(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    assert!(asked.contains("200 OK"), "{asked}");
    assert_eq!(busy.client().read("/healthz").unwrap()["status"], "ok");
    drop(silent);
    busy.stop();
}

#[test]
fn a_port_without_a_link_makes_the_switch_unready() {
    let busy = Busy::new(Some("correct-horse-battery"));
    let client = Client::new(ControlAddress::Http(busy.http, None));
    let ready = || client.exchange("GET", "/readyz", None).unwrap();
    assert_eq!(ready().status, 200);
    busy.counts.is_cut.store(true, Ordering::Relaxed);
    wait_for("the loss of a link", || ready().status == 503);
    let problem: Value = serde_json::from_slice(&ready().body).unwrap();
    assert_eq!(problem["detail"], "ports without a link: source-0");
    busy.counts.is_cut.store(false, Ordering::Relaxed);
    wait_for("the link", || ready().status == 200);
    busy.stop();
}

#[test]
fn a_token_is_asked_for_over_http_only() {
    let token = "correct-horse-battery";
    let busy = Busy::new(Some(token));
    assert!(busy.client().read("/v1/rings").is_ok());
    for shown in [None, Some("correct-horse-batterz".to_owned()), Some(String::new())] {
        let client = Client::new(ControlAddress::Http(busy.http, shown));
        assert_eq!(client.exchange("GET", "/v1/rings", None).unwrap().status, 401);
        assert_eq!(client.exchange("GET", "/metrics", None).unwrap().status, 401);
        assert_eq!(client.exchange("GET", "/nowhere", None).unwrap().status, 401);
        assert_eq!(client.exchange("GET", "/healthz", None).unwrap().status, 200);
    }
    let client = Client::new(ControlAddress::Http(busy.http, Some(token.to_owned())));
    assert_eq!(client.exchange("GET", "/v1/rings", None).unwrap().status, 200);
    busy.stop();
}

#[test]
fn places_to_listen_are_checked() {
    let busy = Busy::new(None);
    let start = |settings: ControlSettings| ControlServer::start(&settings, busy.running.operation());
    let local = ControlSettings { http: Some("127.0.0.1:0".parse().unwrap()), ..ControlSettings::default() };
    assert!(matches!(start(local.clone()), Err(ControlStartError::NoToken { .. })), "a token is the default");
    let without = |settings| ControlSettings { authentication: HttpAuthentication::None, ..settings };
    start(without(local)).unwrap().stop();
    let open = ControlSettings { http: Some("0.0.0.0:0".parse().unwrap()), ..ControlSettings::default() };
    assert!(matches!(start(open.clone()), Err(ControlStartError::NoToken { .. })));
    assert!(matches!(start(without(open.clone())), Err(ControlStartError::Open { .. })));
    let short = ControlSettings { token: Some("short".to_owned()), ..open.clone() };
    assert!(matches!(start(short), Err(ControlStartError::Token { length: 5 })));
    start(ControlSettings { token: Some("0123456789abcdef".to_owned()), ..open }).unwrap().stop();
    let taken = without(ControlSettings { http: Some(busy.http), ..ControlSettings::default() });
    assert!(matches!(start(taken), Err(ControlStartError::Listen { .. })));
    let at = |path: &PathBuf| ControlSettings { socket: Some(path.clone()), ..ControlSettings::default() };
    assert!(matches!(start(at(&busy.socket)), Err(ControlStartError::Taken { .. })));
    let file = socket_path();
    std::fs::write(&file, "precious").unwrap();
    assert!(matches!(start(at(&file)), Err(ControlStartError::NoSocket { .. })));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    std::fs::remove_file(&file).unwrap();
    // The socket of a killed switch is replaced, and only its owner can use the new one.
    drop(std::os::unix::net::UnixListener::bind(&file).unwrap());
    let server = start(at(&file)).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    server.stop();
    busy.stop();
}

/// Metric families by name: type, and samples without values.
fn families(text: &str) -> BTreeMap<String, (String, Vec<String>)> {
    let mut families: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    let mut helped = BTreeSet::new();
    let mut current = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words.as_slice() {
            ["#", "HELP", name, help] => {
                assert!(help.len() > 10, "{line}");
                assert!(helped.insert((*name).to_owned()), "described twice: {line}");
            }
            ["#", "TYPE", name, kind] => {
                current = (*name).to_owned();
                assert!(helped.contains(&current), "{line}");
                assert!(
                    families.insert(current.clone(), ((*kind).to_owned(), Vec::new())).is_none(),
                    "{line}"
                );
            }
            ["#", "EOF"] => {}
            _ => {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
                assert!(series.starts_with(&current), "{line}");
                let samples = &mut families.get_mut(&current).unwrap().1;
                assert!(!samples.contains(&series.to_owned()), "twice: {line}");
                samples.push(series.to_owned());
            }
        }
    }
    families
}

#[test]
fn metrics_are_what_prometheus_reads() {
    let busy = Busy::new(None);
    wait_for("traffic", || busy.counts.arrived.load(Ordering::Relaxed) > 100);
    let response = busy.client().send("GET", "/metrics", None).unwrap();
    assert!(response.kind.starts_with("application/openmetrics-text; version=1.0.0"), "{}", response.kind);
    let text = String::from_utf8(response.body).unwrap();
    assert!(text.ends_with("# EOF\n"));
    let families = families(&text);
    assert!(families.keys().all(|name| name.starts_with("fanin_switch")), "{families:?}");
    let has = |family: &str, series: &str| families[family].1.contains(&series.to_owned());
    assert!(has(
        "fanin_switch_port_received_frames",
        "fanin_switch_port_received_frames_total{port=\"source-0\"}"
    ));
    assert!(has(
        "fanin_switch_queue_bytes",
        "fanin_switch_queue_bytes{port=\"collector-8\",ring=\"ring-8\"}"
    ));
    assert!(has("fanin_switch_rule_matched_bytes", "fanin_switch_rule_matched_bytes_total{rule=\"rule-8\"}"));
    assert!(
        has(
            "fanin_switch_queue_occupancy_frames",
            "fanin_switch_queue_occupancy_frames_bucket{le=\"+Inf\",port=\"collector-8\",ring=\"ring-8\"}"
        ) || has(
            "fanin_switch_queue_occupancy_frames",
            "fanin_switch_queue_occupancy_frames_bucket{port=\"collector-8\",ring=\"ring-8\",le=\"+Inf\"}"
        ),
        "{text}"
    );
    let value = |series: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(series)).unwrap();
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    };
    assert!((value("fanin_switch_ring_rate_bytes_per_second{port=\"collector-8\"") - 1.25e9).abs() < 1.0);
    assert!(value("fanin_switch_rule_matched_frames_total{rule=\"rule-8\"}") > 0.0);
    // `increase()` does not see a counter that begins above 0.
    assert_eq!(value("fanin_switch_port_dropped_bytes_total{port=\"collector-8\",cause=\"memory\"}"), 0.0);

    // Every metric that the dashboard and the alerts ask for exists.
    let read = |name: &str| {
        std::fs::read_to_string(format!("{}/../../deploy/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    };
    let dashboard: Value = serde_json::from_str(&read("switch/grafana-dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let mut queries: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
    let rules = read("prometheus/fanin-switch-rules.yml");
    let alerts = rules.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    assert!(alerts.clone().count() >= 5 && alerts.clone().count() == rules.matches("- alert: ").count());
    queries.extend(alerts);
    let mut asked = 0;
    for query in queries {
        let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for word in words.filter(|word| word.starts_with("fanin_")) {
            let ends = ["", "_total", "_bucket", "_sum", "_count", "_info"];
            let family = families.keys().find(|name| ends.iter().any(|end| format!("{name}{end}") == word));
            let (kind, _) = &families[family.unwrap_or_else(|| panic!("no metric {word}: {query}"))];
            assert_eq!(kind == "counter", word.ends_with("_total"), "{word}");
            asked += 1;
        }
    }
    assert!(asked >= 20, "{asked}");
    busy.stop();
}

/// Interface, length, and captured bytes.
type Packet = (u32, u32, Vec<u8>);

/// The packet blocks of a capture, and its count of dropped frames.
fn packets(mut file: &[u8]) -> (Vec<Packet>, Option<u64>) {
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut packets, mut missing) = (Vec::new(), None);
    assert_eq!(word(file, 0), 0x0a0d_0d0a);
    while !file.is_empty() {
        let length = word(file, 4) as usize;
        assert_eq!(word(file, length - 4) as usize, length);
        let body = &file[8..length - 4];
        match word(file, 0) {
            6 => {
                packets.push((
                    word(body, 0),
                    word(body, 16),
                    body[20..20 + word(body, 12) as usize].to_vec(),
                ));
            }
            5 => missing = Some(u64::from(word(body, 16))),
            _ => {}
        }
        file = &file[length..];
    }
    (packets, missing)
}

#[test]
fn captures_hold_the_frames_of_their_port_or_ring() {
    let busy = Busy::new(None);
    let mut file = Vec::new();
    busy.client().download("/v1/capture?port=collector-8&seconds=1&snap=40", &mut file).unwrap();
    let (found, missing) = packets(&file);
    assert_eq!(missing, Some(0));
    assert!(found.len() > 100, "{}", found.len());
    for (interface, length, bytes) in &found {
        assert_eq!((*interface, bytes.len(), bytes[..6].to_vec()), (1, 40, traffic::station(8).0.to_vec()));
        assert!(*length >= 64);
    }
    let mut file = Vec::new();
    busy.client().download("/v1/capture?ring=ring-9&seconds=60&bytes=20000", &mut file).unwrap();
    let (found, _) = packets(&file);
    assert!(file.len() > 15_000 && file.len() <= 20_200, "{}", file.len());
    assert!(
        found
            .iter()
            .all(|(_, length, bytes)| *length as usize == bytes.len() && bytes[..6] == traffic::station(9).0)
    );
    // Wireshark's own reader agrees.
    let path = socket_path().with_extension("pcapng");
    std::fs::write(&path, &file).unwrap();
    let output = std::process::Command::new("tshark").args(["-n", "-r"]).arg(&path).output();
    std::fs::remove_file(&path).unwrap();
    match output {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            assert_eq!(text.lines().count(), found.len(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        Err(error) => skip(format!("tshark: {error}")),
    }
    let mut file = Vec::new();
    busy.client().download("/v1/capture?port=source-3&seconds=1", &mut file).unwrap();
    assert!(
        packets(&file)
            .0
            .iter()
            .all(|(interface, _, bytes)| *interface == 0 && bytes[6..12] == traffic::station(3).0)
    );
    assert_eq!(SOURCES, 8);
    busy.stop();
}

#[test]
fn a_capture_without_a_reader_drops_only_its_copies() {
    let busy = Busy::new(None);
    let operation = busy.running.operation();
    let spec = CaptureSpec {
        point: CapturePoint::Port("source-0".to_owned()),
        seconds: 60,
        bytes: 1 << 20,
        snap: 64,
    };
    let mut streams: Vec<_> =
        (0..CAPTURES_MAX).map(|_| operation.captures().start(spec.clone()).unwrap()).collect();
    assert!(operation.captures().start(spec).is_err());
    let (status, detail) = busy.refusal("GET", "/v1/capture?port=source-0", None);
    assert_eq!((status, detail.contains("4 captures are running")), (429, true), "{detail}");
    let before = busy.counts.arrived.load(Ordering::Relaxed);
    wait_for("a copy without a buffer", || operation.captures().dropped() > 0);
    assert!(busy.counts.arrived.load(Ordering::Relaxed) > before);
    let mut file = Vec::new();
    while file.len() < 10_000 {
        file.extend(streams[0].poll_bytes().unwrap());
    }
    drop(streams);
    assert!(operation.captures().is_empty());
    let mut file = Vec::new();
    busy.client().download("/v1/capture?port=source-0&seconds=1", &mut file).unwrap();
    assert!(packets(&file).0.len() > 10);
    busy.stop();
}

#[test]
fn the_description_names_every_schema_that_it_uses() {
    let description = description();
    let schemas = description["components"]["schemas"].as_object().unwrap();
    let text = description.to_string();
    for part in text.split("#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name}");
    }
    assert!(text.matches("operationId").count() > 20);
}
