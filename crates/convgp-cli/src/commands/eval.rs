//! `convgp eval`: accuracy, calibration and out-of-distribution detection of a model.

use crate::args::data::DataArgs;
use crate::args::model::{ModelArg, SplitName};
use crate::support::exit::Exit;
use crate::support::inputs::out_of_distribution_images;
use crate::support::metrics_table::write_table;
use crate::support::models::{data_for, read_model};
use anyhow::Result;
use clap::Args;
use convgp::FittedModel;
use convgp::cov::Fused;
use convgp::data::Images;
use convgp::fitted::AnswerRule;
use convgp::inspect::uncertainty;
use convgp::metrics::{Classified, Metrics, Separation, Summary};
use convgp::rng::Rng;
use convgp_report::Outliers;
use serde::Serialize;
use std::io::Write;

/// Seed of intervals and of the draws behind mutual information.
const SEED: u64 = 0;
/// Draws behind mutual information.
const DRAWS: usize = 100;

/// Measure error, calibration and out-of-distribution detection of a model.
///
/// Prints the error, NLPP (the negative log predictive probability), Brier score, calibration error and the risk at several
/// coverages.
#[derive(Debug, Args)]
pub struct Eval {
    #[command(flatten)]
    model: ModelArg,
    /// A file, a folder, or a name such as mnist.
    source: String,
    /// Split of the data to use (default: test, else validation, else train).
    #[arg(long, value_enum)]
    split: Option<SplitName>,
    /// Out-of-distribution images to detect by the model's uncertainty: data, a folder of image files, or `noise` or
    /// `blank`, which are generated. May be repeated.
    #[arg(long, value_name = "DATA2")]
    out_of_distribution: Vec<String>,
    #[command(flatten)]
    data: DataArgs,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

/// Everything that is found.
#[derive(Debug, Serialize)]
struct Verdict {
    #[serde(flatten)]
    merit: Merit,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered: Option<Answered>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    out_of_distribution: Vec<OutOfDistribution>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Merit {
    Classes(Summary),
    Real(Metrics),
}

/// What a calibrated model does with the images.
#[derive(Debug, Serialize)]
struct Answered {
    threshold: f64,
    coverage: f64,
    /// Error among the answers, if there are any.
    error: Option<f64>,
}

/// How well one score tells one kind of out-of-distribution images.
#[derive(Debug, Serialize)]
struct OutOfDistribution {
    data: String,
    images: usize,
    score: &'static str,
    #[serde(flatten)]
    separation: Separation,
}

/// Evaluates.
pub fn run(args: &Eval) -> Result<Exit> {
    let saved = read_model(&args.model)?;
    let data = data_for(&saved, &args.source, &args.data, args.split)?;
    let evaluation = saved.evaluate(&args.source, data)?;
    let classified = evaluation.classified()?;
    let merit = match &classified {
        Some(c) => {
            let summary = Summary::new(c, SEED).map_err(convgp::Error::from)?;
            // The likelihood's own log density is exact where a probability has been rounded to nothing.
            Merit::Classes(Summary { nlpp: evaluation.metrics.nlpp, ..summary })
        }
        None => Merit::Real(evaluation.metrics),
    };
    let verdict = Verdict {
        merit,
        answered: classified.and_then(|c| saved.answer_rule.map(|rule| Answered::new(&rule, &c))),
        out_of_distribution: compare_out_of_distribution(args, &saved, evaluation.data.images())?,
    };
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string(&verdict)?)?,
        false => {
            write_table(&mut out, &[(args.source.clone(), evaluation.metrics)])?;
            verdict.write(&mut out)?;
        }
    }
    Ok(Exit::Done)
}

/// Compares with every out-of-distribution set asked for.
fn compare_out_of_distribution(
    args: &Eval,
    saved: &FittedModel,
    ordinary: &Images,
) -> Result<Vec<OutOfDistribution>> {
    if args.out_of_distribution.is_empty() {
        return Ok(Vec::new());
    }
    let engine = Fused::<f32>::default();
    let predictor = saved.predictor(&engine)?;
    let score = |images: &Images| uncertainty(&predictor, images, DRAWS, &mut Rng::new(SEED));
    let usual = score(ordinary)?;
    // Classes and columns are those of the first data set.
    let data =
        DataArgs { data_dir: args.data.data_dir.clone(), limit: args.data.limit, ..Default::default() };
    let mut rows = Vec::new();
    for source in &args.out_of_distribution {
        let images = out_of_distribution_images(saved, source, &data, ordinary.count())?;
        let outliers = Outliers::new(source, &usual, &score(&images)?)?;
        rows.extend(outliers.rows.into_iter().map(|(score, separation)| OutOfDistribution {
            data: source.clone(),
            images: images.count(),
            score: score.name(),
            separation,
        }));
    }
    Ok(rows)
}

impl Answered {
    fn new(rule: &AnswerRule, c: &Classified<'_>) -> Self {
        let correct = c.correct();
        let answered: Vec<bool> =
            (0..c.len()).filter(|&n| rule.threshold.answers(c.row(n))).map(|n| correct[n]).collect();
        let wrong = answered.iter().filter(|right| !**right).count();
        Self {
            threshold: rule.threshold.threshold,
            coverage: answered.len() as f64 / c.len() as f64,
            error: (!answered.is_empty()).then(|| wrong as f64 / answered.len() as f64),
        }
    }
}

impl Verdict {
    /// What the first table does not say.
    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        if let Merit::Classes(summary) = &self.merit {
            writeln!(out)?;
            // Error and NLPP are in the first table.
            for [name, value, remark] in &summary.rows()[2..] {
                writeln!(out, "{name:24}  {value:>8}  {remark}")?;
            }
        }
        if let Some(a) = &self.answered {
            let share = format!("{:.2} %", 100.0 * a.coverage);
            let error =
                a.error.map_or(String::new(), |e| format!("; {:.2} % of the answers wrong", 100.0 * e));
            writeln!(out, "{:24}  {share:>8}  from {:.4} on{error}", "answered", a.threshold)?;
        }
        let width = self.out_of_distribution.iter().map(|s| s.data.len()).max().unwrap_or(0).max(10);
        for (i, s) in self.out_of_distribution.iter().enumerate() {
            if i == 0 {
                let (score, at_95) = ("score", "FPR at 95 %");
                writeln!(
                    out,
                    "\n{:width$}  {:>8}  {score:20}  {:>6}  {:>6}  {at_95}",
                    "against", "images", "AUROC", "AUPR"
                )?;
            }
            let Separation { auroc, aupr, fpr_at_95 } = s.separation;
            writeln!(
                out,
                "{:width$}  {:>8}  {:20}  {auroc:>6.4}  {aupr:>6.4}  {fpr_at_95:>11.4}",
                s.data, s.images, s.score
            )?;
        }
        Ok(())
    }
}
