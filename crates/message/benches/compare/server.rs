//! The servers under comparison: ours, and the peers that are built here.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs, io};

use fanin_message::{
    Backend, ConnectionOptions, EndpointEvent, EndpointSettings, Greeting, Limits, MessageEndpoint,
};
use rustix::thread::{CpuSet, Pid, sched_setaffinity};

/// A kind of server, and the command that starts it.
#[derive(Clone)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    pub(crate) zmtp: bool,
}

/// Our server, and the peers that can be built here; reports the missing parts for the others.
pub(crate) fn kinds() -> Vec<Kind> {
    let ours = |name, backend: &str| Kind {
        name,
        program: env::current_exe().expect("a path of its own"),
        arguments: vec!["--serve".into(), backend.into()],
        zmtp: false,
    };
    let mut kinds = vec![ours("fanin, epoll", "epoll")];
    if MessageEndpoint::new(EndpointSettings { backend: Backend::Uring, ..EndpointSettings::default() })
        .is_ok()
    {
        kinds.push(ours("fanin, io_uring", "uring"));
    } else {
        println!("The kernel offers no io_uring that is new enough: only epoll is measured.");
    }
    for (source, name, argument, library, zmtp) in [
        ("epoll.c", "bare epoll loop", None, None, false),
        ("asio.cpp", "ASIO, two reads", Some("two-reads"), Some("-lpthread"), false),
        ("asio.cpp", "ASIO, buffered", Some("buffered"), Some("-lpthread"), false),
        ("zeromq.c", "ZeroMQ ROUTER", None, Some("-lzmq"), true),
    ] {
        match build(source, library) {
            Ok(program) => {
                let arguments = argument.into_iter().map(String::from).collect();
                kinds.push(Kind { name, program, arguments, zmtp });
            }
            Err(error) => println!("{name} is left out: {error}"),
        }
    }
    kinds
}

fn build(source: &str, library: Option<&str>) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("message-peers");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let source_path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers").join(source);
    let program = folder.join(source.replace('.', "-"));
    let time = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    if time(&program) > time(&source_path) {
        return Ok(program);
    }
    let compiler = if source.ends_with(".c") { "cc" } else { "c++" };
    let output = Command::new(compiler)
        .args(["-O2", "-o"])
        .arg(&program)
        .arg(&source_path)
        .args(library)
        .output()
        .map_err(|error| format!("{compiler}: {error}"))?;
    if output.status.success() {
        return Ok(program);
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let first = words.lines().find(|line| line.contains("error")).unwrap_or("it does not compile");
    Err(format!("{first} (Debian: apt-get install g++ libboost-dev libzmq3-dev)"))
}

/// A server that runs on the first core until it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
}

impl Server {
    pub(crate) fn start(kind: &Kind, reply_size: usize) -> io::Result<Self> {
        let mut command = Command::new(&kind.program);
        command.args(&kind.arguments).arg(reply_size.to_string()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        pin(Pid::from_raw(child.id() as i32), 0);
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line)?;
        let port =
            line.trim().parse().map_err(|_| io::Error::other(format!("{} did not start", kind.name)))?;
        Ok(Self { child, port })
    }

    /// Processor time of all its threads, in user and kernel mode, ns.
    pub(crate) fn cpu_ns(&self) -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("a process");
        let of_task = |path: PathBuf| {
            fs::read_to_string(path.join("schedstat")).ok()?.split(' ').next()?.parse::<u64>().ok()
        };
        tasks.flatten().filter_map(|task| of_task(task.path())).sum::<u64>()
    }

    /// Private memory of the process, bytes.
    pub(crate) fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("a process");
        let line = status.lines().find(|line| line.starts_with("RssAnon")).expect("a field");
        line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).expect("a number") * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Pins a process (`None`: this one) to one core.
pub(crate) fn pin(process: Option<Pid>, core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    if let Err(error) = sched_setaffinity(process, &set) {
        println!("not pinned to core {core}: {error}");
    }
}

/// Our server: answers each message, and keeps its body until the answer.
pub(crate) fn serve(backend: &str, reply_size: usize) -> io::Result<()> {
    let backend = if backend == "uring" { Backend::Uring } else { Backend::Epoll };
    let limits = Limits { receive_bytes_max: 4 << 30, idle_bytes_max: 1 << 30, ..Limits::default() };
    let settings = EndpointSettings { backend, limits, ..EndpointSettings::default() };
    let mut endpoint = MessageEndpoint::new(settings).map_err(io::Error::other)?;
    let options = ConnectionOptions { greeting: Greeting::Bare, ..ConnectionOptions::default() };
    let listener =
        endpoint.listen("127.0.0.1:0".parse().expect("an address"), options).map_err(io::Error::other)?;
    let address = endpoint.local_address(listener).ok_or_else(|| io::Error::other("no address"))?;
    println!("{}", address.port());
    let reply = vec![0; reply_size];
    loop {
        if let Some(EndpointEvent::Message { peer, stream, payload, .. }) = endpoint.poll(None)? {
            endpoint.send(peer, 2, stream, &[&reply]).map_err(io::Error::other)?;
            drop(payload);
        }
    }
}
