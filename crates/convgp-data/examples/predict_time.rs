//! Time of predicting rectangles with a model file: what `python/bench/predict.py` holds Python against.
//!
//! `cargo run --release -p convgp-data --example predict_time -- MODEL COUNT ROUNDS` prints seconds, one line per round.

use convgp::cov::Fused;
use std::io::Write;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, count, rounds] = arguments.as_slice() else {
        return Err("usage: predict_time MODEL COUNT ROUNDS".into());
    };
    let saved = convgp::FittedModel::load(model.as_ref())?;
    let data = convgp_data::generate::rectangles(count.parse()?, 1);
    let mut out = std::io::stdout().lock();
    for _ in 0..rounds.parse()? {
        let started = Instant::now();
        let engine = Fused::<f32>::default();
        let predictor = saved.predictor(&engine)?;
        std::hint::black_box(predictor.predict(data.images())?);
        writeln!(out, "{}", started.elapsed().as_secs_f64())?;
    }
    Ok(())
}
