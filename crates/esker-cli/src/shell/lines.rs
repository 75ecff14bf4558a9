//! The lines of the shell: edited on a terminal, with a history, or read from a pipe.

use crate::failure::Failure;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;

/// How many lines of history are kept.
const HISTORY_LINES: usize = 1000;

/// What came next.
pub enum Line {
    /// A line, without its end.
    Text(String),
    /// Ctrl-C: the line was given up.
    Interrupted,
    /// The end of the input, or Ctrl-D.
    End,
}

enum Input {
    Terminal { editor: Box<Editor<(), FileHistory>>, history: Option<PathBuf> },
    Pipe(io::Lines<io::StdinLock<'static>>),
}

/// Where lines come from.
pub struct Lines {
    input: Input,
    number: u64,
}

impl Lines {
    /// Standard input.
    pub fn open() -> Result<Lines, Failure> {
        if !io::stdin().is_terminal() {
            return Ok(Lines { input: Input::Pipe(io::stdin().lock().lines()), number: 0 });
        }
        let failed =
            |error: ReadlineError| Failure::Operation(format!("cannot read the terminal: {error}; use a pipe"));
        let config = Config::builder().max_history_size(HISTORY_LINES).map_err(failed)?.auto_add_history(true).build();
        let mut editor = Editor::with_config(config).map_err(failed)?;
        let history = history_path();
        if let Some(path) = &history {
            // None is kept yet, or it cannot be read: the shell works without.
            let _ = editor.load_history(path);
        }
        Ok(Lines { input: Input::Terminal { editor: Box::new(editor), history }, number: 0 })
    }

    /// Whether somebody types the lines.
    pub fn is_interactive(&self) -> bool {
        matches!(self.input, Input::Terminal { .. })
    }

    /// The number of the last line, from 1 on.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next line.
    pub fn next(&mut self, prompt: &str) -> Result<Line, Failure> {
        self.number += 1;
        match &mut self.input {
            Input::Pipe(lines) => match lines.next() {
                None => Ok(Line::End),
                Some(Ok(line)) => Ok(Line::Text(line)),
                Some(Err(error)) => Err(Failure::io(&format!("line {} of standard input", self.number), &error)),
            },
            Input::Terminal { editor, .. } => match editor.readline(prompt) {
                Ok(line) => Ok(Line::Text(line)),
                Err(ReadlineError::Interrupted) => Ok(Line::Interrupted),
                Err(ReadlineError::Eof) => Ok(Line::End),
                Err(error) => Err(Failure::Operation(format!("cannot read the terminal: {error}; use a pipe"))),
            },
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        if let Input::Terminal { editor, history: Some(path) } = &mut self.input {
            if let Some(directory) = path.parent() {
                let _ = std::fs::create_dir_all(directory);
            }
            // A history that cannot be kept is no reason to fail at the end.
            let _ = editor.save_history(path);
        }
    }
}

/// Where earlier lines are kept.
fn history_path() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("ESKER_HISTORY").or_else(|| {
        let state = variable("XDG_STATE_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/state")));
        state.map(|state| state.join("esker_history"))
    })
}
