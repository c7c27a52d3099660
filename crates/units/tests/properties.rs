//! Parsing reverses printing, and every overflow is detected, for every quantity.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use fanin_units::{Bytes, Duration, Frequency, Instant, Packets, ParseError, Rate, Ratio};
use proptest::prelude::*;

fn round_trip<T>(value: T)
where
    T: Copy + PartialEq + Debug + Display + FromStr<Err = ParseError>,
{
    let text = value.to_string();
    assert_eq!(text.parse(), Ok(value), "{text}");
}

/// Values of all magnitudes, including round ones.
fn any_value() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0u64..1000, 0u32..17).prop_map(|(digits, zeros)| digits * 10u64.pow(zeros)),
        (0u64..1024, 0u32..54).prop_map(|(digits, shift)| digits << shift),
        Just(u64::MAX),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn parsing_undoes_printing(value in any_value()) {
        round_trip(Bytes::new(value));
        round_trip(Duration::new(value));
        round_trip(Frequency::new(value));
        round_trip(Packets::new(value));
        round_trip(Rate::new(value));
        round_trip(Ratio::new(value));
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "[0-9._]{0,50} ?[a-zA-Zµ/%]{0,5}") {
        // Reading must neither panic nor accept a value that prints as something else.
        if let Ok(value) = text.parse::<Bytes>() {
            round_trip(value);
        }
        if let Ok(value) = text.parse::<Duration>() {
            round_trip(value);
        }
        if let Ok(value) = text.parse::<Ratio>() {
            round_trip(value);
        }
    }

    #[test]
    fn decimal_text_means_what_it_says(whole in 0u64..1_000_000, thousandths in 0u64..1000) {
        let text = format!("{whole}.{thousandths:03} MB");
        prop_assert_eq!(text.parse(), Ok(Bytes::new(whole * 1_000_000 + thousandths * 1000)));
    }

    #[test]
    fn no_overflow_goes_unseen(a in any::<u64>(), b in any::<u64>()) {
        let wide = u128::from(a) + u128::from(b);
        prop_assert_eq!(
            Bytes::new(a).checked_add(Bytes::new(b)).map(|sum| u128::from(sum.get())),
            (wide <= u128::from(u64::MAX)).then_some(wide)
        );
        let wide = u128::from(a) * u128::from(b);
        prop_assert_eq!(
            Duration::new(a).checked_mul(b).map(|product| u128::from(product.get())),
            (wide <= u128::from(u64::MAX)).then_some(wide)
        );
        prop_assert_eq!(Rate::new(a).checked_sub(Rate::new(b)).is_some(), a >= b);
        prop_assert_eq!(Instant::new(a).checked_since(Instant::new(b)).is_some(), a >= b);
        let seen = std::panic::catch_unwind(|| Bytes::new(a) + Bytes::new(b)).is_err();
        prop_assert_eq!(seen, a.checked_add(b).is_none());
    }

    #[test]
    fn a_link_never_carries_more_than_its_rate(rate in 1u64..1_000_000_000_000, bytes in 0u64..1_000_000) {
        if let Some(time) = Rate::new(rate).checked_time_to_send(Bytes::new(bytes)) {
            prop_assert!(u128::from(time.get()) * u128::from(rate) >= u128::from(bytes) * 8_000_000_000_000);
            prop_assert!(Rate::new(rate).bytes_in(time).get() >= bytes);
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn serialising_is_the_same_text(value in any_value()) {
        let json = serde_json::to_string(&Duration::new(value)).unwrap();
        prop_assert_eq!(serde_json::from_str::<Duration>(&json).unwrap(), Duration::new(value));
    }
}

#[cfg(feature = "serde")]
#[test]
fn a_bare_number_is_refused_where_a_unit_is_needed() {
    let error = serde_json::from_str::<Duration>("200").unwrap_err().to_string();
    assert!(error.contains("needs a unit"), "{error}");
    assert_eq!(serde_json::from_str::<Packets>("2").unwrap(), Packets::new(2));
    assert_eq!(serde_json::from_str::<Ratio>("0.0625").unwrap(), Ratio::new(62_500));
    assert!(serde_json::from_str::<Packets>("-2").is_err());
}
