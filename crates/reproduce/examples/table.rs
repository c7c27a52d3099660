//! Judges claims and prints the table: `table [DURATION] [ID]...`.
#![allow(clippy::print_stdout, reason = "a program prints its result")]
use std::sync::atomic::AtomicBool;
fn main() {
    let mut a: Vec<String> = std::env::args().skip(1).collect();
    let duration = if a.is_empty() { "3 s".into() } else { a.remove(0) };
    let claims: Vec<_> = fanin_reproduce::claims().into_iter().filter(|c| a.is_empty() || a.iter().any(|id| c.id.starts_with(id.as_str()))).collect();
    let t = std::time::Instant::now();
    match fanin_reproduce::reproduce(&claims, Some(&duration), 2, &AtomicBool::new(false), &|n, of| eprintln!("{n}/{of} {:.0?}", t.elapsed())) {
        Ok(judged) => for (c, j) in claims.iter().zip(judged) { println!("{:5} {:10} {} | {} | got {}", c.id, j.status(c.known).name(), c.says, c.expected, j.got); },
        Err(e) => println!("{e}"),
    }
}
