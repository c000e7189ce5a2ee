//! What a report holds, without a browser.

use convgp::cov::Reference;
use convgp::data::{ImageShape, Images, Pixels};
use convgp::inspect::Explainer;
use convgp::model::Predictor;
use convgp::rng::Rng;
use convgp::{Model, ModelSpec};
use convgp_report::{CurvePoint, Evaluation, ModelView, Report, ReportError, RunCurves};

const NASTY: &str = "</text><script>alert('x')</script>\"&";

fn noise(shape: ImageShape, count: usize) -> Images {
    let mut rng = Rng::new(3);
    Images::new(shape, Pixels::F64((0..count * shape.len()).map(|_| rng.uniform()).collect())).unwrap()
}

fn names() -> Vec<String> {
    vec![NASTY.into(), "a".into(), "b".into()]
}

fn run(name: &str) -> RunCurves {
    let point = |i: u32| CurvePoint {
        step: u64::from(i) * 10,
        seconds: f64::from(i) * 0.5,
        bound: Some(-100.0 / f64::from(i)),
        error: Some(1.0 / f64::from(i + 1)),
        rmse: None,
        nlpp: i.is_multiple_of(2).then_some(0.3),
    };
    RunCurves { name: name.into(), points: (1..20).map(point).collect() }
}

fn evaluation() -> Evaluation {
    let mut rng = Rng::new(1);
    let row = |rng: &mut Rng| {
        let raw = [rng.uniform(), rng.uniform(), rng.uniform()];
        raw.map(|r| r / raw.iter().sum::<f64>())
    };
    let probabilities = (0..30).flat_map(|_| row(&mut rng)).collect();
    let labels = (0..30).map(|n| n % 3).collect();
    Evaluation::new(probabilities, labels, names(), noise(ImageShape::new(7, 5, 3).unwrap(), 30)).unwrap()
}

/// A model with several kinds of components at its initial parameters, looked into with images of 7 x 5 in colour.
fn inside(likelihood: &str, class_names: &[String]) -> ModelView {
    views(likelihood, class_names).0
}

/// The same with images, and without.
fn views(likelihood: &str, class_names: &[String]) -> (ModelView, ModelView) {
    let text = format!(
        "image = {{ height = 7, width = 5, channels = 3 }}\nlikelihood = {likelihood}\n\
         [[components]]\nname = 'each'\nviews = {{ type = 'patches', patch = [3, 2], channels = 'each' }}\n\
         weights = 'learned'\nkernel = {{ type = 'rbf' }}\ninducing = {{ count = 40 }}\n\
         [[components]]\nname = 'flips'\nviews = {{ type = 'patches', patch = 4, orbit = ['flip-horizontal'] }}\n\
         weights = 'learned'\nkernel = {{ type = 'rbf' }}\ninducing = {{ count = 5 }}\n\
         [[components]]\nname = '{}'\nviews = {{ type = 'image' }}\nkernel = {{ type = 'rbf' }}\ninducing = {{ count = 4 }}",
        "<i>"
    );
    let images = noise(ImageShape::new(7, 5, 3).unwrap(), 20);
    let spec = ModelSpec::from_toml(&text).unwrap();
    let (model, values) = Model::new(&spec, Some(&images), &mut Rng::new(0)).unwrap();
    let predictor = Predictor::new(&model, &Reference, &values).unwrap();
    let explainer = Explainer::new(&predictor).unwrap();
    (
        ModelView::new(&explainer, class_names, &images, &[2], &mut Rng::new(1)).unwrap(),
        ModelView::without_images(&explainer, class_names).unwrap(),
    )
}

fn full() -> Report {
    Report::new(NASTY)
        .fact("run", NASTY)
        .run(run("first"))
        .run(run(NASTY))
        .evaluation(evaluation())
        .model(inside("{ type = 'softmax', classes = 3 }", &names()))
}

fn figures(page: &str) -> Vec<&str> {
    page.split(" data-figure=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

#[test]
fn a_full_report_shows_every_figure_once_and_names_no_address() {
    let page = full().html().unwrap();
    let expected = [
        "error-time",
        "error-steps",
        "nlpp-time",
        "nlpp-steps",
        "bound-time",
        "bound-steps",
        "reliability",
        "risk-coverage",
        "entropy",
        "confusion",
        "uncertain",
        "mistakes",
        "evidence-0",
        "inducing-0",
        "inducing-1",
        "inducing-2",
        "inducing-3",
        "inducing-4",
        "weights-0",
        "weights-1",
        "weights-2",
        "weights-3",
        "components",
        "prior",
    ];
    assert_eq!(figures(&page), expected);
    assert_eq!(page.matches("<svg ").count(), expected.len());
    assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("src=\"//"));
    assert_eq!(page.matches("<script").count(), 1, "only the page's own");
    assert!(page.contains("&lt;i&gt;") && !page.contains("<i>"));
}

#[test]
fn equal_reports_are_equal_files_and_every_figure_is_written_twice() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    full().write(&a.path().join("new/folder")).unwrap();
    full().write(b.path()).unwrap();
    let (a, b) = (a.path().join("new/folder"), b.path());
    let page = std::fs::read_to_string(a.join("report.html")).unwrap();
    assert_eq!(page, std::fs::read_to_string(b.join("report.html")).unwrap());
    for figure in figures(&page) {
        let svg = std::fs::read_to_string(a.join(format!("figures/{figure}.svg"))).unwrap();
        assert!(svg.starts_with("<svg ") && svg.contains("xmlns=") && svg.contains("fill=\"#FFFFFF\""));
        let png = std::fs::read(a.join(format!("figures/{figure}.png"))).unwrap();
        let picture = image::load_from_memory(&png).unwrap().to_rgb8();
        assert!(picture.pixels().any(|p| p.0 != [255; 3]), "{figure} is empty");
        if ["uncertain", "evidence-0", "weights-0", "prior"].contains(&figure) {
            let coloured = picture.pixels().filter(|p| p.0[0].abs_diff(p.0[2]) > 60).count();
            assert!(coloured > 1000, "{figure} lacks its pictures");
        }
    }
    assert_eq!(std::fs::read_dir(a.join("figures")).unwrap().count(), 2 * figures(&page).len());
}

#[test]
fn what_is_missing_leaves_its_figures_out() {
    assert!(figures(&Report::new("nothing").html().unwrap()).is_empty());
    let page = Report::new("curves").run(run("one")).html().unwrap();
    assert_eq!(figures(&page).len(), 6);
    let empty = RunCurves { name: "no rows".into(), points: Vec::new() };
    assert!(figures(&Report::new("empty run").run(empty).html().unwrap()).is_empty());
    let (whole, bare) = views("{ type = 'softmax', classes = 3 }", &names());
    let page = |view| Report::new("model").model(view).html().unwrap();
    let (whole, bare) = (page(whole), page(bare));
    let of_images = |f: &&str| ["evidence-0", "components", "prior"].contains(f);
    let rest: Vec<&str> = figures(&whole).into_iter().filter(|f| !of_images(f)).collect();
    assert_eq!(figures(&bare), rest, "without images");
}

#[test]
fn a_regression_model_can_be_looked_into() {
    let page = Report::new("regression").model(inside("{ type = 'gaussian' }", &[])).html().unwrap();
    assert!(figures(&page).contains(&"evidence-0") && page.contains("latent 0"));
    let curves = run("a regression").of_regression();
    let page = Report::new("regression").run(curves).html().unwrap();
    assert!(figures(&page).contains(&"rmse-time") && !figures(&page).contains(&"error-time"));
    assert!(page.contains("root mean square error") && !page.contains("error, %"));
}

#[test]
fn evidence_of_all_latents_is_written_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let five: Vec<String> = (0..5).map(|i| format!("class {i}")).collect();
    let view = inside("{ type = 'softmax', classes = 5 }", &five);
    view.write_evidence(dir.path()).unwrap();
    assert_eq!(view.latent_names(), five);
    let text = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let both = text("evidence-0.svg") + &text("evidence-1.svg");
    for class in &five {
        // As the heading of a map, and of the inducing inputs of every response.
        assert_eq!(both.matches(class).count(), 1 + 5, "{class}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 4);
}

#[test]
fn mistakes_are_named() {
    let shape = ImageShape::new(7, 5, 3).unwrap();
    let new = |labels: Vec<u32>, classes: usize, images| {
        Evaluation::new(vec![0.5; 4], labels, vec!["c".into(); classes], noise(shape, images)).unwrap_err()
    };
    assert!(matches!(new(vec![0, 1], 2, 3), ReportError::ImageCount { images: 3, found: 2 }));
    assert!(matches!(new(vec![0], 2, 2), ReportError::Metrics(_)));
    assert!(matches!(new(vec![0, 1], 3, 2), ReportError::Metrics(_)));
    let file = tempfile::NamedTempFile::new().unwrap();
    let err = Report::new("x").write(&file.path().join("inside")).unwrap_err().to_string();
    assert!(err.contains("inside"), "{err}");
}
