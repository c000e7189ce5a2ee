//! Metrics as a table.

use convgp::metrics::Metrics;
use std::io::Write;

/// A table of metrics by name.
pub fn write_table(out: &mut dyn Write, rows: &[(String, Metrics)]) -> std::io::Result<()> {
    let regression = rows.iter().any(|(_, f)| f.error.is_none());
    let error = if regression { "rmse" } else { "error" };
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(10);
    writeln!(out, "{:width$}  {:>8}  {error:>10}  {:>10}", "", "images", "NLPP")?;
    for (name, f) in rows {
        writeln!(out, "{name:width$}  {:>8}  {:>10}  {:>10.4}", f.images, f.error_text(), f.nlpp)?;
    }
    Ok(())
}
