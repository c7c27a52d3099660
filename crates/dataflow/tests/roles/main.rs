//! Each role on its own, message by message.

mod collector;
mod logger;
mod readout;
mod reminders;
mod shipping;
mod supervisor;
mod unwritable;

use fanin_units::{Duration, Instant};

fn ms(millis: u64) -> Instant {
    Instant::START + Duration::from_millis(millis)
}

fn us(micros: u64) -> Instant {
    Instant::START + Duration::from_micros(micros)
}

/// Drains all outputs of a role.
macro_rules! drain {
    ($poll:expr) => {{
        let mut all = Vec::new();
        while let Some(one) = $poll {
            all.push(one);
        }
        all
    }};
}

pub(crate) use drain;
