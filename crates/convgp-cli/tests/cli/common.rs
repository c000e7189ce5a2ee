//! A folder to work in, and the program.

use convgp_data::{SplitKind, sample, write};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A temporary folder in which commands run.
pub struct Desk {
    dir: tempfile::TempDir,
}

/// What a command left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Desk {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The program, not yet started.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_convgp"));
        command.current_dir(self.dir.path()).args(line.split_whitespace()).env_remove("CONVGP_DATA");
        command.env("XDG_CACHE_HOME", self.dir.path().join("cache"));
        command
    }

    /// Runs a command given as one line.
    pub fn run(&self, line: &str) -> Ran {
        let Output { status, stdout, stderr } = self.command(line).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { code: status.code().unwrap_or(-1), out: text(stdout), err: text(stderr) }
    }

    /// Runs a command that must succeed.
    #[track_caller]
    pub fn ok(&self, line: &str) -> Ran {
        let ran = self.run(line);
        assert_eq!(ran.code, 0, "convgp {line}\n{}\n{}", ran.out, ran.err);
        ran
    }

    /// Runs a command that must fail with a code and words in its message.
    #[track_caller]
    pub fn fails(&self, line: &str, code: i32, words: &[&str]) {
        let ran = self.run(line);
        let all = words.iter().all(|w| ran.err.contains(w));
        assert!(
            ran.code == code && all,
            "convgp {line}\nexit {}, wanted {code} and {words:?}\n{}",
            ran.code,
            ran.err
        );
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
    }

    /// The folder of run number `n`.
    #[track_caller]
    pub fn run_folder(&self, n: usize) -> PathBuf {
        let prefix = format!("{n:04}-");
        let mut entries = std::fs::read_dir(self.path("runs")).unwrap().map(|e| e.unwrap().path());
        let is_it = |p: &PathBuf| p.file_name().unwrap().to_string_lossy().starts_with(&prefix);
        entries.find(is_it).unwrap_or_else(|| panic!("run {n} is missing"))
    }

    /// A file of run number `n`.
    #[track_caller]
    pub fn run_file(&self, n: usize, name: &str) -> Vec<u8> {
        let path = self.run_folder(n).join(name);
        std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// Built-in digits as the original files would lie there.
    pub fn idx_folder(&self, name: &str) -> PathBuf {
        let (dir, (train, test)) = (self.path(name), sample::mnist());
        std::fs::create_dir_all(&dir).unwrap();
        write::idx(&dir, SplitKind::Train, &train).unwrap();
        write::idx(&dir, SplitKind::Test, &test).unwrap();
        dir
    }
}

/// JSON lines.
#[track_caller]
pub fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{l}: {e}"))).collect()
}

/// Photos of two kinds in sizes of their own: red with a bright left half, blue with a bright top half.
pub fn photos(root: &Path, each: u32) {
    use image::{DynamicImage, Rgb, RgbImage};
    for (class, name) in ["red", "blue"].iter().enumerate() {
        let dir = root.join(name);
        std::fs::create_dir_all(&dir).unwrap();
        for i in 0..each {
            let (h, w) = (30 + 7 * i % 40, 36 + 11 * i % 50);
            let pixel = |x: u32, y: u32| {
                let bright = if class == 0 { x < w / 2 } else { y < h / 2 };
                let base = if bright { 170 } else { 60 };
                let noise = ((x * 31 + y * 17 + i * 7) % 40) as u8;
                let (high, low) = (base + noise, noise / 2 + 20);
                if class == 0 { Rgb([high, low, low]) } else { Rgb([low, low, high]) }
            };
            let photo = DynamicImage::ImageRgb8(RgbImage::from_fn(w, h, pixel));
            let ending = if i % 2 == 0 { "jpg" } else { "png" };
            photo.save(dir.join(format!("{i:02}.{ending}"))).unwrap();
        }
    }
}
