//! `convgp explain`: the contribution of each patch of an image to each latent function.

use crate::args::data::DataArgs;
use crate::args::model::{ModelArg, SplitName};
use crate::commands::predict::UNKNOWN;
use crate::support::exit::{Exit, input};
use crate::support::inputs::Inputs;
use crate::support::models::read_model;
use crate::support::table::{Format, Table};
use anyhow::{Context, Result};
use clap::Args;
use convgp::FittedModel;
use convgp::cov::Fused;
use convgp::inspect::{Evidence, Explainer, Part};
use convgp::io::write_atomically;
use convgp::likelihood::Predictive;
use convgp::rng::Rng;
use convgp_report::ModelView;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Inducing inputs that are named on standard output.
const CARRIERS: usize = 5;

/// Show how much each patch of an image contributes to each class.
///
/// The contributions of patches, and those of inducing inputs, sum to the means of the latent functions.
#[derive(Debug, Args)]
pub struct Explain {
    #[command(flatten)]
    model: ModelArg,
    /// An image file, a folder of image files, or data as for train.
    #[arg(value_name = "IMAGE")]
    source: String,
    /// Index of the image, counted from 0.
    #[arg(long, value_name = "I", default_value_t = 0)]
    index: usize,
    /// Folder for tables and heat maps.
    #[arg(short, long, value_name = "DIR", default_value = "explanation")]
    output: PathBuf,
    /// Split of the data to use (default: test, else validation, else train).
    #[arg(long, value_enum)]
    split: Option<SplitName>,
    #[command(flatten)]
    data: DataArgs,
}

/// One latent function: a class, where every class has its own.
#[derive(Debug, Serialize)]
struct Latent {
    name: String,
    /// From the model as a whole; the contributions sum to it.
    mean: f64,
    variance: f64,
}

/// What one view contributes, by latent.
#[derive(Debug, Serialize)]
struct View<'a> {
    plane: &'a str,
    top: usize,
    left: usize,
    mean: &'a [f64],
    sd: &'a [f64],
}

/// One response of one component.
#[derive(Debug, Serialize)]
struct Response<'a> {
    component: &'a str,
    response: usize,
    /// Height, width and channels of a view.
    view: [usize; 3],
    views: Vec<View<'a>>,
    /// The same evidence by inducing input, then by latent.
    inducing: Vec<&'a [f64]>,
}

/// `explanation.json`.
#[derive(Debug, Serialize)]
struct Explanation<'a> {
    image: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    /// Class, or the mean of a real target.
    answer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    probabilities: Option<Vec<f64>>,
    latents: Vec<Latent>,
    responses: Vec<Response<'a>>,
}

/// Explains.
pub fn run(args: &Explain) -> Result<Exit> {
    let saved = read_model(&args.model)?;
    let inputs = Inputs::read(&saved, std::slice::from_ref(&args.source), &args.data, args.split)?;
    let count = inputs.images.count();
    if args.index >= count {
        return Err(input(format!(
            "{} has {count} images; --index goes from 0 to {}",
            args.source,
            count - 1
        )));
    }
    let image = inputs.images.select(&[args.index]).map_err(convgp::Error::from)?;
    let engine = Fused::<f64>::default();
    let predictor = saved.predictor(&engine)?;
    let explainer = Explainer::new(&predictor)?;
    let evidence = explainer.evidence(&image, 0)?;
    let view = ModelView::new(&explainer, &saved.class_names, &image, &[0], &mut Rng::new(0))?;
    let q = predictor.latents(&image)?;
    let latent =
        |(l, name): (usize, &String)| Latent { name: name.clone(), mean: q.mean[l], variance: q.var[l] };
    let (answer, probabilities) = answer_text(&saved, predictor.predict_from(&q));
    let explanation = Explanation {
        image: &inputs.names[args.index],
        label: inputs.labels.as_ref().map(|labels| labels[args.index].as_str()),
        answer,
        probabilities,
        latents: view.latent_names().iter().enumerate().map(latent).collect(),
        responses: evidence.parts.iter().map(|part| Response::new(part, evidence.latents())).collect(),
    };
    write_files(args, &explanation, &evidence, &view)?;
    explanation.tell(&evidence, &args.output)?;
    Ok(Exit::Done)
}

fn write_files(
    args: &Explain,
    explanation: &Explanation<'_>,
    evidence: &Evidence,
    view: &ModelView,
) -> Result<()> {
    let dir = &args.output;
    std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    let names = view.latent_names();
    write_atomically(&dir.join("contributions.csv"), &contributions(evidence, names).to_bytes(Format::Csv)?)?;
    write_atomically(&dir.join("inducing.csv"), &inducing(evidence, names).to_bytes(Format::Csv)?)?;
    write_atomically(&dir.join("explanation.json"), &serde_json::to_vec(explanation)?)?;
    Ok(view.write_evidence(dir)?)
}

/// Class and probabilities, or the mean of a real target.
fn answer_text(saved: &FittedModel, predictive: Predictive) -> (String, Option<Vec<f64>>) {
    match predictive {
        Predictive::Classes { probabilities, .. } => {
            (saved.answer(&probabilities).unwrap_or(UNKNOWN).into(), Some(probabilities))
        }
        Predictive::Real { mean, .. } => (mean[0].to_string(), None),
    }
}

impl<'a> Response<'a> {
    fn new(part: &'a Part, latents: usize) -> Self {
        let shape = part.layout.view;
        let rows = part.mean.chunks_exact(latents).zip(part.sd.chunks_exact(latents));
        let view = |(p, (mean, sd)): (usize, (&'a [f64], &'a [f64]))| {
            let (plane, top, left) = part.layout.place(p);
            View { plane: &part.layout.planes[plane], top, left, mean, sd }
        };
        Self {
            component: &part.component,
            response: part.response,
            view: [shape.height(), shape.width(), shape.channels()],
            views: rows.enumerate().map(view).collect(),
            inducing: part.inducing.chunks_exact(latents).collect(),
        }
    }
}

/// One row per view: where it lies, and its contribution to every latent with the standard deviation.
fn contributions(evidence: &Evidence, latent_names: &[String]) -> Table {
    let parts = &evidence.parts;
    let places: Vec<(&Part, usize)> =
        parts.iter().flat_map(|p| (0..p.layout.count()).map(move |v| (p, v))).collect();
    let mut table = Table::new("component", places.iter().map(|(p, _)| p.component.clone()).collect());
    table.numbers("response", places.iter().map(|(p, _)| p.response as f64).collect());
    let plane = |(p, v): &(&Part, usize)| p.layout.planes[p.layout.place(*v).0].clone();
    table.words("plane", places.iter().map(plane).collect());
    table.numbers("top", places.iter().map(|(p, v)| p.layout.place(*v).1 as f64).collect());
    table.numbers("left", places.iter().map(|(p, v)| p.layout.place(*v).2 as f64).collect());
    for (l, name) in latent_names.iter().enumerate() {
        let column = |of: fn(&Part) -> &[f64]| by_latent(parts, of, l, evidence.latents());
        table.numbers(&format!("mean_{name}"), column(|p| &p.mean));
        table.numbers(&format!("sd_{name}"), column(|p| &p.sd));
    }
    table
}

/// One row per inducing input of every response: its contribution to every latent.
fn inducing(evidence: &Evidence, latent_names: &[String]) -> Table {
    let (parts, latents) = (&evidence.parts, evidence.latents());
    let rows: Vec<(&Part, usize)> =
        parts.iter().flat_map(|p| (0..p.inducing.len() / latents).map(move |m| (p, m))).collect();
    let mut table = Table::new("component", rows.iter().map(|(p, _)| p.component.clone()).collect());
    table.numbers("response", rows.iter().map(|(p, _)| p.response as f64).collect());
    table.numbers("inducing", rows.iter().map(|(_, m)| *m as f64).collect());
    for (l, name) in latent_names.iter().enumerate() {
        table.numbers(&format!("mean_{name}"), by_latent(parts, |p| &p.inducing, l, latents));
    }
    table
}

/// Column `l` of all parts' row-major arrays, below each other.
fn by_latent(parts: &[Part], of: fn(&Part) -> &[f64], l: usize, latents: usize) -> Vec<f64> {
    parts.iter().flat_map(|part| of(part).iter().skip(l).step_by(latents).copied()).collect()
}

impl Explanation<'_> {
    /// The short version, for people.
    fn tell(&self, evidence: &Evidence, dir: &Path) -> Result<()> {
        let mut out = std::io::stdout().lock();
        let label = self.label.map_or(String::new(), |label| format!(", label {label}"));
        writeln!(out, "image {}{label}: answer {}\n", self.image, self.answer)?;
        let mut order: Vec<usize> = (0..self.latents.len()).collect();
        order.sort_by(|a, b| self.latents[*b].mean.total_cmp(&self.latents[*a].mean));
        let width = self.latents.iter().map(|l| l.name.len()).max().unwrap_or(0).max(8);
        writeln!(
            out,
            "{:width$}  {:>10}  {:>10}  carried by (inducing input: part of the mean)",
            "latent", "mean", "sd"
        )?;
        for l in order {
            let Latent { name, mean, variance } = &self.latents[l];
            let part = |p: &Part| {
                let carriers = p.carriers(l, CARRIERS).into_iter().map(|(m, v)| format!("{m}: {v:.3}"));
                format!("{} {}", p.component, carriers.collect::<Vec<_>>().join(", "))
            };
            let carriers = evidence.parts.iter().map(part).collect::<Vec<_>>().join("; ");
            writeln!(out, "{name:width$}  {mean:>10.4}  {:>10.4}  {carriers}", variance.sqrt())?;
        }
        writeln!(out, "\ntables and heat maps: {}", dir.display())?;
        Ok(())
    }
}
