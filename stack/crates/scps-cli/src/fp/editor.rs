//! The prompt: history, and completion of commands and local files.

use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Helper, Result};
use scps_fp::client::VERBS;
use std::path::PathBuf;

/// The historic prompt, which scripts wait for.
const PROMPT: &str = "sfp> ";

struct Words(FilenameCompleter);

impl Helper for Words {}
impl Highlighter for Words {}
impl Validator for Words {}

impl Hinter for Words {
    type Hint = String;
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, context: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        let before = &line[..at];
        if before.trim_start().contains(' ') {
            return self.0.complete(line, at, context);
        }
        let start = before.len() - before.trim_start().len();
        let word = &before[start..];
        let pair = |verb: &str, help: &str| Pair { display: format!("{verb} {help}"), replacement: format!("{verb} ") };
        let fitting = VERBS.iter().filter(|(verb, _, _)| verb.starts_with(word));
        Ok((start, fitting.map(|(verb, arguments, _)| pair(verb, arguments)).collect()))
    }
}

/// A line editor.
pub struct Editor {
    editor: rustyline::Editor<Words, FileHistory>,
    history: Option<PathBuf>,
}

impl Editor {
    /// With the history of earlier sessions, if it is kept in a file.
    pub fn new(history: Option<PathBuf>) -> Result<Editor> {
        let mut editor = rustyline::Editor::new()?;
        editor.set_helper(Some(Words(FilenameCompleter::new())));
        if let Some(path) = &history {
            // The first session has none.
            let _ = editor.load_history(path);
        }
        Ok(Editor { editor, history })
    }

    /// A line; `None` at ^C or ^D.
    pub fn line(&mut self) -> Result<Option<String>> {
        match self.editor.readline(PROMPT) {
            Ok(line) => {
                // A line with a password is not remembered.
                let words: Vec<&str> = line.split_whitespace().collect();
                if !matches!(words[..], [] | ["user", ..] | ["proxy", "user", ..]) {
                    self.editor.add_history_entry(&line)?;
                }
                Ok(Some(line))
            }
            Err(ReadlineError::Eof | ReadlineError::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Keeps the history.
    pub fn finish(mut self) -> Result<()> {
        match &self.history {
            Some(path) => self.editor.save_history(path),
            None => Ok(()),
        }
    }
}
