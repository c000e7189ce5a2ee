//! Reports of runs, written by train and afterwards.

use crate::common::{Desk, lines};
use convgp_data::{sample, write};
use std::path::Path;

const RUN: &str = "--steps 12 -m 12 --batch 30 --limit 80 --validation 0.25 --evaluate-every 3 -q";

fn page(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("report.html")).unwrap()
}

fn has(page: &str, figure: &str) -> bool {
    page.contains(&format!("data-figure=\"{figure}\""))
}

#[test]
fn train_writes_it_and_report_compares_runs_and_misses_data_calmly() {
    let desk = Desk::new();
    desk.idx_folder("digits");
    let ran = desk.ok(&format!("train digits {RUN} --name one --model weighted"));
    assert!(ran.out.contains("report: runs/0001-one/report/report.html"), "{}", ran.out);
    let events = lines(&String::from_utf8(desk.run_file(1, "events.jsonl")).unwrap());
    let told = events.iter().find(|e| e["event"] == "report").unwrap();
    assert_eq!(told["page"], "runs/0001-one/report/report.html");
    let first = page(&desk.path("runs/0001-one/report"));
    for figure in
        ["error-time", "nlpp-steps", "bound-time", "reliability", "confusion", "evidence-0", "weights-0"]
    {
        assert!(has(&first, figure), "{figure}");
        for ending in ["svg", "png"] {
            assert!(
                desk.path(&format!("runs/0001-one/report/figures/{figure}.{ending}")).is_file(),
                "{figure}"
            );
        }
    }
    assert!(first.contains("80 images: test") && !first.contains("https:"));
    // Written afterwards from the folder alone, it is the same page.
    desk.ok("report runs/0001-one -o again");
    assert_eq!(first, page(&desk.path("again")));

    desk.ok(&format!("train digits {RUN} --name two --model rbf --no-report"));
    assert!(!desk.path("runs/0002-two/report").exists());
    desk.ok("report runs/0001-one runs/0002-two -o both");
    let both = page(&desk.path("both"));
    let curve = std::fs::read_to_string(desk.path("both/figures/nlpp-time.svg")).unwrap();
    assert!(curve.contains("0001-one") && curve.contains("0002-two") && has(&both, "reliability"));

    desk.ok("report runs/0001-one --on sample --best -o other");
    assert!(page(&desk.path("other")).contains("100 images: sample"));
    std::fs::remove_dir_all(desk.path("digits")).unwrap();
    let ran = desk.ok("report runs/0001-one -o bare");
    assert!(
        ran.err.contains("note:") && ran.err.contains("digits") && ran.err.contains("--on"),
        "{}",
        ran.err
    );
    let bare = page(&desk.path("bare"));
    assert!(has(&bare, "inducing-0") && has(&bare, "error-time") && !has(&bare, "reliability"));
    desk.fails("report nowhere", 3, &["nowhere", "run.json"]);
    desk.fails("report runs/0001-one --on nowhere", 3, &["nowhere"]);
}

#[test]
fn regression_has_curves_of_its_own() {
    let desk = Desk::new();
    let (train, _) = sample::mnist();
    write::csv(&desk.path("digits.csv"), &train).unwrap();
    desk.ok(&format!("train digits.csv --targets real {RUN} --name real"));
    let real = page(&desk.path("runs/0001-real/report"));
    assert!(has(&real, "rmse-time") && has(&real, "evidence-0") && real.contains("root mean square error"));
    for figure in ["error-time", "reliability", "confusion", "uncertain"] {
        assert!(!has(&real, figure), "{figure}");
    }
    desk.ok(&format!("train digits.csv --targets classes {RUN} --name classes --no-report"));
    desk.fails("report runs/0001-real runs/0002-classes", 2, &["0001-real", "regression"]);
    desk.fails("calibrate runs/0001-real digits.csv --targets real --risk 0.1", 3, &["real numbers"]);
}

#[test]
fn a_report_that_fails_leaves_the_model() {
    let desk = Desk::new();
    desk.ok(&format!("train sample {RUN} --name a --stop-after 3"));
    std::fs::write(desk.path("runs/0001-a/report"), "in the way").unwrap();
    let ran = desk.ok("train --resume runs/0001-a -q");
    assert!(ran.err.contains("no report") && !ran.out.contains("report.html"), "{}", ran.err);
    let events = lines(&String::from_utf8(desk.run_file(1, "events.jsonl")).unwrap());
    assert_eq!(
        (&events.last().unwrap()["event"], &events.last().unwrap()["ending"]),
        (&"end".into(), &"finished".into())
    );
    desk.ok("eval runs/0001-a sample");
}
