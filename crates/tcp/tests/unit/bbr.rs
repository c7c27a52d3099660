use std::vec::Vec;

use super::filters::MaxFilter;
use super::*;
use fanin_units::{Duration, MIX_STEP};

/// Pseudo-random numbers below a bound.
fn numbers(seed: u64, bound: u64) -> impl Iterator<Item = u64> {
    (0_u64..).map(move |index| mix(seed.wrapping_add(index.wrapping_mul(MIX_STEP))) % bound)
}

#[test]
fn the_filter_gives_a_sample_of_the_last_ten_rounds_not_below_the_newest() {
    for seed in 0..50 {
        let mut filter = MaxFilter::default();
        let mut samples: Vec<(u64, u64)> = Vec::new();
        let mut round = 0;
        for (value, step) in numbers(seed, 1000).zip(numbers(seed + 1000, 3)).take(500) {
            round += step;
            filter.update(round, value);
            samples.push((round, value));
            let recent: Vec<u64> =
                samples.iter().filter(|&&(at, _)| round - at <= 10).map(|&(_, value)| value).collect();
            assert!(recent.contains(&filter.get()), "seed {seed}, round {round}");
            assert!(filter.get() >= value);
            // Three samples are kept. The filter may miss the overall maximum, but not the maximum of the last two
            // rounds and a half.
            let newest = samples.iter().filter(|&&(at, _)| round - at <= 1).map(|&(_, value)| value);
            assert!(filter.get() >= newest.max().unwrap());
        }
    }
}

/// An ACK at the begin of a round that declares `losses` segments lost; `at_us` is the time in microseconds.
fn policed(at_us: u64, [delivered, lost]: [u64; 2], losses: u32) -> PolicedSample {
    let delivered_at = at_us * MICROSECOND;
    PolicedSample { delivered, lost, delivered_at, losses, is_app_limited: false, is_round_start: true }
}

#[test]
fn a_policer_is_found_by_two_intervals_of_equal_rate() {
    // A fifth is lost in each interval of four rounds; the rate is 10 segments a millisecond.
    let mut rate = LongTermRate::default();
    let (mut delivered, mut lost) = (0, 0);
    let mut found_at = None;
    for round in 1..40_u64 {
        delivered += 80;
        lost += 24;
        rate.update(&policed(round * 8_000, [delivered, lost], 24), 1448, true);
        if rate.get().is_some() {
            found_at = Some(round);
            break;
        }
    }
    assert!(found_at.is_some_and(|round| round < 16), "{found_at:?}");
    let segments_a_second = (rate.get().unwrap() * 1_000_000) >> RATE_SHIFT;
    assert!((9_000..=11_000).contains(&segments_a_second), "{segments_a_second}");
}

#[test]
fn equal_rates_of_a_policer_are_judged_in_bytes() {
    // An interval has four rounds. Rates alternate between 10 and 14 segments a second: 400 B/s apart with segments of
    // 100 bytes.
    let is_found = |mss| {
        let mut rate = LongTermRate::default();
        let (mut delivered, mut lost) = (0, 0);
        for round in 1..40_u64 {
            delivered += if round.div_ceil(4) % 2 == 0 { 10 } else { 14 };
            lost += 4;
            rate.update(&policed(round * 1_000_000, [delivered, lost], 4), mss, true);
        }
        rate.get().is_some()
    };
    assert!(is_found(100) && !is_found(1448));
}

#[test]
fn without_loss_there_is_no_policer() {
    let mut rate = LongTermRate::default();
    for round in 1..100_u64 {
        assert!(!rate.update(&policed(round * 8_000, [80 * round, 0], 0), 1448, true));
        assert_eq!(rate.get(), None);
    }
}

#[test]
fn a_burst_leaves_when_the_one_before_has_left_at_the_rate() {
    let mut pacing = Pacing::default();
    // 1448 B at 144.8 MB/s take 10 us; bursts of the first nine segments go at once.
    pacing.set_rate(144_800_000);
    let start = Instant::START + Duration::from_millis(1);
    for segment in 0..8 {
        pacing.on_sent(start, true, segment, 1448);
    }
    pacing.on_sent(start, true, 8, 1448);
    assert_eq!(pacing.wait(start), 0);
    // The tenth counts itself, and the whole burst is paced with it.
    pacing.on_sent(start, false, 9, 1448);
    assert_eq!(pacing.wait(start), 20 * MICROSECOND);
    // A burst that is 4 us late is compensated in full; a very late one, by half of its time.
    let late = start + Duration::from_micros(24);
    pacing.on_sent(late, true, 12, 1448);
    assert_eq!(pacing.wait(late), 6 * MICROSECOND);
    let very_late = late + Duration::from_millis(5);
    pacing.on_sent(very_late, true, 13, 1448);
    assert_eq!(pacing.wait(very_late), 5 * MICROSECOND);
}

// The SYN counts as delivered (`tcp_rcv_state_process`), so that the first ACK passes the limit of the first write.
#[test]
fn the_first_ack_ends_the_limit_by_the_application() {
    let sent_at = Instant::START + Duration::from_millis(1);
    let mut rate = DeliveryRate::new();
    rate.limit_by_app(0);
    rate.on_sent(sent_at, true);
    let now = sent_at + Duration::from_millis(1);
    let delivery = Delivery {
        now,
        delivered: 1,
        lost: 0,
        newest_sent_at: Some(sent_at.get()),
        rtt_ps: Some((now - sent_at).get()),
        may_be_delayed: false,
        prior_in_flight: 10,
    };
    let sample = rate.on_ack(&delivery, 0);
    assert!(sample.is_app_limited && !rate.is_app_limited());
    assert_eq!(sample.rate, Some((1, 1000)));
}

/// The least round-trip time after an ACK of 700 us, when that of 500 us has expired.
fn after_expiry(may_be_delayed: bool) -> u64 {
    let mut bbr = Bbr::new();
    bbr.min_rtt_us = 500;
    let mut window = CongestionWindow::new(&crate::Config::linux_6());
    let now = Instant::START + Duration::from_secs(11);
    let delivery = Delivery {
        now,
        delivered: 1,
        lost: 0,
        newest_sent_at: None,
        rtt_ps: Some(700 * MICROSECOND),
        may_be_delayed,
        prior_in_flight: 10,
    };
    let path =
        PathState { in_flight: 9, state: CongestionState::Open, srtt: 0, min_rtt: 0, mss: 1448, lost: 0 };
    let sample = RateSample { rate: None, prior_delivered: 0, is_app_limited: false };
    bbr.update_min_rtt(&mut window, &delivery, &sample, &path, 0);
    bbr.min_rtt_us
}

#[test]
fn a_delayed_ack_does_not_replace_the_least_round_trip_time() {
    assert_eq!(after_expiry(false), 700);
    assert_eq!(after_expiry(true), 500);
}
