//! Real targets in any units.

use crate::common::{Desk, lines};
use convgp::rng::Rng;

/// Images of 8x8 random pixels whose target is a smooth function of some of them, multiplied and shifted.
fn table(desk: &Desk, name: &str, factor: f64, shift: f64) {
    let mut rng = Rng::new(3);
    let columns: Vec<String> = (0..64).map(|i| format!("p{i}")).collect();
    let mut text = format!("{},target\n", columns.join(","));
    for _ in 0..240 {
        let level = rng.uniform();
        let image: Vec<f64> = (0..64)
            .map(|i| (level * (1.0 + f64::from(i % 8)) / 8.0 + 0.1 * rng.uniform()).min(1.0))
            .collect();
        let row: Vec<String> = image.iter().map(|p| format!("{p:.4}")).collect();
        let y = (5.0 * level).sin() + 0.05 * rng.normal();
        text += &format!("{},{}\n", row.join(","), factor * y + shift);
    }
    std::fs::write(desk.path(name), text).unwrap();
}

#[test]
fn units_of_targets_do_not_matter() {
    let desk = Desk::new();
    table(&desk, "plain.csv", 1.0, 0.0);
    table(&desk, "other.csv", 1000.0, 5000.0);
    let mut run = 0;
    for model in ["--model pooled -m 40", "--model rbf -m 40 --steps 150 --batch 60"] {
        let mut found = Vec::new();
        for (name, factor) in [("plain.csv", 1.0), ("other.csv", 1000.0)] {
            run += 1;
            desk.ok(&format!("train {name} {model} -q --no-report"));
            let eval = desk.ok(&format!("eval {} {name} --json", desk.run_folder(run).display()));
            let metrics = &lines(&eval.out)[0];
            let number = |key: &str| metrics[key].as_f64().unwrap_or_else(|| panic!("{key}: {}", eval.out));
            found.push((number("rmse") / factor, number("nlpp") - f64::ln(factor)));
        }
        let ((rmse, nlpp), (other_rmse, other_nlpp)) = (found[0], found[1]);
        assert!((rmse - other_rmse).abs() < 1e-3 * rmse, "{model}: {found:?}");
        assert!((nlpp - other_nlpp).abs() < 1e-3, "{model}: {found:?}");
        assert!(rmse < 0.2, "{model}: the targets have a standard deviation of 0.7; {found:?}");
    }
}
