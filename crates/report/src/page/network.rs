//! The network as columns of node groups, with the load and losses of its links.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::json;

use super::format::{FigureForm, format_f64, typeset};
use super::markup::escape;
use super::pictured::{Drawing, SHEETS, Sheet, open};
use crate::{LinkGroup, NetworkGroups, NodeGroup};

const BOX: [f64; 2] = [116.0, 34.0];
/// Vertical distance between the centres of two nodes.
const ROW: f64 = 92.0;
/// A horizontal drawing for wide pages. Narrow pages show the same network from top to bottom.
const STRIP: Sheet = Sheet { name: "wide", width: 1000.0, ticks: 0 };

/// Draws the network. Returns `None` if it was not recorded.
pub(super) fn draw(topology: &NetworkGroups, index: usize) -> Option<Drawing> {
    if topology.groups.is_empty() {
        return None;
    }
    let mut columns: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (group, node) in topology.groups.iter().enumerate() {
        columns.entry(node.column).or_default().push(group);
    }
    let tallest = columns.values().map(Vec::len).max().unwrap_or(1);
    let id = format!("network-{index}");
    // Both directions of a link are one line. The direction with more drops, then with more load, is shown.
    let mut links: BTreeMap<(usize, usize), (&LinkGroup, u64)> = BTreeMap::new();
    for link in &topology.links {
        let pair = (link.from.min(link.to), link.from.max(link.to));
        let known = links.entry(pair).or_insert((link, 0));
        if (link.drops, link.utilisation) > (known.0.drops, known.0.utilisation) {
            known.0 = link;
        }
        known.1 += link.drops;
    }
    let mut hot: Vec<&(&LinkGroup, u64)> = links.values().collect();
    hot.sort_by(|one, other| {
        (other.1, other.0.utilisation)
            .partial_cmp(&(one.1, one.0.utilisation))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let words: Vec<String> = hot
        .iter()
        .take(3)
        .map(|(link, drops)| {
            format!(
                "{} carries {} of its rate, {drops} frames dropped",
                typeset(&link.hottest),
                format_f64(link.utilisation, FigureForm::Share)
            )
        })
        .collect();
    let mut html =
        String::from("<figure class=\"picture network\">\n<h3>The network and its busiest links</h3>\n");
    for sheet in [&STRIP, &SHEETS[1]] {
        let is_strip = sheet.name == STRIP.name;
        let (wide, height, step) = if is_strip {
            (BOX[0], ROW * tallest as f64, (sheet.width - BOX[0]) / (columns.len().max(2) - 1) as f64)
        } else {
            let wide = BOX[0].min(sheet.width / tallest as f64 - 6.0);
            (wide, ROW * (columns.len() - 1) as f64 + BOX[1] + 4.0, ROW)
        };
        // The centres of the outermost boxes.
        let plot = format!("data-plot=\"{} {} 0 {height}\"", wide / 2.0, sheet.width - wide / 2.0);
        html += &open(sheet, height, &id, ["The network", &words.join("; ")], &plot);
        let mut at: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for (column, groups) in columns.values().enumerate() {
            for (row, &group) in groups.iter().enumerate() {
                let across = (row as f64 + 0.5) / groups.len() as f64;
                let along = step * column as f64;
                let place = if is_strip {
                    (along + wide / 2.0, across * height)
                } else {
                    (across * sheet.width, along + BOX[1] / 2.0 + 2.0)
                };
                at.insert(group, place);
            }
        }
        let mut labels = String::new();
        for &(link, drops) in links.values() {
            let (Some(&(x1, y1)), Some(&(x2, y2))) = (at.get(&link.from), at.get(&link.to)) else { continue };
            let class = if drops > 0 { "lossy" } else { "link" };
            let width = 1.0 + 7.0 * link.utilisation.clamp(0.0, 1.0);
            let _ = write!(
                html,
                "<path class=\"{class}\" stroke-width=\"{width:.1}\" d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\"><title>{}: {}, {drops} \
                 frames dropped</title></path>",
                escape(&typeset(&link.hottest)),
                format_f64(link.utilisation, FigureForm::Share)
            );
            if hot.iter().take(4).any(|(other, _)| (other.from, other.to) == (link.from, link.to)) {
                let (x, y) = ((x1 + x2) / 2.0, (y1 + y2) / 2.0);
                // The label is on the side that the slope of the link leaves free.
                let top = if drops > 0 { 13.0 } else { 0.0 };
                let (x, anchor, above, below) = match (is_strip, y2 - y1) {
                    (true, height) if height.abs() < 10.0 => (x, "middle", y - 7.0, y + 17.0),
                    (true, height) if height < 0.0 => (x + 10.0, "start", y + 9.0, y + 22.0),
                    (true, _) => (x + 10.0, "start", y - 5.0 - top, y - 5.0),
                    (false, _) if x2 < x1 => (x - 10.0, "end", y - 16.0, y - 3.0),
                    (false, _) => (x + 8.0, "start", y - 3.0, y + 12.0),
                };
                let share = format_f64(link.utilisation, FigureForm::Share);
                let _ = write!(
                    labels,
                    "<text class=\"tick halo\" x=\"{x:.1}\" y=\"{above:.1}\" text-anchor=\"{anchor}\">{share}</text>"
                );
                if drops > 0 {
                    let _ = write!(
                        labels,
                        "<text class=\"tick halo bad\" x=\"{x:.1}\" y=\"{below:.1}\" text-anchor=\"{anchor}\">{} dropped</text>",
                        format_f64(drops as f64, FigureForm::Number)
                    );
                }
            }
        }
        let _ = write!(html, "<g class=\"tick\">{labels}</g>");
        for (group, node) in topology.groups.iter().enumerate() {
            let Some(&(x, y)) = at.get(&group) else { continue };
            let class = if node.is_switch { "node switch" } else { "node" };
            let _ = write!(
                html,
                "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{wide}\" height=\"{}\" rx=\"{}\"/>\
                 <g class=\"tick\"><text class=\"node\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text></g>",
                x - wide / 2.0,
                y - BOX[1] / 2.0,
                BOX[1],
                if node.is_switch { 4 } else { 17 },
                y + 4.0,
                escape(&label(node))
            );
        }
        html += "</svg>\n";
    }
    html += "<figcaption class=\"note\">Width: the share of its rate that the busiest link carried. Red: frames were dropped before it. Alike nodes \
             stand together.</figcaption>\n</figure>\n";
    Some(Drawing { id, data: json!({ "title": "The network", "links": topology.links }), html })
}

fn label(node: &NodeGroup) -> String {
    if node.count > 1 { format!("{} × {}", node.count, node.name) } else { node.name.clone() }
}
