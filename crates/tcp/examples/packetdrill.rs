//! One connection, driven by lines on standard input: `tests/packetdrill/run.py` plays packetdrill's scripts against it.
//!
//! Times are in nanoseconds, offsets those of [`Segment`]. Each request is one line. The reply is a line `out …` for each segment
//! that the connection sends, and a line `ok …` with its state, or `error …`.
//!
//! | request | what it does |
//! |---|---|
//! | `open PROFILE [KEY=VALUE …]` | a new connection with the settings of a profile, changed by the pairs |
//! | `connect T`, `listen T`, `close T`, `abort T` | the call of that name |
//! | `send T BYTES`, `read T BYTES` | the call of that name |
//! | `nodelay T 0` or `1` | turns Nagle's rule on or off |
//! | `segment T FLAGS OFFSET ACK WINDOW PAYLOAD TSVAL TSECHO MSS WSCALE SACKOK [dsack] [START:END …]` | a segment arrives; `-` for an option that is absent |
//! | `deadline T` | it is that late |
//! | `info T` | a line `info KEY=VALUE …` with the counters of the connection |

use std::io::{self, BufRead, Write};

use fanin_tcp::{
    Config, CongestionConfig, CongestionState, DelayedAck, Flags, SackBlock, Segment, SynOptions,
    TcpConnection,
};
use fanin_units::{Duration, Instant};

fn main() -> io::Result<()> {
    let mut connection = TcpConnection::new(Config::linux_6());
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        match handle(&mut connection, &line) {
            Ok(reply) => writeln!(output, "{reply}")?,
            Err(problem) => writeln!(output, "error {problem}")?,
        }
        output.flush()?;
    }
    Ok(())
}

/// Handles one request. Returns the lines of the reply.
fn handle(connection: &mut TcpConnection, line: &str) -> Result<String, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [call, rest @ ..] = &words[..] else { return Err("an empty line".into()) };
    if *call == "open" {
        let [profile, settings @ ..] = rest else { return Err("which profile?".into()) };
        let mut config = Config::profile(profile).ok_or_else(|| format!("no profile {profile}"))?;
        for setting in settings {
            let (key, value) = setting.split_once('=').ok_or_else(|| format!("{setting}: no value"))?;
            set(&mut config, key, value)?;
        }
        *connection = TcpConnection::new(config);
        return Ok("ok".into());
    }
    let [time, rest @ ..] = rest else { return Err("when?".into()) };
    let now = Instant::START + Duration::from_nanos(number(time)?);
    let mut result = 0;
    let in_state = |outcome: Result<(), fanin_tcp::WrongState>| outcome.map_err(|wrong| wrong.to_string());
    match (*call, rest) {
        ("connect", []) => in_state(connection.connect())?,
        ("listen", []) => in_state(connection.listen())?,
        ("close", []) => connection.close(),
        ("abort", []) => connection.abort(),
        ("send", [bytes]) => in_state(connection.send(number(bytes)?))?,
        ("read", [bytes]) => result = connection.read(number(bytes)?),
        ("nodelay", [is_on]) => connection.set_nodelay(*is_on == "1"),
        ("segment", fields) => connection.handle_segment(now, &segment(fields)?),
        ("deadline", []) => connection.handle_deadline(now),
        ("info", []) => return Ok(info(connection)),
        _ => return Err(format!("no request {line}")),
    }
    let mut reply = String::new();
    while let Some(segment) = connection.poll_transmit(now) {
        reply += &describe(&segment);
    }
    let deadline = connection.poll_deadline().map_or(-1, |at| (at.get().div_ceil(1000)) as i64);
    reply += &format!(
        "ok state={:?} deadline={deadline} result={result} received={} readable={} ended={} reason={}",
        connection.state(),
        connection.received(),
        connection.readable(),
        u8::from(connection.is_receive_closed()),
        connection.close_reason().map_or("-".into(), |reason| format!("{reason:?}")),
    );
    Ok(reply)
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word} is no number"))
}

/// Changes one setting of a profile.
fn set(config: &mut Config, key: &str, value: &str) -> Result<(), String> {
    let is_on = value == "1";
    match key {
        "mss" => config.mss = number(value)?,
        "timestamps" => config.timestamps = is_on,
        "sack" => config.sack = is_on,
        "dsack" => config.dsack = is_on,
        "ecn" => config.ecn = is_on,
        "nodelay" => config.nodelay = is_on,
        "compressed_sacks" => config.compressed_sacks = is_on,
        "slow_start_after_idle" => config.slow_start_after_idle = is_on,
        "tail_loss_probe" => config.tail_loss_probe = is_on,
        "undo" => config.undo = is_on,
        "reordering" => config.reordering = number(value)?,
        "initial_window" => config.initial_window = number(value)?,
        "burst_segments_min" => config.burst_segments_min = number(value)?,
        "receive_window" => config.receive_window = number(value)?,
        "receive_window_initial" => config.receive_window_initial = number(value)?,
        "window_scale" => config.window_scale = number(value)?,
        "rto_min_us" => config.set_rto_min(Duration::from_micros(number(value)?)),
        "hystart" => {
            if let CongestionConfig::Cubic(cubic) = &mut config.congestion_control {
                cubic.hystart = is_on;
            }
        }
        "congestion_control" => match value {
            "cubic" => {}
            "reno" => config.congestion_control = CongestionConfig::NewReno,
            "bbr" => config.congestion_control = CongestionConfig::Bbr,
            _ => return Err(format!("no congestion control {value}")),
        },
        "delayed_ack" => {
            if !is_on {
                config.delayed_ack = DelayedAck::Off;
            }
        }
        "tso_win_divisor" => {
            if let Some(offload) = &mut config.segmentation {
                offload.window_divisor = number(value)?;
            }
        }
        _ => return Err(format!("no setting {key}")),
    }
    Ok(())
}

const LETTERS: [(Flags, char); 6] = [
    (Flags::SYN, 'S'),
    (Flags::FIN, 'F'),
    (Flags::RST, 'R'),
    (Flags::PSH, 'P'),
    (Flags::ECE, 'E'),
    (Flags::CWR, 'W'),
];

fn segment(fields: &[&str]) -> Result<Segment, String> {
    let [flags, offset, ack, window, payload, ts_value, ts_echo, mss, wscale, sackok, blocks @ ..] = fields
    else {
        return Err("a segment has ten fields".into());
    };
    let mut segment = Segment {
        offset: number(offset)?,
        ack: number(ack)?,
        window: number(window)?,
        payload: number(payload)?,
        ..Segment::default()
    };
    for letter in flags.chars() {
        let flag = match letter {
            '.' => Flags::ACK,
            'e' => Flags::ECT,
            'c' => Flags::CE,
            '-' => Flags::NONE,
            _ => LETTERS.iter().find(|known| known.1 == letter).ok_or_else(|| format!("no flag {letter}"))?.0,
        };
        segment.flags.insert(flag);
    }
    if *ts_value != "-" {
        segment.flags.insert(Flags::TIMESTAMP);
        (segment.ts_value, segment.ts_echo) = (number(ts_value)?, number(ts_echo)?);
    }
    if segment.flags.contains(Flags::SYN) && *mss != "-" {
        segment.set_syn_options(SynOptions {
            mss: number(mss)?,
            window_scale: if *wscale == "-" { None } else { Some(number(wscale)?) },
            sack_permitted: *sackok == "1",
        });
    }
    let mut count = 0;
    for block in blocks {
        if *block == "dsack" {
            segment.flags.insert(Flags::DSACK);
            continue;
        }
        let (start, end) = block.split_once(':').ok_or_else(|| format!("no block {block}"))?;
        let relative = |word| -> Result<i32, String> {
            Ok((number::<i64>(word)? - segment.ack as i64).clamp(i32::MIN.into(), i32::MAX.into()) as i32)
        };
        // A segment holds three blocks; a fourth repeats what an earlier ACK said.
        if let Some(slot) = segment.sack.get_mut(count) {
            *slot = SackBlock { start: relative(start)?, end: relative(end)? };
        }
        count += 1;
    }
    Ok(segment)
}

fn describe(segment: &Segment) -> String {
    let mut flags: String =
        LETTERS.iter().filter(|(flag, _)| segment.flags.contains(*flag)).map(|known| known.1).collect();
    for (flag, letter) in [(Flags::ACK, '.'), (Flags::ECT, 'e'), (Flags::CE, 'c')] {
        if segment.flags.contains(flag) {
            flags.push(letter);
        }
    }
    let has = |flag| u8::from(segment.flags.contains(flag));
    let mut line = format!(
        "out {flags:-<1} {} {} {} {} again={} continues={}",
        segment.offset,
        segment.payload,
        segment.ack,
        segment.window,
        has(Flags::RETRANSMISSION),
        has(Flags::BURST_CONTINUES),
    );
    if segment.flags.contains(Flags::TIMESTAMP) {
        line += &format!(" ts={}:{}", segment.ts_value, segment.ts_echo);
    }
    if segment.flags.contains(Flags::SYN) {
        let options = segment.syn_options();
        line += &format!(" mss={}", options.mss);
        line += &options.window_scale.map_or(String::new(), |scale| format!(" wscale={scale}"));
        line += if options.sack_permitted { " sackok=1" } else { "" };
    } else {
        for block in &segment.sack[..segment.sack_count()] {
            let [start, end] =
                [block.start, block.end].map(|edge| segment.ack.wrapping_add_signed(edge.into()));
            line += &format!(" sack={start}:{end}");
        }
    }
    line.push('\n');
    line
}

/// The available counters of `struct tcp_info`; windows in segments, times in microseconds.
fn info(connection: &TcpConnection) -> String {
    let (endpoint, config) = (connection.endpoint(), connection.config());
    let stats = endpoint.stats(config);
    let board = endpoint.scoreboard(config);
    let segments = |bytes: u64| if bytes == u64::MAX { 0x7fff_ffff } else { bytes / u64::from(config.mss) };
    let state = match stats.state {
        CongestionState::Open => 0,
        CongestionState::Disorder => 1,
        CongestionState::Cwr => 2,
        CongestionState::Recovery => 3,
        CongestionState::Loss => 4,
    };
    let micros = |span: Duration| span.get() / 1_000_000;
    format!(
        "info state={:?} ca_state={state} snd_cwnd={} snd_ssthresh={} unacked={} sacked={} lost={} retrans={} \
         reordering={} reord_seen={} backoff={} probes={} rtt={} rttvar={} min_rtt={} rto={} snd_mss={} rcv_mss={} \
         timestamps={} sack={} wscale={} ecn={} total_retrans={} notsent_bytes={}\nok",
        connection.state(),
        segments(stats.cwnd),
        segments(stats.ssthresh),
        board.outstanding,
        board.sacked,
        board.lost,
        board.retransmitted,
        board.reordering,
        board.reordering_seen,
        board.backoff,
        board.window_probes,
        micros(stats.srtt),
        micros(board.rtt_variation),
        micros(board.rtt_min),
        micros(stats.rto),
        board.mss,
        board.mss_received,
        u8::from(config.timestamps),
        u8::from(config.sack),
        config.window_scale,
        u8::from(config.ecn),
        stats.retransmits,
        endpoint.written() - endpoint.sent(),
    )
}
