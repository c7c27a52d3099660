//! The workload: fragment sizes, shares, steps, barrier workloads, credits.

use std::collections::BTreeSet;

use fanin_units::{Bytes, Ratio};

use super::ScenarioCheck;
use crate::types::*;

/// The most payload of an event. Times and rates on the wire stay in range with any headers.
const EVENT_MAX: Bytes = Bytes::new(4_000_000_000_000);

impl ScenarioCheck<'_> {
    /// Checks that an event has at most [`EVENT_MAX`].
    pub(super) fn event_size(&mut self) {
        let s = self.scenario;
        let (key, product, size, count) = match (s.is_barrier(), s.workload.kind) {
            (true, WorkloadKind::FixedBlock) => {
                ("workload.request_size", "workload.request_size", Some(s.workload.request_size), 1)
            }
            (true, _) => (
                "workload.request_size",
                "workload.senders × workload.request_size",
                Some(s.workload.request_size),
                u64::from(s.workload.senders),
            ),
            (false, _) => (
                "readout.fragment_size",
                "readout.hosts × readout.fragments_per_host × the mean of readout.fragment_size",
                s.readout.fragment_size.mean(),
                s.fragments_total(),
            ),
        };
        let Some(size) = size else { return };
        let event = size.checked_mul(count).unwrap_or(Bytes::MAX);
        if event > EVENT_MAX {
            self.fail(
                key,
                format!("an event of {event} is too large: {product}"),
                &format!("more than {EVENT_MAX} in all"),
                None,
                format!("give less than \"{}\" with this number of sources", EVENT_MAX / count),
            );
        }
    }

    pub(super) fn sizes(&mut self) {
        let path = "readout.fragment_size";
        let too_large = Bytes::new(1 << 30);
        if let Some(mean) = self.scenario.readout.fragment_size.mean()
            && (mean.is_zero() || mean > too_large)
        {
            self.fail(
                path,
                format!("fragments are {mean} on average"),
                "not from 1 B to 1 GiB",
                None,
                "give a size such as \"1.1 kB\"".to_owned(),
            );
        }
        let header = self.scenario.readout.fragment_header;
        if header > Bytes::new(1 << 16) {
            self.fail(
                "readout.fragment_header",
                format!("the header of a fragment has {header}"),
                "above 64 KiB",
                None,
                "a live system has \"16 B\"".to_owned(),
            );
        }
        if let SizeModel::LogNormal { sigma, .. }
        | SizeModel::Polynomial { sigma, .. }
        | SizeModel::PerSource { sigma, .. } = self.scenario.readout.fragment_size
            && sigma > Ratio::new(2_000_000)
        {
            let message = format!("the scale parameter σ of the event sizes is {sigma}");
            self.fail(
                path,
                message,
                "above 2",
                None,
                "the thesis uses 0.25 (§6.2); give at most 2".to_owned(),
            );
        }
    }

    pub(super) fn workload(&mut self) {
        let s = self.scenario;
        let w = &s.workload;
        let available = s.fragments_total();
        let mut wanted = vec![("workload.fraction".to_owned(), w.fraction)];
        wanted.extend(
            w.steps
                .iter()
                .enumerate()
                .map(|(index, step)| (format!("workload.steps.{index}.fraction"), step.fraction)),
        );
        for (path, fraction) in wanted {
            if fraction > Ratio::ONE {
                let asked = fraction.checked_of(available).unwrap_or(u64::MAX);
                self.fail(
                    &path,
                    format!("{asked} fragments are requested, but an event has {available}"),
                    "more than all of them",
                    Some(("readout.fragments_per_host", "fragments on each host")),
                    "give a share from 0 to 1".to_owned(),
                );
            } else if fraction.checked_of(u64::from(s.readout.hosts)) == Some(0) {
                let hosts = s.readout.hosts;
                self.fail(
                    &path,
                    format!("a share of {fraction} of {hosts} readouts is less than one host"),
                    "less than one host",
                    None,
                    format!("give at least {}", 1.0 / f64::from(hosts.max(1))),
                );
            }
        }
        for (index, pair) in w.steps.windows(2).enumerate() {
            if pair[1].fraction <= pair[0].fraction {
                self.fail(
                    &format!("workload.steps.{}.fraction", index + 1),
                    format!(
                        "step `{}` ends with no more fragments than `{}` before it",
                        pair[1].name, pair[0].name
                    ),
                    "shares are counted from the start of the event",
                    None,
                    format!("give more than {}", pair[0].fraction),
                );
            }
        }
        let mut names = BTreeSet::new();
        for (index, step) in w.steps.iter().enumerate() {
            self.share(&format!("workload.steps.{index}.accept"), step.accept);
            if !names.insert(step.name.as_str()) {
                let message = format!("two steps are called `{}`", step.name);
                let path = format!("workload.steps.{index}.name");
                self.fail(&path, message, "taken", None, "give each step a different name".to_owned());
            }
        }
        if s.is_barrier() {
            let share = match w.kind {
                WorkloadKind::FixedBlock => w.request_size / u64::from(w.senders.max(1)),
                _ => w.request_size,
            };
            if share.is_zero() || w.request_size > Bytes::new(1 << 40) {
                self.fail(
                    "workload.request_size",
                    format!(
                        "the answer of {} senders is {}; each sends at least 1 B",
                        w.senders, w.request_size
                    ),
                    "less than 1 B for each sender, or more than 1 TiB",
                    None,
                    "give a size such as \"256 kB\"".to_owned(),
                );
            }
            if s.network.topology != Topology::Star {
                self.fail(
                    "network.topology",
                    "a barrier workload has one collector and one switch".to_owned(),
                    "not a star",
                    Some(("workload.kind", "this workload")),
                    "set network.topology = \"star\"".to_owned(),
                );
            }
        }
    }

    pub(super) fn shaping(&mut self) {
        self.credits();
        let s = self.scenario;
        // A request names all fragments that are wanted from one readout, and is never split.
        let largest = s.readout.fragments_per_host;
        if s.shaping.method == ShapingMethod::Credits && s.shaping.credits < largest {
            self.fail(
                "shaping.credits",
                format!(
                    "{} credits are too few for a request: the largest needs {largest}, and requests are not split",
                    s.shaping.credits
                ),
                "below the largest request",
                Some(("readout.fragments_per_host", "fragments in a request")),
                format!("give at least {largest}"),
            );
        }
        if s.shaping.utilisation.is_zero() {
            let message = "a schedule that uses none of the link rate sends nothing".to_owned();
            self.fail("shaping.utilisation", message, "zero", None, "give a share such as 0.98".to_owned());
        }
    }
}
