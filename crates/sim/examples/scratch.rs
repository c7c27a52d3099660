fn main() {
    let t = std::time::Instant::now();
    let (hops, rate) = fanin_sim::scratch(16, 400, 256_000);
    let s = t.elapsed().as_secs_f64();
    println!("{hops} hops {:.1} M/s, {rate} b/s", hops as f64 / s / 1e6);
}
