//! A run that was stopped and resumed ends with the same bytes as one that was not.

use crate::common::Desk;
use std::time::{SystemTime, UNIX_EPOCH};

const STEPS: u64 = 14;
const RUN: &str =
    "train sample --limit 80 -m 15 --batch 16 --validation 0.2 --evaluate-every 4 --steps 14 -q --no-report";

/// A step to stop at that is another one next time; the assertions name it.
fn random_step() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    1 + u64::from(now.subsec_micros()) % (STEPS - 1)
}

#[test]
fn to_the_byte_for_any_optimiser_and_number_of_threads() {
    for q in ["natural", "adam"] {
        let desk = Desk::new();
        let run = format!("{RUN} --set train.q={q}");
        let (one, other) = (random_step(), STEPS / 2);
        desk.ok(&format!("{run} --threads 1 --name whole"));
        for (i, (threads, stop)) in [(1, one), (2, one), (2, other)].iter().enumerate() {
            let paused = desk.ok(&format!("{run} --threads {threads} --stop-after {stop}"));
            let n = i + 2;
            let folder = desk.run_folder(n);
            let words = format!("--resume {}", folder.strip_prefix(desk.path("")).unwrap().display());
            assert!(paused.out.contains(&words), "{}", paused.out);
            let same = desk.run_file(1, "model.safetensors") == desk.run_file(n, "model.safetensors");
            assert!(!same, "{q}, {threads} threads, stopped at {stop}: not yet trained");
            desk.ok(&format!("train --resume {} --threads {} -q --no-report", folder.display(), 3 - threads));
            for file in ["model.safetensors", "best.safetensors"] {
                let same = desk.run_file(1, file) == desk.run_file(n, file);
                assert!(same, "{q}, {threads} threads, stopped at {stop}: {file} differs");
            }
        }
    }
}

#[test]
fn twice_interrupted_runs_have_one_row_per_evaluation() {
    let desk = Desk::new();
    desk.ok(&format!("{RUN} --name whole"));
    desk.ok(&format!("{RUN} --stop-after 5"));
    let folder = desk.run_folder(2);
    desk.ok(&format!("train --resume {} --stop-after 6 -q", folder.display()));
    desk.ok(&format!("train --resume {} -q --no-report", folder.display()));
    assert_eq!(desk.run_file(1, "model.safetensors"), desk.run_file(2, "model.safetensors"));
    let steps = |n| {
        let text = String::from_utf8(desk.run_file(n, "results.csv")).unwrap();
        let column =
            |i: usize| text.lines().map(|l| l.split(',').nth(i).unwrap().to_string()).collect::<Vec<_>>();
        [column(0), column(6), column(7), column(8)].concat()
    };
    assert_eq!(steps(1), steps(2), "steps, held-out figures and step sizes");
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let desk = Desk::new();
    desk.ok(&format!("{RUN} --stop-after 3 --name a"));
    let run = "runs/0001-a";
    desk.fails(&format!("train digits --resume {run}"), 3, &["digits", "no such file"]);
    desk.fails(&format!("train rectangles --resume {run}"), 3, &["does not hold the images"]);
    desk.fails(&format!("train --resume {run} -m 3"), 2, &["--resume", "--inducing"]);
    desk.fails("train --resume nowhere", 3, &["nowhere", "run.json"]);
    let spec = desk.path(run).join("spec.toml");
    let text = std::fs::read_to_string(&spec).unwrap();
    std::fs::write(&spec, text.replace("batch_size = 16", "batch_size = 17")).unwrap();
    desk.fails(&format!("train --resume {run}"), 3, &["spec.toml", "began with"]);
    std::fs::write(&spec, text).unwrap();
    let checkpoint = desk.path(run).join("checkpoint.safetensors");
    let bytes = std::fs::read(&checkpoint).unwrap();
    std::fs::write(&checkpoint, &bytes[..bytes.len() / 2]).unwrap();
    desk.fails(&format!("train --resume {run}"), 3, &["checkpoint.safetensors"]);
    std::fs::write(&checkpoint, bytes).unwrap();
    desk.ok(&format!("train --resume {run} -q --no-report"));
    desk.fails(&format!("train --resume {run}"), 2, &["finished (14 steps", "--steps"]);
    let longer = desk.ok(&format!("train --resume {run} --steps 16 -q --no-report"));
    assert!(longer.out.starts_with("16 steps"), "{}", longer.out);
}
