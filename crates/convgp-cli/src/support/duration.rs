//! `90s`, `30m`, `1h30m`: spans of time as people write them.

pub use convgp_paper::table::seconds_text as text;

use std::time::Duration;

/// Reads a span; a bare number is seconds.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no span of time such as 90s, 30m or 1h30m");
    let (mut seconds, mut number) = (0.0, String::new());
    for c in text.chars() {
        let unit = match c {
            'h' => 3600.0,
            'm' => 60.0,
            's' => 1.0,
            _ => {
                number.push(c);
                continue;
            }
        };
        seconds += unit * number.parse::<f64>().map_err(|_| wrong())?;
        number.clear();
    }
    if !number.is_empty() {
        seconds += number.parse::<f64>().map_err(|_| wrong())?;
    }
    Duration::try_from_secs_f64(seconds).ok().filter(|d| !d.is_zero()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read() {
        for (text, seconds) in [("90s", 90.0), ("30m", 1800.0), ("1h30m", 5400.0), ("2", 2.0), ("0.5s", 0.5)]
        {
            assert_eq!(parse(text).unwrap().as_secs_f64(), seconds);
        }
        for text in ["", "m", "5x", "-3s", "0s", "1e400h", "nan"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
