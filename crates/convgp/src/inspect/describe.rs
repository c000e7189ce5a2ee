//! A model in one line.

use crate::Model;
use crate::component::Component;

/// One line about a model: its views, sizes and likelihood.
pub fn describe(model: &Model) -> String {
    let component = |c: &Component| {
        let views = c.responses()[0].views();
        let channels = match c.responses().len() {
            1 => String::new(),
            n => format!("{n} x "),
        };
        let weights = if c.responses()[0].weights_slot().is_some() { ", weighted" } else { "" };
        let what = if views.is_staged() { " of a first stage" } else { "" };
        format!(
            "{} ({channels}{} views of {} numbers{what}{weights}, M = {})",
            c.name(),
            views.count(),
            views.len(),
            c.inducing()
        )
    };
    let parts: Vec<String> = model.components().iter().map(component).collect();
    let likelihood = model.likelihood().name();
    format!("{}; {likelihood} likelihood; {} parameters", parts.join(" + "), model.layout().len())
}
