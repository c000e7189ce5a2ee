//! Ctrl-C.
#![cfg(unix)]

use crate::common::{Desk, lines};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn started(desk: &Desk) -> Child {
    let line = "train sample --limit 50 -m 10 --batch 10 --steps 100000000 --evaluate-every 5 -q";
    let child = desk.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let patience = Instant::now();
    while !desk.path("runs/0001-sample-located/results.csv").exists() {
        assert!(patience.elapsed() < Duration::from_secs(60), "the run does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn the_step_is_finished_and_everything_saved() {
    let desk = Desk::new();
    let child = started(&desk);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(
        text.contains("interrupted; go on with: convgp train --resume runs/0001-sample-located"),
        "{text}"
    );
    let events = lines(&String::from_utf8(desk.run_file(1, "events.jsonl")).unwrap());
    let end = events.last().unwrap();
    assert_eq!((&end["event"], &end["ending"]), (&"end".into(), &"interrupted".into()));
    let step = end["step"].as_u64().unwrap();
    let resumed = desk.ok("train --resume runs/0001-sample-located --stop-after 3 -q");
    assert!(resumed.out.starts_with(&format!("{} steps", step + 3)), "{step}: {}", resumed.out);
    desk.ok("eval runs/0001-sample-located sample");
}
