//! The examples of the documents: every command in a `console` block runs, and says what the document shows, whatever the
//! numbers.

use crate::common::Desk;
use std::path::{Path, PathBuf};

/// A command with the lines shown below it.
struct Example {
    command: String,
    shown: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, into);
        } else if path.extension().is_some_and(|e| e == "md") {
            into.push(path);
        }
    }
}

fn all_pages() -> Vec<PathBuf> {
    let mut all = vec![root().join("README.md")];
    pages(&root().join("docs"), &mut all);
    all.sort();
    all
}

fn examples(text: &str) -> Vec<Example> {
    let (mut all, mut inside) = (Vec::<Example>::new(), false);
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ convgp ").filter(|_| inside) {
            all.push(Example { command: command.into(), shown: Vec::new() });
        } else if inside && line != "..." && !line.is_empty() {
            all.last_mut().expect("output follows a command").shown.push(line.into());
        }
    }
    all
}

/// Units that depend on the machine.
const UNITS: [&str; 6] = ["ms", "s", "min", "h", "MiB", "GiB"];

/// Words without their numbers.
fn words(line: &str) -> String {
    let number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+');
    let plain = |word: &str| {
        let digits = word.contains(|c: char| c.is_ascii_digit());
        if digits { word.replace(number, "#") } else { word.into() }
    };
    let of_machine = |word: &&str| !UNITS.contains(&word.trim_end_matches(','));
    let mut text = line.split_whitespace().filter(of_machine).map(plain).collect::<Vec<String>>().join(" ");
    while text.contains("##") {
        text = text.replace("##", "#");
    }
    text
}

#[test]
fn examples_run_and_say_what_is_shown() {
    for page in all_pages() {
        let desk = Desk::new();
        for Example { command, shown } in examples(&std::fs::read_to_string(&page).unwrap()) {
            let ran = desk.run(&command);
            let at = format!("{}: convgp {command}\n{}\n{}", page.display(), ran.out, ran.err);
            let refused = shown.iter().any(|line| line.starts_with("error: "));
            assert_eq!(ran.code != 0, refused, "{at}");
            let said: Vec<String> = ran.out.lines().chain(ran.err.lines()).map(words).collect();
            for line in shown {
                let (start, cut) =
                    line.strip_suffix("...").map_or((line.as_str(), false), |start| (start, true));
                let start = words(start);
                let found = said.iter().any(|line| *line == start || cut && line.starts_with(&start));
                assert!(found, "not said: {line}\n{at}");
            }
        }
    }
}

#[test]
fn every_command_has_an_example() {
    let shown: Vec<String> = all_pages()
        .iter()
        .flat_map(|page| examples(&std::fs::read_to_string(page).unwrap()))
        .map(|example| example.command)
        .collect();
    let help = Desk::new().ok("--help").out;
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    for line in commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        let name = line.split_whitespace().next().unwrap();
        let has = shown.iter().any(|command| command.split_whitespace().next() == Some(name));
        assert!(has || name == "help", "no document shows `convgp {name}`");
    }
}
