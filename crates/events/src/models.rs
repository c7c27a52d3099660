//! Size models by source: the size of a source's fragment in an event of a given relative size.
//!
//! CMS models its front-end drivers in this way. A fragment has `offset + slope·x + square·x²` bytes on average, where x is the
//! event's size over the mean event size. The standard deviation is a share of this average.

use serde::Serialize;

use crate::{Events, ReadError};

/// The size of one source's fragments as a function of the event's relative size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SourceModel {
    /// Identifier of the source.
    pub source: u32,
    /// Bytes at relative size 0; negative if the source's size grows faster than the event's.
    pub offset: f64,
    /// Bytes for each unit of relative size.
    pub slope: f64,
    /// Bytes for each unit of the relative size squared.
    pub square: f64,
    /// Standard deviation as a share of the mean.
    pub rms: f64,
}

impl SourceModel {
    /// Returns the mean size in bytes in an event of relative size `x`; never below 0.
    pub fn mean_bytes(&self, x: f64) -> f64 {
        (self.offset + x * (self.slope + x * self.square)).max(0.0)
    }

    /// Draws a size in bytes from a standard normal number. The distribution is log-normal about the mean, because a size is
    /// never negative. For a small `rms` it is close to normal.
    pub fn size_bytes(&self, x: f64, normal: f64) -> u64 {
        let mean = self.mean_bytes(x);
        let variance = (1.0 + self.rms * self.rms).ln();
        (mean * (variance.sqrt() * normal - variance / 2.0).exp()).round() as u64
    }
}

/// Draws the relative size of an event from a standard normal number: log-normal with mean 1.
pub fn relative_event_size(sigma: f64, normal: f64) -> f64 {
    (sigma * normal - sigma * sigma / 2.0).exp()
}

/// Fits a model to each source of a file, in ascending order of sources.
///
/// A straight line needs three events, of at least two sizes, and a parabola eight events. With fewer, a source's size is
/// assumed proportional to the event's. Events without a fragment of the source count as 0 bytes.
///
/// # Errors
/// If the file contradicts its format.
pub fn fit(bytes: &[u8]) -> Result<Vec<SourceModel>, ReadError> {
    let mut event_bytes = Vec::new();
    let mut sources = std::collections::BTreeMap::<u32, Vec<(usize, f64)>>::new();
    for (number, event) in Events::open(bytes)?.enumerate() {
        let event = event?;
        event_bytes.push(event.fragment_bytes().get() as f64);
        for fragment in event.fragments {
            let sizes = sources.entry(fragment.source).or_default();
            match sizes.last_mut() {
                Some((last, size)) if *last == number => *size += fragment.bytes.len() as f64,
                _ => sizes.push((number, fragment.bytes.len() as f64)),
            }
        }
    }
    let mean = event_bytes.iter().sum::<f64>() / event_bytes.len().max(1) as f64;
    let x: Vec<f64> = event_bytes.iter().map(|&size| if mean > 0.0 { size / mean } else { 1.0 }).collect();
    let mut y = vec![0.0; x.len()];
    let fitted = sources.into_iter().map(|(source, sizes)| {
        y.fill(0.0);
        for (number, size) in sizes {
            y[number] = size;
        }
        fit_one(source, &x, &y)
    });
    Ok(fitted.collect())
}

const LINE_EVENTS_MIN: usize = 3;
const PARABOLA_EVENTS_MIN: usize = 8;

fn fit_one(source: u32, x: &[f64], y: &[f64]) -> SourceModel {
    let terms = match x.len() {
        PARABOLA_EVENTS_MIN.. => 3,
        LINE_EVENTS_MIN.. => 2,
        _ => 0,
    };
    let count = x.len().max(1) as f64;
    let mean = y.iter().sum::<f64>() / count;
    let [offset, slope, square] = (1..=terms)
        .rev()
        .filter(|&terms| terms > 1)
        .find_map(|terms| least_squares(x, y, terms))
        .unwrap_or([0.0, mean, 0.0]);
    let mut model = SourceModel { source, offset, slope, square, rms: 0.0 };
    let residual: f64 = x.iter().zip(y).map(|(&x, &y)| (y - model.mean_bytes(x)).powi(2)).sum();
    if mean > 0.0 {
        model.rms = (residual / count).sqrt() / mean;
    }
    model
}

/// Fits a polynomial of `terms` terms by least squares; `None` if the points do not determine it.
fn least_squares(x: &[f64], y: &[f64], terms: usize) -> Option<[f64; 3]> {
    // In powers of x − 1, near the points, the equations are well conditioned.
    let mut rows = [[0.0; 4]; 3];
    for (&x, &y) in x.iter().zip(y) {
        let powers = [1.0, x - 1.0, (x - 1.0) * (x - 1.0)];
        for (row, &a) in rows.iter_mut().zip(&powers).take(terms) {
            for (cell, &b) in row.iter_mut().zip(&powers) {
                *cell += a * b;
            }
            row[3] += a * y;
        }
    }
    let scale: [f64; 3] = std::array::from_fn(|i| rows[i][i]);
    for pivot in 0..terms {
        let largest =
            (pivot..terms).max_by(|&a, &b| rows[a][pivot].abs().total_cmp(&rows[b][pivot].abs()))?;
        rows.swap(pivot, largest);
        if rows[pivot][pivot].abs() <= 1e-9 * scale[pivot] {
            return None;
        }
        for below in pivot + 1..terms {
            let factor = rows[below][pivot] / rows[pivot][pivot];
            let above = rows[pivot];
            for (cell, &a) in rows[below].iter_mut().zip(&above) {
                *cell -= factor * a;
            }
        }
    }
    let mut c = [0.0; 3];
    for row in (0..terms).rev() {
        let known: f64 = (row + 1..terms).map(|column| rows[row][column] * c[column]).sum();
        c[row] = (rows[row][3] - known) / rows[row][row];
    }
    // Converts powers of x − 1 to powers of x.
    Some([c[0] - c[1] + c[2], c[1] - 2.0 * c[2], c[2]])
}

/// A line of a table of size models that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct TableError {
    /// The number of the line, from 1.
    pub line: usize,
    /// The fault in this line.
    pub fault: TableFault,
}

/// Faults of a line in a table of size models.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableFault {
    /// The line has too few columns.
    #[error("{actual} columns; the columns are source, offset, slope, square and rms")]
    Columns {
        /// Number of columns.
        actual: usize,
    },
    /// The line of a table of means has too few columns.
    #[error("{actual} columns; the columns are source, mean and, if wanted, rms")]
    MeanColumns {
        /// Number of columns.
        actual: usize,
    },
    /// A value is not a number in its column's range.
    #[error("{column} is {actual:?}, which is not a number in range")]
    Number {
        /// Name of the column.
        column: &'static str,
        /// The text found.
        actual: String,
    },
}

/// Reads a table of size models: a line of column names, then lines of source, offset, slope, square and rms, separated by
/// commas. Such tables of the CMS front-end drivers are public.
///
/// A table with the column `mean` needs only that and `source`; `rms` is optional. These sizes are proportional to the event's.
///
/// # Errors
/// The number of the first line without this form, and its fault.
pub fn from_csv(text: &str) -> Result<Vec<SourceModel>, TableError> {
    let head: Vec<String> = text
        .lines()
        .next()
        .unwrap_or_default()
        .split(',')
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let place = |wanted: &str| head.iter().position(|name| name == wanted);
    if let Some(mean) = place("mean") {
        return means(text, place("source").unwrap_or(0), mean, place("rms"));
    }
    let mut models = Vec::new();
    for (number, line) in text.lines().enumerate().skip(1) {
        if line.trim().is_empty() {
            continue;
        }
        let at = |fault| TableError { line: number + 1, fault };
        let columns: Vec<&str> = line.split(',').map(str::trim).collect();
        let &[source, offset, slope, square, rms, ..] = columns.as_slice() else {
            return Err(at(TableFault::Columns { actual: columns.len() }));
        };
        let wrong = |column, actual: &str| at(TableFault::Number { column, actual: actual.to_owned() });
        let value = |column, text: &str| match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(value),
            _ => Err(wrong(column, text)),
        };
        models.push(SourceModel {
            source: source.parse().map_err(|_| wrong("source", source))?,
            offset: value("offset", offset)?,
            slope: value("slope", slope)?,
            square: value("square", square)?,
            rms: value("rms", rms).and_then(|v| if v < 0.0 { Err(wrong("rms", rms)) } else { Ok(v) })?,
        });
    }
    Ok(models)
}

/// Reads a table of means; `rms` is `None` if the table lacks that column.
fn means(text: &str, source: usize, mean: usize, rms: Option<usize>) -> Result<Vec<SourceModel>, TableError> {
    let mut models = Vec::new();
    for (line, number) in text.lines().zip(1..).skip(1).filter(|(line, _)| !line.trim().is_empty()) {
        let columns: Vec<&str> = line.split(',').map(str::trim).collect();
        let at = |fault| TableError { line: number, fault };
        let wrong = |column, actual: &str| at(TableFault::Number { column, actual: actual.to_owned() });
        let cell = |place: usize| {
            columns.get(place).copied().ok_or_else(|| at(TableFault::MeanColumns { actual: columns.len() }))
        };
        let value = |column, place: usize| {
            let text = cell(place)?;
            let value = text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
            value.ok_or_else(|| wrong(column, text))
        };
        let name = cell(source)?;
        models.push(SourceModel {
            source: name.parse().map_err(|_| wrong("source", name))?,
            offset: 0.0,
            slope: value("mean", mean)?,
            square: 0.0,
            rms: rms.map_or(Ok(0.0), |place| value("rms", place))?,
        });
    }
    Ok(models)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_means_needs_no_more() {
        let models = from_csv("mean,source\n1200,4\n\n800,5\n").unwrap();
        let model = |source, slope| SourceModel { source, offset: 0.0, slope, square: 0.0, rms: 0.0 };
        assert_eq!(models, [model(4, 1200.0), model(5, 800.0)]);
        assert_eq!(from_csv("source,mean,rms\n4,1200,0.5").unwrap()[0].rms, 0.5);
        let message = |text: &str| from_csv(text).unwrap_err().to_string();
        assert_eq!(
            message("source,mean\n4"),
            "line 2: 1 columns; the columns are source, mean and, if wanted, rms"
        );
        assert_eq!(message("source,mean\n4,-1"), "line 2: mean is \"-1\", which is not a number in range");
    }

    #[test]
    fn a_parabola_is_found_again() {
        let truth = SourceModel { source: 7, offset: 300.0, slope: 1200.0, square: -150.0, rms: 0.0 };
        let x: Vec<f64> = (0..40).map(|i| 0.5 + f64::from(i) / 40.0).collect();
        let y: Vec<f64> = x.iter().map(|&x| truth.mean_bytes(x)).collect();
        let model = fit_one(7, &x, &y);
        for (actual, needed) in
            [(model.offset, truth.offset), (model.slope, truth.slope), (model.square, truth.square)]
        {
            assert!((actual - needed).abs() < 1e-6, "{model:?}");
        }
        assert!(model.rms < 1e-9);
    }

    #[test]
    fn equal_events_give_no_line() {
        let model =
            fit_one(1, &[1.0; 10], &[90.0, 110.0, 90.0, 110.0, 90.0, 110.0, 90.0, 110.0, 90.0, 110.0]);
        assert_eq!((model.offset, model.slope, model.square), (0.0, 100.0, 0.0));
        assert!((model.rms - 0.1).abs() < 1e-12);
    }

    #[test]
    fn drawn_sizes_have_the_mean_and_spread_of_the_model() {
        let model = SourceModel { source: 1, offset: 0.0, slope: 1e6, square: 0.0, rms: 0.3 };
        // Quantiles of the normal distribution from its logistic approximation, in steps small enough for moments.
        let n = 200_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        let step = 12.0 / f64::from(n);
        for i in 0..n {
            let z = -6.0 + (f64::from(i) + 0.5) * step;
            let weight = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * step;
            let size = model.size_bytes(1.0, z) as f64;
            sum += weight * size;
            squares += weight * size * size;
        }
        assert!((sum / 1e6 - 1.0).abs() < 1e-4, "{sum}");
        assert!(((squares - sum * sum).sqrt() / 1e6 - 0.3).abs() < 1e-4);
    }

    #[test]
    fn tables_are_read_and_faults_have_their_line() {
        let models = from_csv("FED,offset,slope,square,rms\n0,418,2109,0,0.215\n5,1,2,3,0.1,\n\n").unwrap();
        assert_eq!(
            models[0],
            SourceModel { source: 0, offset: 418.0, slope: 2109.0, square: 0.0, rms: 0.215 }
        );
        assert_eq!((models.len(), models[1].source), (2, 5));
        let message = |text: &str| from_csv(text).unwrap_err().to_string();
        assert_eq!(
            message("h\n1,2"),
            "line 2: 2 columns; the columns are source, offset, slope, square and rms"
        );
        assert_eq!(
            message("h\n1,2,3,4,5\n1,nan,3,4,5"),
            "line 3: offset is \"nan\", which is not a number in range"
        );
        assert_eq!(message("h\n1,2,3,4,-5"), "line 2: rms is \"-5\", which is not a number in range");
    }
}
