//! A parser of the text format of Prometheus and OpenMetrics.

use std::collections::BTreeMap;
use std::time::Instant;

/// The prefix of all names that Fanin serves.
const PREFIX: &str = "fanin_";

/// All series of one answer, by name.
#[derive(Debug, Clone)]
pub(super) struct MetricsSample {
    pub(super) at: Instant,
    series: BTreeMap<String, Vec<MetricSeries>>,
}

/// One series and its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MetricSeries {
    labels: Vec<(String, String)>,
    pub(super) value: f64,
}

impl MetricSeries {
    /// Returns the value of a label; empty if the label is absent, as in PromQL.
    pub(super) fn label(&self, name: &str) -> &str {
        self.labels.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

impl MetricsSample {
    /// Reads an answer.
    ///
    /// # Errors
    /// If it has no metric of Fanin.
    pub(super) fn parse(text: &str, at: Instant) -> Result<Self, String> {
        let mut series: BTreeMap<String, Vec<MetricSeries>> = BTreeMap::new();
        for line in text.lines().filter(|line| line.starts_with(PREFIX)) {
            if let Some((name, one)) = parse_line(line) {
                series.entry(name.to_owned()).or_default().push(one);
            }
        }
        if series.is_empty() {
            return Err("it serves no metrics of Fanin".to_owned());
        }
        Ok(Self { at, series })
    }

    /// Returns all series of a name.
    pub(super) fn all(&self, name: &str) -> &[MetricSeries] {
        self.series.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the sum of all series of a name; `None` if no series has that name.
    pub(super) fn sum(&self, name: &str) -> Option<f64> {
        let all = self.all(name);
        (!all.is_empty()).then(|| all.iter().map(|one| one.value).sum())
    }

    /// Returns the series of this sample with the same name and labels; `None` without one.
    fn same(&self, name: &str, other: &MetricSeries) -> Option<&MetricSeries> {
        self.all(name).iter().find(|one| one.labels == other.labels)
    }

    /// Returns the increase of a counter since an earlier sample. After a restart, the increase is the new value, as in PromQL.
    pub(super) fn increase(&self, name: &str, series: &MetricSeries, earlier: &Self) -> f64 {
        let before = earlier.same(name, series).map_or(0.0, |one| one.value);
        if series.value < before { series.value } else { series.value - before }
    }
}

/// Parses `NAME{LABEL="VALUE",…} NUMBER`, with or without a timestamp.
fn parse_line(line: &str) -> Option<(&str, MetricSeries)> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            rest = rest.trim_start_matches([',', ' ']);
            if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                break;
            }
            let (key, after) = rest.split_once("=\"")?;
            let (value, after) = parse_value(after)?;
            labels.push((key.to_owned(), value));
            rest = after;
        }
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some((name, MetricSeries { labels, value }))
}

/// Parses a label's value up to its closing quote. Returns the value and the rest of the line.
fn parse_value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((place, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[place + 1..])),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_labels_escapes_and_timestamps() {
        let text = "# TYPE fanin_up gauge\nfanin_up{process=\"readout-1\",role=\"readout\"} 1\nother 3\n\
                    fanin_drops_total{cause=\"a\\\"b\\\\c\",ring=\"\"} 2.5e3 1700000000\nfanin_plain 7\n# EOF\n";
        let sample = MetricsSample::parse(text, Instant::now()).unwrap();
        assert_eq!(sample.all("fanin_up")[0].label("process"), "readout-1");
        let drops = &sample.all("fanin_drops_total")[0];
        assert_eq!((drops.label("cause"), drops.label("ring"), drops.value), ("a\"b\\c", "", 2500.0));
        assert_eq!((sample.sum("fanin_plain"), sample.sum("other")), (Some(7.0), None));
        assert!(MetricsSample::parse("<html>", Instant::now()).is_err());
    }

    #[test]
    fn a_counter_of_a_process_that_was_started_again_counts_from_zero() {
        let sample = |value: u32| {
            let text = format!("fanin_x_total{{process=\"a\"}} {value}\n");
            MetricsSample::parse(&text, Instant::now()).unwrap()
        };
        let increase = |before, now: u32| {
            let now = sample(now);
            now.increase("fanin_x_total", &now.all("fanin_x_total")[0], &sample(before))
        };
        assert_eq!((increase(5, 9), increase(9, 4)), (4.0, 4.0));
    }
}
