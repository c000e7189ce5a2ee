//! Measurements as they are shown: rows of Markdown tables, or one JSON line each.

use serde_json::{Map, Value};

/// One entry of a table.
#[derive(Debug, Clone)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A whole number.
    Count(u64),
    /// A measurement, shown to three digits.
    Number(f64),
    /// Does not apply.
    Empty,
}

impl Cell {
    /// A measurement that may be missing.
    pub fn maybe(value: Option<f64>) -> Self {
        value.map_or(Cell::Empty, Cell::Number)
    }

    fn markdown(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Count(n) => n.to_string(),
            Cell::Number(x) => digits(*x),
            Cell::Empty => String::new(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Cell::Text(text) => text.clone().into(),
            Cell::Count(n) => (*n).into(),
            Cell::Number(x) => (*x).into(),
            Cell::Empty => Value::Null,
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.into())
    }
}
impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Text(text)
    }
}
impl From<usize> for Cell {
    fn from(n: usize) -> Self {
        Cell::Count(n as u64)
    }
}
impl From<u64> for Cell {
    fn from(n: u64) -> Self {
        Cell::Count(n)
    }
}
impl From<f64> for Cell {
    fn from(x: f64) -> Self {
        Cell::Number(x)
    }
}

/// Three significant digits.
pub fn digits(x: f64) -> String {
    if !x.is_finite() || x == 0.0 {
        return x.to_string();
    }
    let decimals = 2 - x.abs().log10().floor() as i32;
    format!("{x:.*}", decimals.max(0) as usize)
}

/// Named cells of one measurement.
pub type Row = Vec<(&'static str, Cell)>;

/// Where measurements go.
#[derive(Debug, Clone, Copy)]
pub struct Report {
    /// JSON lines instead of Markdown.
    pub json: bool,
}

impl Report {
    /// Starts a table; `note` says what is measured.
    pub fn table(self, section: &'static str, note: &str) -> Table {
        if !self.json {
            say(&format!("\n## {section}\n\n{note}\n"));
        }
        Table { json: self.json, section, started: false }
    }

    /// A remark outside tables.
    pub fn note(self, text: &str) {
        if self.json {
            let line = Value::Object(Map::from_iter([("note".to_string(), Value::from(text))]));
            say(&line.to_string());
        } else {
            say(&format!("\n{text}"));
        }
    }
}

/// A table under way; rows are shown as they come.
#[derive(Debug)]
pub struct Table {
    json: bool,
    section: &'static str,
    started: bool,
}

impl Table {
    /// Shows one measurement. All rows of a table have the same columns.
    pub fn add(&mut self, row: &Row) {
        if self.json {
            let mut object: Map<String, Value> = row.iter().map(|(k, v)| ((*k).into(), v.json())).collect();
            object.insert("section".into(), self.section.into());
            return say(&Value::Object(object).to_string());
        }
        if !self.started {
            let names: Vec<String> = row.iter().map(|(k, _)| k.replace('_', " ")).collect();
            say(&format!("| {} |\n|{}", names.join(" | "), "---|".repeat(row.len())));
            self.started = true;
        }
        let cells: Vec<String> = row.iter().map(|(_, v)| v.markdown()).collect();
        say(&format!("| {} |", cells.join(" | ")));
    }
}

#[allow(clippy::print_stdout)] // the output of the command
fn say(text: &str) {
    println!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits() {
        for (x, text) in [(0.012345, "0.0123"), (1.2345, "1.23"), (12345.6, "12346"), (0.0, "0")] {
            assert_eq!(digits(x), text);
        }
    }
}
