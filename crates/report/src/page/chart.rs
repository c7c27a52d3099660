//! One chart: axes, series and marks, drawn once for a wide and once for a narrow page.

use std::fmt::Write;
use std::ops::Range;

use serde_json::{Value, json};

use super::format::{FigureForm, significant};
use super::markup::{escape, figure, pointer_part};
use super::pictured::OUTPUT;

/// An axis from `min` to `max`, in the unit that its title names.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) title: String,
    pub(crate) log: bool,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Axis {
    /// Makes a linear axis from zero to `max`.
    pub(crate) fn from_zero(title: impl Into<String>, max: f64) -> Self {
        let max = if max > 0.0 && max.is_finite() { max } else { 1.0 };
        Self { title: title.into(), log: false, min: 0.0, max }
    }

    /// Returns the position of a value, from 0 at `min` to 1 at `max`. Values outside are clamped.
    pub(super) fn place(&self, value: f64) -> f64 {
        let along = if self.log {
            (value.max(self.min).ln() - self.min.ln()) / (self.max.ln() - self.min.ln())
        } else {
            (value - self.min) / (self.max - self.min)
        };
        along.clamp(0.0, 1.0)
    }

    /// Returns the values of labels: round numbers, about `wanted` of them at most.
    pub(super) fn ticks(&self, wanted: usize) -> Vec<f64> {
        if self.log {
            return self.log_ticks(wanted);
        }
        let rough = (self.max - self.min) / wanted as f64;
        let decade = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .iter()
            .map(|times| times * decade)
            .find(|step| *step >= rough * 0.999)
            .unwrap_or(decade * 10.0);
        let first = (self.min / step).ceil() as i64;
        (first..first + 64)
            .map(|index| index as f64 * step)
            .take_while(|tick| *tick <= self.max + step * 1e-6)
            .collect()
    }

    fn log_ticks(&self, wanted: usize) -> Vec<f64> {
        let (low, high) = (self.min.log10().floor() as i32, self.max.log10().ceil() as i32);
        // Takes the ladder with the most steps that has room.
        let ladders: [&[f64]; 3] = [&[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
        let of = |ladder: &[f64], stride: usize| -> Vec<f64> {
            (low..=high)
                .step_by(stride)
                .flat_map(|decade| ladder.iter().map(move |times| times * 10f64.powi(decade)))
                .filter(|tick| (self.min * 0.9999..=self.max * 1.0001).contains(tick))
                .collect()
        };
        ladders
            .iter()
            .map(|ladder| of(ladder, 1))
            .find(|ticks| ticks.len() <= wanted + 1)
            .unwrap_or_else(|| of(&[1.0], ((high - low) as usize).div_ceil(wanted.max(1)).max(1)))
    }
}

/// The line between a series' points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The value holds until the next point.
    Step,
    /// A step whose area below is tinted if the chart has one series only.
    Area,
    /// A thin step, for a series with many changes.
    Trace,
    /// Each point is one value; straight lines join them.
    Points,
}

/// A named row of points, ascending in x.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// Smallest and largest value over seeds at each x of `points`; may be empty.
    pub(crate) band: Vec<(f64, f64)>,
    /// Indices of points without a line from the previous point, because a value between the two is missing.
    pub(crate) breaks: Vec<usize>,
    /// Number of the colour and dash. It belongs to the result, which looks the same in every chart.
    pub(crate) look: usize,
}

impl Series {
    /// Returns the ranges of points that a line joins.
    fn strokes(&self) -> impl Iterator<Item = Range<usize>> {
        let starts = [0].into_iter().chain(self.breaks.iter().copied());
        let ends = self.breaks.iter().copied().chain([self.points.len()]);
        starts.zip(ends).map(|(start, end)| start..end)
    }
}

/// A line across the plot at one value, with a label.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) text: String,
    pub(crate) at: f64,
    /// True for a horizontal line at a value of y, false for a vertical one at a value of x.
    pub(crate) level: bool,
}

/// A chart with its texts, axes and marks.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// The chart's key in the page's data.
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) caption: String,
    pub(crate) description: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) shape: Shape,
    pub(crate) series: Vec<Series>,
    pub(crate) marks: Vec<Mark>,
    /// Columns of the chart's table, without the first one, which holds the names of the rows.
    pub(crate) columns: Vec<(String, FigureForm)>,
    /// Rows of the chart's table; null is a value that does not apply.
    pub(crate) rows: Vec<(String, Vec<Value>)>,
}

/// Number of looks (colour and dash) that the style sheet has for series.
pub(crate) const LOOKS: usize = 10;

struct ChartFrame {
    name: &'static str,
    width: f64,
    height: f64,
    x_ticks: usize,
}

const WIDE: ChartFrame = ChartFrame { name: "wide", width: 640.0, height: 290.0, x_ticks: 8 };
const NARROW: ChartFrame = ChartFrame { name: "narrow", width: 344.0, height: 260.0, x_ticks: 4 };
const LEFT: f64 = 46.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 42.0;
/// Approximate width of a character of a label, for placing only.
pub(super) const CHARACTER: f64 = 6.6;

impl Chart {
    /// Returns the chart's entry in the page's data.
    pub(crate) fn data(&self) -> Value {
        let series: Vec<Value> = self
            .series
            .iter()
            .map(|series| {
                let points: Vec<Value> =
                    series.points.iter().map(|&(x, y)| json!([shorter(x), shorter(y)])).collect();
                json!({ "name": series.name, "points": points })
            })
            .collect();
        let rows: Vec<Value> = self.rows.iter().map(|(_, values)| json!(values)).collect();
        let nearest = self.shape == Shape::Points;
        json!({ "title": self.title, "x": self.x.title, "y": self.y.title, "nearest": nearest, "series": series,
                "rows": rows })
    }

    /// Writes the figure: heading, legend, drawings, read-out, caption and table.
    pub(crate) fn html(&self, data: &Value) -> String {
        let mut out = format!(
            "<figure data-chart=\"{id}\">\n<h3>{title}</h3>\n",
            id = escape(&self.id),
            title = escape(&self.title)
        );
        if self.series.len() > 1 {
            out.push_str("<ul class=\"legend\">");
            for (number, series) in self.series.iter().enumerate() {
                let _ = write!(
                    out,
                    "<li><button type=\"button\" aria-pressed=\"true\" data-series=\"{number}\">{}<bdi>{}</bdi></button></li>",
                    swatch(series.look),
                    escape(&series.name)
                );
            }
            out.push_str("</ul>\n");
        }
        for frame in [WIDE, NARROW] {
            self.draw(&frame, &mut out);
        }
        out.push_str(OUTPUT);
        if !self.caption.is_empty() {
            let _ = writeln!(out, "<figcaption>{}</figcaption>", escape(&self.caption));
        }
        if !self.rows.is_empty() {
            self.table(data, &mut out);
        }
        out.push_str("</figure>\n");
        out
    }

    fn table(&self, data: &Value, out: &mut String) {
        out.push_str(
            "<details><summary>As a table</summary>\n<div class=\"scroll\" role=\"region\" aria-label=\"As a table\" \
             tabindex=\"0\"><table><thead><tr><td></td>",
        );
        for (title, _) in &self.columns {
            let _ = write!(out, "<th scope=\"col\" class=\"n\"><bdi>{}</bdi></th>", escape(title));
        }
        out.push_str("</tr></thead><tbody>\n");
        for (row, (name, _)) in self.rows.iter().enumerate() {
            let _ = write!(out, "<tr><th scope=\"row\"><bdi>{}</bdi></th>", escape(name));
            for (column, (_, form)) in self.columns.iter().enumerate() {
                let pointer = format!("/charts/{}/rows/{row}/{column}", pointer_part(&self.id));
                let cell = figure(data, &pointer, *form).unwrap_or_else(|| "–".into());
                let _ = write!(out, "<td class=\"n\">{cell}</td>");
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div></details>\n");
    }

    fn draw(&self, frame: &ChartFrame, out: &mut String) {
        let ChartFrame { name, width, height, .. } = frame;
        let (right, bottom) = (width - RIGHT, height - BOTTOM);
        let px = |x: f64| LEFT + self.x.place(x) * (right - LEFT);
        let py = |y: f64| bottom - self.y.place(y) * (bottom - TOP);
        let id = format!("{}-{name}", self.id);
        let _ = writeln!(
            out,
            "<svg class=\"{name}\" style=\"--units:{width}\" viewBox=\"0 0 {width} {height}\" role=\"img\" tabindex=\"0\" \
             aria-labelledby=\"{id}-t {id}-d\" data-plot=\"{LEFT} {right} {TOP} {bottom}\" \
             data-x=\"{} {} {}\"><title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>",
            if self.x.log { "log" } else { "lin" },
            self.x.min,
            self.x.max,
            escape(&self.title),
            escape(&self.description),
            id = escape(&id),
        );
        self.draw_axes(frame, &px, &py, out);
        let _ = writeln!(
            out,
            "<text class=\"axis\" x=\"0\" y=\"12\">{}</text><text class=\"axis\" x=\"{right}\" y=\"{}\" \
             text-anchor=\"end\">{}</text>",
            escape(&self.y.title),
            height - 6.0,
            escape(&self.x.title)
        );
        out.push_str("<g class=\"zoom\">");
        for (number, series) in self.series.iter().enumerate() {
            let look = series.look % LOOKS;
            let path = self.path(series, &px, &py, right);
            if self.shape == Shape::Area && self.series.len() == 1 {
                let _ = write!(out, "<path class=\"area s{look}\" d=\"{path}V{bottom:.1}H{LEFT:.1}Z\"/>");
            }
            if !series.band.is_empty() {
                let mut band = String::new();
                for stroke in series.strokes() {
                    let ends = series.points[stroke.clone()].iter().zip(&series.band[stroke]);
                    let mut letter = 'M';
                    for (&(x, _), &(_, high)) in ends.clone() {
                        let _ = write!(band, "{letter}{:.1} {:.1}", px(x), py(high));
                        letter = 'L';
                    }
                    ends.rev().for_each(|(&(x, _), &(low, _))| {
                        let _ = write!(band, "L{:.1} {:.1}", px(x), py(low));
                    });
                    band.push('Z');
                }
                let _ = write!(out, "<path class=\"area s{look} n{number}\" d=\"{band}\"/>");
            }
            let thin = if self.shape == Shape::Trace { " thin" } else { "" };
            let _ = writeln!(out, "<path class=\"line s{look}{thin} n{number}\" d=\"{path}\"/>");
            if self.shape == Shape::Points {
                for &(x, y) in &series.points {
                    let (x, y) = (px(x), py(y));
                    let _ = write!(out, "<path class=\"dot s{look} n{number}\" d=\"M{x:.1} {y:.1}h0\"/>");
                }
            }
        }
        out.push_str("</g>\n");
        let mut taken: Vec<(f64, f64)> = Vec::new();
        for mark in &self.marks {
            let text = escape(&mark.text);
            if mark.level {
                let y = py(mark.at);
                let _ = writeln!(
                    out,
                    "<path class=\"mark\" d=\"M{LEFT:.1} {y:.1}H{right:.1}\"/>\
                     <text class=\"mark\" x=\"{right:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
                    y - 5.0
                );
                continue;
            }
            let x = px(mark.at);
            // The label is on the side of the line that has room.
            let wide = CHARACTER * mark.text.chars().count() as f64;
            let fits = x + 6.0 + wide <= right;
            let (at, anchor) = if fits { (x + 5.0, "start") } else { (x - 5.0, "end") };
            let _ = writeln!(out, "<path class=\"mark x-mark\" d=\"M{x:.1} {:.1}V{bottom:.1}\"/>", TOP - 8.0);
            // The label is left out where it would overlap another label, or another line would cross it.
            let span = if fits { (at, at + wide) } else { (at - wide, at) };
            let is_crossed = self
                .marks
                .iter()
                .any(|other| !other.level && (span.0..span.1).contains(&px(other.at)) && px(other.at) != x);
            if !is_crossed && taken.iter().all(|&(from, to)| span.1 + 4.0 < from || span.0 > to + 4.0) {
                let _ = writeln!(
                    out,
                    "<text class=\"mark x-mark\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{text}</text>",
                    TOP - 1.0
                );
                taken.push(span);
            }
        }
        out.push_str("</svg>\n");
    }

    fn draw_axes(
        &self,
        frame: &ChartFrame,
        px: &dyn Fn(f64) -> f64,
        py: &dyn Fn(f64) -> f64,
        out: &mut String,
    ) {
        let (right, bottom) = (frame.width - RIGHT, frame.height - BOTTOM);
        for tick in self.y.ticks(5) {
            let y = py(tick);
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{LEFT:.1} {y:.1}H{right:.1}\"/>\
                 <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 7.0,
                y + 4.0,
                significant(tick)
            );
        }
        out.push_str("<g class=\"x-axis\">");
        for tick in self.x.ticks(frame.x_ticks) {
            let x = px(tick);
            let text = significant(tick);
            // Labels at the ends would be cut off by the edge.
            let half = CHARACTER * text.chars().count() as f64 / 2.0;
            let anchor = if x + half > frame.width { "end" } else { "middle" };
            let _ = write!(
                out,
                "<path class=\"notch\" d=\"M{x:.1} {bottom:.1}v4\"/>\
                 <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{text}</text>",
                if anchor == "end" { frame.width } else { x },
                bottom + 17.0,
            );
        }
        out.push_str("</g>");
        let _ = writeln!(out, "<path class=\"base\" d=\"M{LEFT:.1} {bottom:.1}H{right:.1}\"/>");
    }

    fn path(&self, series: &Series, px: &dyn Fn(f64) -> f64, py: &dyn Fn(f64) -> f64, right: f64) -> String {
        let mut path = String::new();
        let mut points = series.points.iter().map(|&(x, y)| (px(x), py(y)));
        if self.shape == Shape::Points {
            for (index, (x, y)) in points.enumerate() {
                let letter = if index == 0 || series.breaks.contains(&index) { 'M' } else { 'L' };
                let _ = write!(path, "{letter}{x:.1} {y:.1}");
            }
            return path;
        }
        let Some((mut last_x, mut last_y)) = points.next() else { return path };
        // The first step begins at the axis.
        let _ = write!(path, "M{last_x:.1} {:.1}V{last_y:.1}", py(self.y.min));
        for (x, y) in points {
            // Details below a tenth of a unit are invisible.
            if x - last_x >= 0.05 {
                let _ = write!(path, "H{x:.1}");
                last_x = x;
            }
            if (y - last_y).abs() >= 0.05 {
                let _ = write!(path, "V{y:.1}");
                last_y = y;
            }
        }
        if self.shape != Shape::Area {
            // The last value holds until the end.
            let _ = write!(path, "H{right:.1}");
        }
        path
    }
}

/// Draws a sample of a series' line, for legends.
pub(crate) fn swatch(index: usize) -> String {
    format!(
        "<svg class=\"swatch\" viewBox=\"0 0 26 10\" aria-hidden=\"true\">\
         <path class=\"line s{}\" d=\"M1 5H25\"/></svg>",
        index % LOOKS
    )
}

/// Rounds to six significant digits, which is finer than any screen.
pub(super) fn shorter(number: f64) -> f64 {
    format!("{number:.5e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(log: bool, min: f64, max: f64) -> Axis {
        Axis { title: String::new(), log, min, max }
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(axis(false, 0.0, 100.0).ticks(5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(axis(false, 18.0, 22.0).ticks(4), [18.0, 19.0, 20.0, 21.0, 22.0]);
        assert_eq!(axis(true, 1.0, 1000.0).ticks(8), [1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0]);
        assert_eq!(axis(true, 18.0, 640.0).ticks(8), [20.0, 50.0, 100.0, 200.0, 500.0]);
        let many = axis(true, 0.5, 1e12);
        assert!(many.ticks(5).len() <= 7, "{:?}", many.ticks(5));
    }

    #[test]
    fn odd_ranges_still_have_an_end() {
        for (min, max) in [(0.0, f64::MIN_POSITIVE), (0.0, f64::MAX / 4.0), (1e15, 1e15 + 1.0)] {
            assert!(axis(false, min, max).ticks(5).len() <= 64);
        }
        let nothing = Axis::from_zero("", f64::NAN);
        assert_eq!((nothing.min, nothing.max), (0.0, 1.0));
    }
}
