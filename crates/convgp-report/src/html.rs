//! The page: one file without network, light and dark, for wide and narrow screens.

use crate::figures::Drawing;
use crate::{Report, ReportError};
use convgp::metrics::Summary;
use std::fmt::Write;

const STYLE: &str = include_str!("../assets/report.css");
const SCRIPT: &str = include_str!("../assets/report.js");
/// Forbids the browser to fetch anything at all.
const POLICY: &str =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

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
        body.push_str("<h2>Results</h2>\n");
        let rows = Summary::new(&evaluation.classified(), report.seed)?.rows();
        push_table(&mut body, "numbers", &[], rows.into_iter().map(Vec::from));
    }
    if !report.outliers.is_empty() {
        body.push_str("<h2>Out-of-distribution images</h2>\n");
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
