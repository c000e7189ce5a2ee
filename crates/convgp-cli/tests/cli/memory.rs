//! The memory plan against what training processes really held.
#![cfg(target_os = "linux")]

use crate::common::{Desk, lines};

/// How far the plan may be off: a fraction of what was held, and what libraries and the allocator hold more or less from machine to machine.
const ALLOWED: f64 = 0.15;
const MACHINES_DIFFER: f64 = (6 << 20) as f64;

#[test]
fn the_plan_is_close_to_the_peak_over_a_grid_of_models() {
    let desk = Desk::new();
    let mut report = String::new();
    let mut worst = 0.0f64;
    for options in [
        "-m 100",
        "-m 300",
        "-m 500",
        "-m 300 --set train.q=adam",
        "-m 250 --batch 30",
        "--model invariant -m 250 --patch 3x3",
        "--model rbf -m 140",
        "--model located -m 200",
        "--model weighted+rbf -m 130",
        "--model weighted+rbf -m 130 --set model.posterior.structure=mean-field",
        "--model weighted -m 300 --classes 3,5",
    ] {
        let ran = desk
            .ok(&format!("train sample --limit 150 {options} --steps 3 --threads 2 --json -q --no-report"));
        let events = lines(&ran.out);
        let planned = events[0]["memory"].as_f64().unwrap();
        let peak = events.last().unwrap()["peak_memory"].as_f64().unwrap();
        let off = planned / peak - 1.0;
        worst = worst.max(((planned - peak).abs() - MACHINES_DIFFER) / peak);
        let mib = f64::from(1 << 20);
        report += &format!(
            "{options}: planned {:.0} MiB, held {:.0} MiB, {:+.0} %\n",
            planned / mib,
            peak / mib,
            100.0 * off
        );
    }
    assert!(worst <= ALLOWED, "{report}");
}
