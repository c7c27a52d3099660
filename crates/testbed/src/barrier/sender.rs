//! The sender: answers each request after a random delay.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fanin_dataflow::Random;
use fanin_node::trace::{self, Trace};
use serde::{Deserialize, Serialize};

use super::info::TcpInfo;
use super::{BarrierError, REQUEST_BYTES, System, parse_request};

/// What a sender has to tell when its aggregator has gone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sent {
    /// What the kernel counted since the first round that is measured.
    pub info: TcpInfo,
    /// Rounds with time-outs, and how many.
    pub timeouts: Vec<(u64, u64)>,
}

/// The kernel rounds sleeps up by as much: as little as it can.
fn sleep_exactly() {
    // SAFETY: this option takes a number and changes nothing but this thread's timers.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64);
    }
}

/// Serves one aggregator, and writes what it has to tell into `sender-N.json` of the folder.
///
/// # Errors
/// [`BarrierError`].
pub fn send(system: &System, index: u16) -> Result<(), BarrierError> {
    let count = system.senders.len();
    let address =
        *system.senders.get(usize::from(index)).ok_or(BarrierError::NoSuchSender { got: index, count })?;
    let network = |what| move |source| BarrierError::Network { what, address: address.to_string(), source };
    let listener = TcpListener::bind(address).map_err(network("cannot listen at"))?;
    sleep_exactly();
    let (stream, from) = listener.accept().map_err(network("cannot accept a connection at"))?;
    drop(listener);
    stream.set_nodelay(true).map_err(network("cannot set up the connection to"))?;
    let sent = if system.scenario.record.windows.contains(&index.into()) {
        serve_traced(system, index, &stream, from)
    } else {
        serve(system, index, &stream, from)
    }?;
    let path = system.folder.join(format!("sender-{index}.json"));
    let text = serde_json::to_vec(&sent).expect("numbers are JSON");
    fs::write(&path, text).map_err(|source| BarrierError::File { path, source })
}

/// The same, with the connection's windows traced by a thread that does nothing else.
fn serve_traced(
    system: &System,
    index: u16,
    stream: &TcpStream,
    from: SocketAddr,
) -> Result<Sent, BarrierError> {
    let file = |source| BarrierError::File { path: system.folder.clone(), source };
    let mut trace = Trace::open(&system.folder, &format!("sender-{index}")).map_err(file)?;
    let every = trace::interval(&system.scenario.record);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let tracer = scope.spawn(|| {
            sleep_exactly();
            while !ended.load(Ordering::Relaxed) {
                if let Ok(info) = fanin_message::TcpInfo::of(stream) {
                    trace.handle_sample(index.into(), &info);
                }
                std::thread::park_timeout(every);
            }
            trace.flush();
        });
        let sent = serve(system, index, stream, from);
        ended.store(true, Ordering::Relaxed);
        tracer.thread().unpark();
        sent
    })
}

fn serve(
    system: &System,
    index: u16,
    mut stream: &TcpStream,
    from: SocketAddr,
) -> Result<Sent, BarrierError> {
    let network = |what| move |source| BarrierError::Network { what, address: from.to_string(), source };
    let block = vec![0x5a_u8; system.answer_bytes(u64::from(index)) as usize];
    let longest = system.scenario.workload.service_delay_max.as_nanos();
    let mut random = Random::new(system.scenario.run.seed ^ u64::from(index + 1) << 32);
    let mut sent = Sent::default();
    let mut bytes = [0; REQUEST_BYTES];
    let info =
        |stream: &TcpStream| TcpInfo::of(stream).map_err(network("cannot ask about the connection to"));
    let (mut base, mut last, mut round_before) = (None, info(stream)?, None);
    loop {
        // The aggregator ends the connection when it has enough, in the middle of nothing.
        if stream.read_exact(&mut bytes).is_err() {
            break;
        }
        let began = Instant::now();
        let (round, measured) =
            parse_request(&bytes).ok_or_else(|| BarrierError::Nonsense { address: from.to_string() })?;
        let now = info(stream)?;
        note(&mut sent, round_before, now.timeouts - last.timeouts);
        if measured && base.is_none() {
            base = Some(now);
        }
        (last, round_before) = (now, Some(round));
        let delay = Duration::from_nanos(if longest == 0 { 0 } else { random.bits() % (longest + 1) });
        std::thread::sleep(delay.saturating_sub(began.elapsed()));
        stream.write_all(&block).map_err(network("cannot answer"))?;
    }
    let now = info(stream)?;
    note(&mut sent, round_before, now.timeouts.saturating_sub(last.timeouts));
    sent.info = now.since(base.unwrap_or(now));
    Ok(sent)
}

fn note(sent: &mut Sent, round: Option<u64>, timeouts: u64) {
    if let (Some(round), 1..) = (round, timeouts) {
        sent.timeouts.push((round, timeouts));
    }
}
