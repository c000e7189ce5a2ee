//! A model in one line.

use crate::Model;
use crate::component::Component;
use crate::likelihood::LikelihoodSpec;

/// One line about a model: its views, sizes and likelihood.
pub fn describe(model: &Model) -> String {
    let component = |c: &Component| {
        let views = c.responses()[0].views();
        let channels = match c.responses().len() {
            1 => String::new(),
            n => format!("{n} x "),
        };
        let weights = if c.responses()[0].weights_slot().is_some() { ", weighted" } else { "" };
        format!(
            "{} ({channels}{} views of {} numbers{weights}, M = {})",
            c.name(),
            views.count(),
            views.len(),
            c.inducing()
        )
    };
    let parts: Vec<String> = model.components().iter().map(component).collect();
    let likelihood = match model.spec().likelihood {
        LikelihoodSpec::Gaussian { .. } => "Gaussian",
        LikelihoodSpec::Probit { .. } => "probit",
        LikelihoodSpec::Logit {} => "logit",
        LikelihoodSpec::Labels { .. } => "label regression",
        LikelihoodSpec::RobustMax { .. } => "robust-max",
        LikelihoodSpec::Softmax { .. } => "softmax",
    };
    format!("{}; {likelihood} likelihood; {} parameters", parts.join(" + "), model.layout().len())
}
