//! M21TCP on the kernel's own TCP, behind the software switch: needs root, and the feature `bpf`.
#![cfg(feature = "bpf")]

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use common::{incast, privileged, row, star, switch};
use fanin_switch::config::M21Spec;
use fanin_testbed::bpf::{M21Figures, M21Hosts, M21Parts};

#[test]
fn nothing_is_dropped_where_cubic_collapses() {
    if !privileged() {
        return;
    }
    let (cubic, _) = row(24, 10, true, None, None);
    let (m21, figures) = row(24, 10, true, Some(M21Spec::default()), Some(M21Parts::default()));
    eprintln!("CUBIC {cubic:?}; M21TCP {m21:?} {figures:?}");
    assert!(cubic.drops > 0, "64 kB were enough for 24 senders: {cubic:?}");
    assert_eq!((m21.drops, figures.refused), (0, 0), "{m21:?} {figures:?}");
    // A bound changes only where a switch has lowered a window.
    assert!(figures.echoes > 0 && figures.changes >= 24, "{m21:?} {figures:?}");
    assert!(m21.queue_bytes_max <= 64_000, "{m21:?}");
}

#[test]
fn connections_of_others_are_left_alone() {
    if !privileged() {
        return;
    }
    let program = M21Hosts::load(M21Parts::default()).unwrap();
    // No namespace was added: neither these hosts nor this machine's own loopback take part.
    let lab = star(2, true);
    incast(&lab, 2, 2_000, 2, switch(&lab, 2, Some(M21Spec::default())));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.write_all(b"own").unwrap();
    listener.accept().unwrap().0.read_exact(&mut [0; 3]).unwrap();
    assert_eq!(program.figures().unwrap(), M21Figures::default());
}
