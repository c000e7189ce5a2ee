//! The page: one file without network, light and dark, for wide and narrow screens.

use crate::figures::Drawing;
use crate::{Evaluation, Report, ReportError};
use convgp::metrics::{Binning, Reliability, RiskCoverage};
use convgp::rng::Rng;
use std::fmt::Write;

const STYLE: &str = include_str!("../assets/report.css");
const SCRIPT: &str = include_str!("../assets/report.js");
/// Forbids the browser to fetch anything at all.
const POLICY: &str =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
/// Draws behind every interval.
const DRAWS: usize = 1000;

/// Text for element content and attribute values.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// The whole page.
pub(crate) fn page(report: &Report, drawings: &[Drawing]) -> Result<String, ReportError> {
    let mut body = format!("<header><h1>{}</h1></header>\n<main>\n", escape(&report.title));
    let facts = report.facts.iter().map(|(k, v)| vec![k.clone(), v.clone()]);
    push_table(&mut body, "facts", &[], facts);
    if let Some(evaluation) = &report.evaluation {
        body.push_str("<h2>Test results</h2>\n");
        push_table(&mut body, "numbers", &[], figures_of_merit(evaluation, report.seed)?.into_iter());
    }
    if !report.outliers.is_empty() {
        body.push_str("<h2>Strange images</h2>\n");
        push_table(
            &mut body,
            "scores",
            &["images", "score", "AUROC", "AUPR", "FPR at 95 %"],
            outlier_rows(report),
        );
    }
    let mut section = "";
    for drawing in drawings {
        if drawing.section != section {
            if !section.is_empty() {
                body.push_str("</section>\n");
            }
            section = drawing.section;
            let _ = write!(body, "<h2>{}</h2>\n<section>\n", escape(section));
        }
        let Drawing { name, title, caption, svg, .. } = drawing;
        let (name, title, caption) = (escape(name), escape(title), escape(caption));
        let _ = write!(
            body,
            "<figure id=\"{name}\" data-figure=\"{name}\">\n<h3>{title}</h3>\n{}<figcaption>{caption}</figcaption>\n</figure>\n",
            labelled(svg, &title)
        );
    }
    body.push_str(if section.is_empty() { "</main>" } else { "</section>\n</main>" });
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n<script>\n{SCRIPT}</script>\n</head>\n<body>\n{body}\n</body>\n</html>\n",
        escape(&report.title)
    ))
}

/// The drawing with a name for those who cannot see it. Inside a page the namespace is known; without it the file holds
/// no address at all.
fn labelled(svg: &str, title: &str) -> String {
    svg.replacen(" xmlns=\"http://www.w3.org/2000/svg\"", &format!(" role=\"img\" aria-label=\"{title}\""), 1)
}

fn push_table(out: &mut String, class: &str, head: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return;
    }
    let _ = writeln!(out, "<div class=\"wide\"><table class=\"{class}\">");
    if !head.is_empty() {
        let cells: String = head.iter().map(|h| format!("<th>{}</th>", escape(h))).collect();
        let _ = writeln!(out, "<tr>{cells}</tr>");
    }
    for row in rows {
        let cells: String = row.iter().map(|c| format!("<td>{}</td>", escape(c))).collect();
        let _ = writeln!(out, "<tr>{cells}</tr>");
    }
    out.push_str("</table></div>\n");
}

/// Name, value and remark of every number about test images.
fn figures_of_merit(evaluation: &Evaluation, seed: u64) -> Result<Vec<Vec<String>>, ReportError> {
    let c = evaluation.classified();
    let (confidences, correct) = (c.confidences(), c.correct());
    let line = |name: &str, value: String, remark: String| vec![name.into(), value, remark];
    let percent = |v: f64| format!("{:.2} %", 100.0 * v);
    let wrong = correct.iter().filter(|c| !**c).count();
    let mut rows = vec![
        line("error", percent(c.error()), format!("{wrong} of {} images", c.len())),
        line("NLPP", format!("{:.4}", c.nlpp()), "mean of -log p(label); smaller is better".into()),
        line("Brier score", format!("{:.4}", c.brier()), "all classes, 0 to 2".into()),
    ];
    for (name, binning) in
        [("ECE, 15 equal widths", Binning::EqualWidth(15)), ("ECE, 15 equal masses", Binning::EqualMass(15))]
    {
        let r = Reliability::new(&confidences, &correct, binning)?;
        let rng = &mut Rng::new(seed);
        let (interval, null) = (r.bootstrap(DRAWS, 0.95, rng), r.null_band(DRAWS, 0.95, rng).error);
        let remark = format!(
            "95 % interval {:.4} to {:.4}; a calibrated model would show {:.4} to {:.4}",
            interval.lower, interval.upper, null.lower, null.upper
        );
        rows.push(line(name, format!("{:.4}", r.error()), remark));
    }
    let curve = RiskCoverage::new(&confidences, &correct)?;
    rows.push(line("area under risk-coverage", format!("{:.5}", curve.area()), "smaller is better".into()));
    for coverage in [0.8, 0.9, 0.95] {
        let name = format!("error at {:.0} % coverage", 100.0 * coverage);
        rows.push(line(&name, percent(curve.error_at(coverage)), "the least sure images unanswered".into()));
    }
    Ok(rows)
}

fn outlier_rows(report: &Report) -> impl Iterator<Item = Vec<String>> + '_ {
    report.outliers.iter().flat_map(|o| {
        o.rows.iter().map(move |(score, s)| {
            let number = |v: f64| format!("{v:.3}");
            let [a, b, c] = [s.auroc, s.aupr, s.fpr_at_95].map(number);
            vec![o.name.clone(), score.name().into(), a, b, c]
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_text_stays_text() {
        assert_eq!(escape("<b a=\"1\" b='2'>&\u{7}"), "&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp; ");
        let page = Report::new("<script>alert(1)</script>").fact("a<b", "\"").html().unwrap();
        assert!(!page.contains("<script>alert") && page.contains("a&lt;b") && page.contains("&quot;"));
    }
}
