//! How the program ends.

use convgp::io::FileError;
use std::io::ErrorKind;
use std::process::ExitCode;

/// Text for `--help`.
pub const HELP: &str = "Exit codes:
  0    done
  1    failed: numbers diverged, a file could not be written, a self-check failed
  2    wrong usage: unknown option, model or field
  3    data, model file or checkpoint cannot be used
  4    does not fit in memory; nothing was started
  130  interrupted; the run was saved and can be resumed";

/// What the shell is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All is well.
    Done = 0,
    /// Something failed on the way.
    Failed = 1,
    /// The command does not make sense.
    Usage = 2,
    /// What was read does.
    Input = 3,
    /// It would not fit in memory.
    Memory = 4,
    /// The user stopped it.
    Interrupted = 130,
}

/// An error with its own exit code.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The code.
    pub exit: Exit,
    message: String,
}

/// A mistake in the command.
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    Refusal { exit: Exit::Usage, message: message.into() }.into()
}

/// Data or a file that cannot be used.
pub fn input(message: impl Into<String>) -> anyhow::Error {
    Refusal { exit: Exit::Input, message: message.into() }.into()
}

/// Too large for this machine.
pub fn memory(message: impl Into<String>) -> anyhow::Error {
    Refusal { exit: Exit::Memory, message: message.into() }.into()
}

impl Exit {
    /// The code of an error, from the first cause that has one.
    pub fn of(error: &anyhow::Error) -> Self {
        error.chain().find_map(Self::of_cause).unwrap_or(Exit::Failed)
    }

    fn of_cause(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        if let Some(refusal) = error.downcast_ref::<Refusal>() {
            return Some(refusal.exit);
        }
        if let Some(error) = error.downcast_ref::<convgp_data::Error>() {
            let writing = matches!(error, convgp_data::Error::Io { action: "create" | "write", .. });
            return Some(if writing { Exit::Failed } else { Exit::Input });
        }
        if let Some(error) = error.downcast_ref::<convgp_paper::Error>() {
            return match error {
                convgp_paper::Error::Library(error) => Self::of_cause(error),
                error => Some(if error.is_usage() { Exit::Usage } else { Exit::Input }),
            };
        }
        match error.downcast_ref::<convgp::Error>()? {
            convgp::Error::Numerical(_) | convgp::Error::File(FileError::Write { .. }) => Some(Exit::Failed),
            _ => Some(Exit::Input),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// An error and its causes in one line; causes that a message already ends with are not said again.
pub fn message(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Whether the reader of our output has gone, as `head` does: nothing is left to say then.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |e: &std::io::Error| e.kind() == ErrorKind::BrokenPipe;
    error.chain().any(|e| e.downcast_ref().is_some_and(broken))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn codes_survive_context() {
        let wrapped = Err::<(), _>(memory("too large")).context("planning").unwrap_err();
        assert_eq!(Exit::of(&wrapped), Exit::Memory);
        let data = convgp_data::registry::locate("nothing", None).unwrap_err();
        assert_eq!(Exit::of(&anyhow::Error::from(data)), Exit::Input);
        assert_eq!(Exit::of(&anyhow::anyhow!("other")), Exit::Failed);
        let pipe = anyhow::Error::from(std::io::Error::from(ErrorKind::BrokenPipe));
        assert!(is_broken_pipe(&pipe) && !is_broken_pipe(&wrapped));
    }

    #[test]
    fn causes_are_said_once() {
        let spec: convgp::train::TrainSpec = toml::from_str("batch_size = 0").unwrap();
        let error = convgp::Error::from(spec.check().unwrap_err());
        let error = anyhow::Error::from(error).context("photos/");
        assert_eq!(message(&error), "photos/: training: `batch_size` is 0; it must be at least 1");
    }
}
