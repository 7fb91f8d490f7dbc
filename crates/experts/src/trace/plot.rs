//! Pictures of a trace as SVG, for a browser: use of each expert by layer, and hit rate against memory.
//!
//! Invariant: well-formed whatever the model's name holds, and of a size that follows the picture, not the trace's length.

use std::fmt::Write as _;

use super::Trace;

/// Shades of the heat map, from unused to most used.
const SHADES: [&str; 9] =
    ["#f4f4f4", "#fee9c8", "#fdcf94", "#fcae6b", "#f68a48", "#e6602f", "#c9381f", "#9c1a1c", "#5e0d1c"];
/// Lines of the chart.
const COLOURS: [&str; 10] = [
    "#d1242f", "#1f6feb", "#8250df", "#1a7f37", "#bf8700", "#0a8a8a", "#bc4c9b", "#6e5f4b", "#5b7083",
    "#111111",
];
const FONT: &str = r##"font-family="system-ui, sans-serif" font-size="13" fill="#222""##;

/// The hit rates of one policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// Bytes of slots, ascending, and the hit rate with them, from 0 to 1.
    pub points: Vec<(u64, f64)>,
}

/// How often each expert was asked for, layers downwards, experts to the right. A prompt's rows count one each.
pub fn heat_map(trace: &Trace) -> String {
    let header = trace.header();
    let shape = header.cache(0);
    let mut rows_of = vec![0_u64; shape.layers * shape.experts];
    for batch in trace.batches() {
        for (key, &rows) in batch.keys().zip(batch.rows) {
            rows_of[key.layer as usize * shape.experts + key.expert as usize] += u64::from(rows);
        }
    }
    let most = rows_of.iter().copied().max().unwrap_or_default().max(1);

    let cell = |cells: usize, space: usize| (space / cells.max(1)).clamp(2, 20);
    let (w, h) = (cell(shape.experts, 1200), cell(shape.layers, 700));
    let (left, top) = (60, 60);
    let (width, height) = (shape.experts * w, shape.layers * h);
    let mut svg = open(left + width.max(420) + 30, top + height + 90);
    let title = format!("{}: rows for each expert", escape(&header.model));
    text(&mut svg, left, 28, "start", &title);
    text(&mut svg, left, 48, "start", "layers downwards, experts to the right");
    // One path a shade keeps the file small.
    let mut paths = vec![String::new(); SHADES.len()];
    for (layer, has) in header.layers.iter().enumerate() {
        for expert in 0..has.n_experts as usize {
            let rows = rows_of[layer * shape.experts + expert];
            let path = &mut paths[shade(rows, most)];
            let _ = write!(path, "M{} {}h{w}v{h}h-{w}z", left + expert * w, top + layer * h);
        }
    }
    for (path, colour) in paths.iter().zip(SHADES).filter(|(path, _)| !path.is_empty()) {
        let _ = writeln!(svg, r#"<path fill="{colour}" d="{path}"/>"#);
    }
    for layer in (0..shape.layers).step_by(step(shape.layers, h, 20)) {
        text(&mut svg, left - 8, top + layer * h + h / 2 + 5, "end", &layer.to_string());
    }
    for expert in (0..shape.experts).step_by(step(shape.experts, w, 40)) {
        text(&mut svg, left + expert * w + w / 2, top + height + 18, "middle", &expert.to_string());
    }
    let key = top + height + 40;
    text(&mut svg, left, key + 14, "start", "0");
    for (i, colour) in SHADES.iter().enumerate() {
        let x = left + 16 + i * 26;
        let _ = writeln!(svg, r#"<rect x="{x}" y="{key}" width="26" height="18" fill="{colour}"/>"#);
    }
    let legend = format!("{most} rows; each shade from the second doubles the share");
    text(&mut svg, left + 24 + SHADES.len() * 26, key + 14, "start", &legend);
    svg + "</svg>\n"
}

/// 0 for none, the last for more than half of the most, and half of that for each shade below.
fn shade(rows: u64, most: u64) -> usize {
    if rows == 0 {
        return 0;
    }
    let halvings = (most / rows).ilog2() as usize;
    (SHADES.len() - 1).saturating_sub(halvings).max(1)
}

/// Every how many of `n` cells a label fits, cells of `size` and labels of `space` pixels.
fn step(n: usize, size: usize, space: usize) -> usize {
    let fits = |step: &usize| step * size >= space;
    [1, 2, 4, 5, 8, 10, 16, 20, 32, 64, 128, 256, 512].into_iter().find(fits).unwrap_or(n.max(1))
}

/// Hit rate against bytes of slots, a line for each curve, the last one dashed.
pub fn hit_rates(title: &str, curves: &[Curve]) -> String {
    let (left, top, width, height) = (70, 60, 760, 420);
    let most =
        curves.iter().flat_map(|c| &c.points).map(|&(bytes, _)| bytes).max().unwrap_or_default().max(1);
    let mut svg = open(left + width + 170, top + height + 70);
    text(&mut svg, left, 28, "start", &escape(title));
    text(&mut svg, left, 48, "start", "hit rate (%) against memory for experts (GB)");
    for percent in (0..=100).step_by(20) {
        let y = top + height - height * percent / 100;
        let right = left + width;
        let _ = writeln!(svg, r##"<path stroke="#ddd" d="M{left} {y}H{right}"/>"##);
        text(&mut svg, left - 8, y + 4, "end", &percent.to_string());
    }
    let x_of = |bytes: u64| left as f64 + width as f64 * bytes as f64 / most as f64;
    let tick = tick(most as f64 / 1e9);
    let mut gigabytes = 0.0;
    while gigabytes * 1e9 <= most as f64 * 1.0001 {
        let (x, bottom) = (x_of((gigabytes * 1e9) as u64), top + height);
        let _ = writeln!(svg, r##"<path stroke="#ddd" d="M{x:.1} {top}V{bottom}"/>"##);
        let label = format!("{}", (gigabytes * 1e6_f64).round() / 1e6);
        text(&mut svg, x as usize, bottom + 20, "middle", &label);
        gigabytes += tick;
    }
    // Legend and lines in the order of the last points would cross less; the caller's order is the known one.
    for (i, curve) in curves.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let dash = if i + 1 == curves.len() { r#" stroke-dasharray="6 4""# } else { "" };
        let points: Vec<String> = curve
            .points
            .iter()
            .map(|&(bytes, rate)| {
                format!("{:.1},{:.1}", x_of(bytes), (top + height) as f64 - height as f64 * rate)
            })
            .collect();
        let line = points.join(" ");
        let style = format!(r#"fill="none" stroke="{colour}" stroke-width="2"{dash}"#);
        let _ = writeln!(svg, r#"<polyline {style} points="{line}"/>"#);
        let (x, y) = (left + width + 20, top + 10 + i * 22);
        let _ = writeln!(svg, r#"<path {style} d="M{x} {y}h26"/>"#);
        text(&mut svg, x + 34, y + 4, "start", &escape(&curve.name));
    }
    svg + "</svg>\n"
}

/// 1, 2 or 5 times a power of ten, at most 10 of them in `range`.
fn tick(range: f64) -> f64 {
    let mut tick = 1e-6;
    for factor in [2.0, 2.5, 2.0].into_iter().cycle() {
        if range / tick <= 10.0 {
            break;
        }
        tick *= factor;
    }
    tick
}

fn open(width: usize, height: usize) -> String {
    format!(
        concat!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}">"#,
            "\n",
            r##"<rect width="100%" height="100%" fill="#fff"/>"##,
            "\n"
        ),
        width, height
    )
}

fn text(svg: &mut String, x: usize, y: usize, anchor: &str, text: &str) {
    let _ = writeln!(svg, r#"<text x="{x}" y="{y}" text-anchor="{anchor}" {FONT}>{text}</text>"#);
}

/// Text that can't end its element; control characters, which XML forbids, left out.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}')) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{TraceHeader, TraceLayer};
    use crate::{Phase, RouteBatch};

    #[test]
    fn shades_halve_from_the_most() {
        assert_eq!([0, 1, 50, 51, 100].map(|rows| shade(rows, 100)), [0, 2, 7, 8, 8]);
        assert_eq!(shade(1, u64::MAX), 1);
    }

    #[test]
    fn a_heat_map_draws_each_expert_that_is_there_and_escapes_the_name() {
        let layer = |n_experts| TraceLayer { n_experts, expert_bytes: 10 };
        let header =
            TraceHeader { model: "<a&b>\u{1b}".to_owned(), top_k: 1, layers: vec![layer(0), layer(3)] };
        let mut trace = Trace::new(header).unwrap();
        let batch = RouteBatch { phase: Phase::Prefill, layer: 1, n_rows: 5, experts: &[2], rows: &[5] };
        trace.push(&batch).unwrap();
        let svg = heat_map(&trace);
        assert_eq!(svg.matches("h20v20h-20z").count(), 3);
        assert_eq!(svg.matches(&format!(r#"<path fill="{}" d="M100 80"#, SHADES[8])).count(), 1);
        assert!(svg.contains("&lt;a&amp;b&gt;: rows") && !svg.contains('\u{1b}'));
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!([0.5, 10.0, 11.0].map(|range| (tick(range) * 1e6).round() / 1e6), [0.05, 1.0, 2.0]);
    }
}
