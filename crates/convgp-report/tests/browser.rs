//! Opens reports in a headless browser: every figure must be drawn, nothing fetched, nothing stick out, wide and narrow.
//!
//! Needs Chromium, on the path or named by `CONVGP_CHROMIUM` (`apt-get install chromium`), hence
//! `cargo test --workspace --test browser -- --ignored`, which `cargo xtask test` runs where it can. With `CONVGP_SCREENSHOTS` set, reports and pictures of them are left in that directory.

#[path = "../examples/digits_report.rs"]
mod example;

use convgp::data::{Dataset, ImageShape, Images, Pixels, Targets};
use convgp::rng::Rng;
use convgp::train::TrainSpec;
use convgp_data::generate::rectangles;
use convgp_report::Report;
use std::path::{Path, PathBuf};
use std::process::Command;

const RECTANGLES: &str = "
    image = { height = 28, width = 28 }
    likelihood = { type = 'probit' }
    [[components]]
    name = 'conv'
    views = { type = 'patches', patch = 3 }
    weights = 'learned'
    kernel = { type = 'rbf', lengthscale = 2.0 }
    inducing = { count = 16 }
";
const COLOUR: &str = "
    image = { height = 14, width = 14, channels = 3 }
    likelihood = { type = 'softmax', classes = 4 }
    [[components]]
    name = 'each'
    views = { type = 'patches', patch = 5, channels = 'each' }
    weights = 'learned'
    normalise = true
    kernel = { type = 'rbf', variance = 10.0 }
    inducing = { count = 30 }
    [[components]]
    name = 'all'
    views = { type = 'patches', patch = 5, channels = 'all', stride = 3 }
    weights = 'learned'
    normalise = true
    kernel = { type = 'rbf', variance = 10.0 }
    inducing = { count = 30 }
";
const DIGITS: &str = "
    image = { height = 28, width = 28 }
    likelihood = { type = 'robust-max', classes = 10 }
    [[components]]
    name = 'conv'
    views = { type = 'patches', patch = 5 }
    weights = 'learned'
    normalise = true
    kernel = { type = 'rbf', variance = 50.0 }
    inducing = { count = 60 }
    [[components]]
    name = 'rbf'
    views = { type = 'image' }
    kernel = { type = 'rbf' }
    inducing = { count = 30 }
";

fn chromium() -> PathBuf {
    let browser = std::env::var_os("CONVGP_CHROMIUM").map_or("chromium".into(), PathBuf::from);
    let runs = Command::new(&browser).arg("--version").output().is_ok_and(|o| o.status.success());
    assert!(runs, "Chromium is needed: `apt-get install chromium`, or set CONVGP_CHROMIUM to its path");
    browser
}

/// Runs the browser on a file and returns the page as it stands after its scripts ran.
fn open(browser: &Path, file: &Path, width: u32, screenshot: &Path) -> String {
    let profile = tempfile::tempdir().unwrap();
    let common = [
        "--headless=new".to_owned(),
        "--no-sandbox".into(),
        "--disable-gpu".into(),
        "--hide-scrollbars".into(),
        "--virtual-time-budget=10000".into(),
        format!("--user-data-dir={}", profile.path().display()),
        format!("--window-size={width},{}", if width > 600 { 3600 } else { 9000 }),
    ];
    let address = format!("file://{}", file.display());
    let run = |extra: String| {
        let out = Command::new(browser).args(&common).arg(extra).arg(&address).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    run(format!("--screenshot={}", screenshot.display()));
    assert!(screenshot.exists(), "no screenshot");
    run("--dump-dom".into())
}

/// Values of an attribute wherever it occurs.
fn attribute<'a>(dom: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!(" {name}=\"");
    dom.split(&start).skip(1).map(|rest| rest.split('"').next().unwrap_or_default()).collect()
}

fn check(name: &str, report: &Report, figures: &[&str]) {
    let browser = chromium();
    let scratch = tempfile::tempdir().unwrap();
    let kept = std::env::var_os("CONVGP_SCREENSHOTS").map(PathBuf::from);
    let dir = kept.unwrap_or_else(|| scratch.path().to_owned()).join(name);
    report.write(&dir).unwrap();
    let page = std::fs::canonicalize(dir.join("report.html")).unwrap();
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(!text.contains("http:") && !text.contains("https:"), "the page names an address");
    for width in [1200, 390] {
        let dom = open(&browser, &page, width, &dir.join(format!("{width}.png")));
        let drawn = attribute(&dom, "data-figure");
        for figure in figures {
            assert!(drawn.contains(figure), "{name}: {figure} is missing from {drawn:?}");
        }
        assert_eq!(
            attribute(&dom, "data-rendered"),
            vec!["true"; drawn.len()],
            "{name} at {width}: {drawn:?}"
        );
        assert_eq!(attribute(&dom, "data-fetched"), ["0"], "{name} at {width}: something was fetched");
        assert_eq!(attribute(&dom, "data-overflow"), ["false"], "{name} at {width}: something sticks out");
        for figure in &drawn {
            for ending in ["svg", "png"] {
                let file = dir.join("figures").join(format!("{figure}.{ending}"));
                assert!(std::fs::metadata(&file).is_ok_and(|m| m.len() > 500), "{}", file.display());
            }
        }
    }
}

const EVERYWHERE: [&str; 11] = [
    "error-time",
    "error-steps",
    "nlpp-time",
    "bound-time",
    "reliability",
    "risk-coverage",
    "entropy",
    "confusion",
    "uncertain",
    "evidence-0",
    "inducing-0",
];

#[test]
#[ignore = "needs Chromium"]
fn rectangles_report_opens() {
    let plan = TrainSpec { steps: 400, batch_size: 100, ..TrainSpec::default() };
    let (train, test) = (rectangles(1200, 0), rectangles(1000, 1 << 32));
    let report = example::report("Rectangles <3x3> & more", RECTANGLES, &plan, &train, &test).unwrap();
    check("rectangles", &report, &[&EVERYWHERE[..], &["weights-0", "prior"]].concat());
}

#[test]
#[ignore = "needs Chromium"]
fn digits_report_opens() {
    let plan = TrainSpec { steps: 100, batch_size: 100, ..TrainSpec::default() };
    let (train, test) = convgp_data::sample::mnist();
    let report = example::report("Digits", DIGITS, &plan, &train, &test).unwrap();
    let more = ["mistakes", "inducing-1", "weights-0", "components", "prior"];
    check("digits", &report, &[&EVERYWHERE[..], &more].concat());
}

#[test]
#[ignore = "needs Chromium"]
fn colour_report_opens() {
    let plan = TrainSpec { steps: 60, batch_size: 100, ..TrainSpec::default() };
    let report = example::report("Colours", COLOUR, &plan, &blobs(400, 1), &blobs(200, 2)).unwrap();
    let more = ["inducing-3", "weights-0", "weights-2", "weights-3", "components", "prior", "evidence-1"];
    check("colour", &report, &[&EVERYWHERE[..], &more].concat());
}

/// Noisy squares in four colours, one class each.
fn blobs(count: usize, seed: u64) -> Dataset {
    const SIDE: usize = 14;
    const TINTS: [[f64; 3]; 4] = [[0.9, 0.2, 0.2], [0.2, 0.8, 0.3], [0.2, 0.3, 0.9], [0.9, 0.8, 0.2]];
    let mut rng = Rng::new(seed);
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (class, top, left) = (rng.below(4), rng.below(SIDE - 6), rng.below(SIDE - 6));
        for i in 0..SIDE * SIDE {
            let inside = (top..top + 6).contains(&(i / SIDE)) && (left..left + 6).contains(&(i % SIDE));
            let tint = if inside { TINTS[class] } else { [0.4; 3] };
            pixels.extend(tint.map(|t| (t + 0.3 * rng.normal()).clamp(0.0, 1.0)));
        }
        labels.push(class as u32);
    }
    let images = Images::new(ImageShape::new(SIDE, SIDE, 3).unwrap(), Pixels::F64(pixels)).unwrap();
    let names = ["red", "green", "blue", "a yellow with a long name"].map(String::from).to_vec();
    Dataset::new(images, Targets::classes(labels, 4).unwrap()).unwrap().with_class_names(names).unwrap()
}
