//! Wrong wishes end with a code and a sentence; small commands do what they say.

use crate::common::{Desk, lines};

const TINY: &str = "--limit 30 -m 5 --batch 10 --steps 2 -q --no-report";

#[test]
fn fields_are_set_and_mistakes_named() {
    let desk = Desk::new();
    desk.ok(&format!(
        "train sample {TINY} --set model.components.0.kernel.lengthscale=2.5 --set train.adam.rate=1e-3"
    ));
    let spec = String::from_utf8(desk.run_file(1, "spec.toml")).unwrap();
    assert!(spec.contains("lengthscale = 2.5") && spec.contains("rate = 0.001"), "{spec}");
    desk.fails(
        "train sample --set model.components.0.kernel.lenghtscale=2",
        2,
        &["lenghtscale", "`lengthscale`"],
    );
    desk.fails("train sample --set train.natural.gamma=3", 3, &["natural.gamma", "at most 1"]);
    desk.fails("train sample --set model.components.3.white=1", 2, &["list of 1"]);
    desk.fails("train sample --model weigthed", 2, &["weighted"]);
    desk.fails("train sample --model multi-channel", 2, &["one channel"]);
    desk.fails("train sample --spec nothing", 2, &["nothing", "mnist-weighted"]);
    desk.fails("train sample --batch 0", 2, &["--batch", "at least 1"]);
    desk.fails("train sample -m 0", 2, &["--inducing", "at least 1"]);
    desk.fails("train sample --limit 0", 2, &["--limit", "at least 1"]);
    desk.fails("train sample --patch 40x40", 2, &["--patch", "40 x 40", "28x28x1"]);
    for fraction in ["10", "0", "1", "nan"] {
        desk.fails(&format!("train sample --validation {fraction}"), 2, &["--validation", "between 0 and 1"]);
    }
    desk.fails("train sample --spec nothing.toml", 3, &["nothing.toml", "mnist-weighted"]);
    desk.fails("train sample --spec cifar-weighted", 3, &["28x28x1", "32x32x3"]);
    desk.fails("train sample --spec rectangles-weighted", 3, &["2 classes", "10 classes"]);
    desk.fails("train sample --time 0s", 2, &["0s"]);
    desk.fails("train nowhere", 3, &["nowhere", "mnist"]);
    desk.fails("train", 2, &["SOURCE"]);
    assert_eq!(std::fs::read_dir(desk.path("runs")).unwrap().count(), 1, "failures leave no run folders");
}

#[test]
fn what_does_not_fit_is_refused_with_settings_that_do() {
    let desk = Desk::new();
    // A model that is trained in steps, and one that is solved.
    for (model, m, memory, speed) in [
        ("--model located", 300, "50M", "seconds_per_step"),
        ("--limit 300", 4000, "600M", "seconds_per_image"),
    ] {
        let refused = desk.run(&format!("plan sample {model} -m {m} --memory {memory} --timed-steps 0"));
        assert_eq!(refused.code, 4, "{}", refused.err);
        let advice = refused.err.split("-m ").nth(1).and_then(|t| t.split(' ').next()).unwrap();
        desk.ok(&format!("plan sample {model} -m {advice} --memory {memory} --timed-steps 0"));
        desk.fails(&format!("train sample {model} -m {m} --memory {memory}"), 4, &["would fit"]);
        assert!(!desk.path("runs").exists());
        let plan = desk.ok(&format!("plan sample {model} -m 20 --json"));
        assert!(lines(&plan.out)[0][speed].as_f64().unwrap() > 0.0);
    }
    desk.fails("plan sample --model located -m 10000000 --memory 300M", 4, &["would fit (now 10000000)"]);
}

#[test]
fn json_lines_tell_the_whole_story() {
    let desk = Desk::new();
    let ran = desk.ok(&format!("train sample {TINY} --json"));
    let events = lines(&ran.out);
    let names: Vec<&str> = events.iter().map(|e| e["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["start", "evaluation", "evaluation", "checkpoint", "result", "end"]);
    assert_eq!(events, lines(&String::from_utf8(desk.run_file(1, "events.jsonl")).unwrap()));
}

#[test]
fn data_can_be_looked_at() {
    let desk = Desk::new();
    desk.idx_folder("digits");
    let text = desk.ok("data inspect digits --sheet sheet.png").out;
    for word in ["IDX files: 28x28 grey", "300 images", "100 images", "pixels 0 to 255"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(image::open(desk.path("sheet.png")).unwrap().width() > 300);
    let json: serde_json::Value = serde_json::from_str(&desk.ok("data inspect digits --json").out).unwrap();
    assert_eq!(json["splits"][0]["class_counts"][3], 30);
    std::fs::create_dir_all(desk.path("sets")).unwrap();
    desk.idx_folder("sets/mnist");
    let list = desk.ok("data list --data-dir sets").out;
    assert!(list.contains("sets/mnist") && list.contains("not here") && list.contains("built in"), "{list}");
    desk.ok("data inspect mnist --data-dir sets");
    desk.fails("data inspect mnist", 3, &["convgp data get mnist"]);
    desk.fails("data get mnits", 3, &["mnits", "fashion-mnist"]);
    desk.fails(
        "data get kmnist --data-dir sets --mirror http://127.0.0.1:1",
        3,
        &["train-images-idx3-ubyte.gz"],
    );
    let file = desk.path("digits/train-images-idx3-ubyte.gz");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    desk.fails("data inspect digits", 3, &["train-images-idx3-ubyte.gz", "byte"]);
}

#[test]
fn the_machine_is_well_and_the_shell_is_helped() {
    let desk = Desk::new();
    let doctor = desk.ok("doctor --threads 2").out;
    assert_eq!(doctor.lines().filter(|l| l.starts_with("ok ")).count(), 4, "{doctor}");
    assert!(desk.ok("completions bash").out.contains("--resume"));
    assert!(desk.ok("man").out.contains(".TH convgp") && desk.ok("man train").out.contains("validation"));
    desk.fails("man nothing", 2, &["nothing"]);
    assert!(desk.ok("--help").out.contains("130  interrupted"));
}
