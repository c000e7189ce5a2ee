//! The part of `cargo xtask test` that builds the wheel in a fresh environment and runs the Python tests.

use crate::checks::{root, run};
use anyhow::{Context, Result, ensure};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The stub that is generated and checked in.
const STUB: &str = "python/convgp/_convgp.pyi";

/// Builds the wheel, installs it into a new virtual environment, checks the stub and runs the tests. Without Python there is a
/// note and no failure.
#[allow(clippy::print_stderr)] // says what is left out
pub fn test() -> Result<()> {
    let Some(python) = find() else {
        eprintln!(
            "note: the Python package was not tested: no Python 3.10 or newer with the module venv here. Install it, or name one \
             with CONVGP_PYTHON"
        );
        return Ok(());
    };
    let folder = root()?.join("target/python");
    let environment = Environment::create(&python, &folder.join("venv"))?;
    environment.check_stub(&folder)?;
    let wheels = folder.join("wheels");
    clear(&wheels)?;
    environment.maturin(&["build", "--profile", "dev", "--strip", "--out"], &wheels)?;
    let wheel = std::fs::read_dir(&wheels)?.next().context("maturin made no wheel")??.path();
    environment.python(&["-m", "pip", "install", "--quiet", "--no-deps"], Some(wheel.as_os_str()))?;
    environment.python(&["-W", "error", "-m", "pytest", "--quiet"], None)
}

/// Writes the stub anew.
pub fn write_stub() -> Result<()> {
    let python =
        find().context("no Python 3.10 or newer with the module venv; name one with CONVGP_PYTHON")?;
    let folder = root()?.join("target/python");
    let environment = Environment::create(&python, &folder.join("venv"))?;
    let stub = environment.stub(&folder)?;
    Ok(std::fs::write(root()?.join(STUB), stub)?)
}

/// The named Python, or the one on the path, if it will do.
fn find() -> Option<String> {
    let named = std::env::var("CONVGP_PYTHON").ok();
    let fits = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
    named.into_iter().chain(["python3".into()]).find(|python| {
        let mut command = Command::new(python);
        command.args(["-c", fits]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

/// A virtual environment with what the tests need.
struct Environment {
    path: PathBuf,
}

impl Environment {
    /// A new one, whatever was there.
    fn create(python: &str, path: &Path) -> Result<Self> {
        run(Command::new(python).args(["-m", "venv", "--clear"]).arg(path))?;
        let environment = Self { path: path.into() };
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
        environment.python(&install, Some(OsStr::new("python/requirements-test.txt")))?;
        Ok(environment)
    }

    fn program(&self, name: &str) -> PathBuf {
        self.path.join(if cfg!(windows) { "Scripts" } else { "bin" }).join(name)
    }

    fn python(&self, arguments: &[&str], last: Option<&OsStr>) -> Result<()> {
        // The command line, as the tests of the workspace have built it.
        let cli = root()?.join("target/debug/convgp").with_extension(std::env::consts::EXE_EXTENSION);
        let mut command = Command::new(self.program("python"));
        run(command.args(arguments).args(last).env("CONVGP_CLI", cli))
    }

    fn maturin(&self, arguments: &[&str], last: &Path) -> Result<()> {
        let mut command = Command::new(self.program("maturin"));
        run(command.args(arguments).arg(last).env("VIRTUAL_ENV", &self.path))
    }

    /// The stub as the code has it.
    fn stub(&self, folder: &Path) -> Result<String> {
        let out = folder.join("stubs");
        clear(&out)?;
        self.maturin(&["generate-stubs", "--profile", "dev", "--out"], &out)?;
        let path = out.join("convgp/_convgp.pyi");
        std::fs::read_to_string(&path).with_context(|| path.display().to_string())
    }

    fn check_stub(&self, folder: &Path) -> Result<()> {
        let kept = std::fs::read_to_string(root()?.join(STUB)).with_context(|| STUB.to_string())?;
        ensure!(self.stub(folder)? == kept, "{STUB} is not what the code says; run `cargo xtask stub`");
        Ok(())
    }
}

/// An empty folder.
fn clear(folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(std::fs::create_dir_all(folder)?)
}
