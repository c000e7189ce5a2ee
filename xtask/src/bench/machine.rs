//! What it was measured on.

use std::process::Command;

/// Processors this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Processor, cores, memory, compiler, commit and day, as far as they can be found out.
pub fn describe() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|l| l.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_string())
    };
    let model = field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| std::env::consts::ARCH.into());
    let memory = field(&read("/proc/meminfo"), "MemTotal")
        .and_then(|t| t.split_whitespace().next()?.parse::<f64>().ok())
        .map_or(String::new(), |kib| format!(", {:.0} GiB", kib / f64::from(1 << 20)));
    let commit = output("git", &["describe", "--always", "--dirty"]);
    let (compiler, day) = (output("rustc", &["--version"]), output("date", &["-u", "+%F"]));
    format!("{model}, {} cores{memory}; {compiler}; convgp {commit}; {day}", cores())
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok().filter(|o| o.status.success());
    output.map_or_else(|| "unknown".into(), |o| String::from_utf8_lossy(&o.stdout).trim().to_string())
}
