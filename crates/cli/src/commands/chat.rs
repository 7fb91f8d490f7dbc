//! `chat`: a conversation, line by line.
//!
//! Invariant: what the model sees is the conversation rendered by its own template; the session keeps the common prefix in
//! the KV cache, so a turn feeds only what is new. A turn that fails leaves the conversation as it was.

use std::fs;
use std::io::{IsTerminal, stderr, stdin, stdout};
use std::path::PathBuf;

use anyhow::{Context, Result};
use rustyline::error::ReadlineError;
use rustyline::{Config, DefaultEditor};
use turbospark_engine::{CancelFlag, Engine, Session};
use turbospark_text::{ChatTemplate, Message};

use crate::args::ChatArgs;
use crate::failure::Usage;
use crate::{environment, generation, interrupt, models, output};

/// Lines that the history keeps.
const HISTORY: usize = 1000;

const HELP: &str = "\
/help          this list
/reset         forget the conversation, keep the system message
/system TEXT   set the system message; without TEXT remove it
/save FILE     write the conversation as a JSON array of messages
/exit          leave, as Ctrl-D does
Ctrl-C stops the answer. A line that ends with \\ goes on in the next.";

pub(crate) fn chat(args: &ChatArgs) -> Result<()> {
    let cancel = interrupt::flag()?;
    if args.model.model.is_none() {
        models::unnamed()?;
    }
    let engine = generation::open(&args.model, args.generation.context)?;
    let Some(template) = generation::template(&engine)? else {
        let why = "this model has no chat template, so it can't chat: use `turbospark run --raw`";
        return Err(Usage(why.to_owned()).into());
    };
    let mut chat = Chat {
        args,
        session: engine.session(),
        engine,
        template,
        system: args.system.clone(),
        messages: Vec::new(),
        cancel,
    };
    let mut lines = Lines::open()?;
    if lines.interactive() {
        output::note(&format!("{} — /help for help, Ctrl-D to leave", args.model.name().display()));
    }
    while let Some(line) = lines.next()? {
        chat.cancel.reset();
        let line = line.trim();
        let outcome = match line.strip_prefix('/') {
            _ if line.is_empty() => Ok(()),
            Some(command) => match chat.command(command) {
                Ok(true) => Ok(()),
                Ok(false) => break,
                Err(e) => Err(e),
            },
            None => chat.turn(line),
        };
        if let Err(error) = outcome {
            let closed = |e: &std::io::Error| e.kind() == std::io::ErrorKind::BrokenPipe;
            // At a terminal the conversation goes on; in a script a failed line fails the whole.
            if !lines.interactive() || error.downcast_ref::<std::io::Error>().is_some_and(closed) {
                return Err(error);
            }
            output::note(&output::plain(&format!("error: {error:#}")));
        }
    }
    lines.close();
    Ok(())
}

struct Chat<'a> {
    args: &'a ChatArgs,
    engine: Engine,
    session: Session,
    template: ChatTemplate,
    system: Option<String>,
    messages: Vec<Message>,
    cancel: CancelFlag,
}

impl Chat<'_> {
    /// The system message, then the conversation.
    fn conversation(&self) -> Vec<Message> {
        let system = self.system.as_ref().map(|text| Message::new("system", text));
        system.into_iter().chain(self.messages.iter().cloned()).collect()
    }

    fn turn(&mut self, line: &str) -> Result<()> {
        self.messages.push(Message::new("user", line));
        let outcome = self.answer();
        if outcome.is_err() {
            self.messages.pop();
        }
        outcome
    }

    fn answer(&mut self) -> Result<()> {
        let prompt = generation::render(&self.engine, &self.template, &self.conversation())?;
        let options = generation::options(&self.args.generation, generation::fresh_seed(), &self.cancel);
        let answer = generation::answer(&mut self.session, &prompt, options).with_context(|| {
            format!("no answer; /reset starts anew after {} messages", self.messages.len())
        })?;
        output::line("")?;
        if answer.cancelled {
            output::note("(stopped)");
        }
        if !self.args.quiet && stderr().is_terminal() {
            let first = answer.stats.time_to_first_token.as_secs_f64();
            output::note(&generation::summary(self.session.engine(), &answer.stats, first));
        }
        self.messages.push(Message::new("assistant", answer.text));
        Ok(())
    }

    /// Obeys a command; `false` leaves the chat.
    fn command(&mut self, command: &str) -> Result<bool> {
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        match (name, rest.trim()) {
            ("help", "") => output::note(HELP),
            ("exit" | "quit", "") => return Ok(false),
            ("reset", "") => {
                self.messages.clear();
                self.session.reset();
            }
            ("system", text) => self.system = (!text.is_empty()).then(|| text.to_owned()),
            ("save", "") => return Err(Usage("/save needs a file name".to_owned()).into()),
            ("save", file) => {
                let text = serde_json::to_string_pretty(&self.conversation())? + "\n";
                fs::write(file, text).with_context(|| format!("cannot write {file}"))?;
                output::note(&format!("saved to {file}"));
            }
            ("help" | "exit" | "quit" | "reset", _) => {
                return Err(Usage(format!("/{name} takes nothing after it")).into());
            }
            _ => return Err(Usage(format!("there is no command /{name}: /help lists them")).into()),
        }
        Ok(true)
    }
}

/// Lines from a terminal, edited and remembered, or from a pipe as they come.
enum Lines {
    Editor { editor: Box<DefaultEditor>, history: Option<PathBuf> },
    Pipe,
}

impl Lines {
    fn open() -> Result<Lines> {
        if !stdin().is_terminal() || !stdout().is_terminal() {
            return Ok(Lines::Pipe);
        }
        let config = Config::builder().max_history_size(HISTORY)?.auto_add_history(true).build();
        let mut editor = Box::new(DefaultEditor::with_config(config)?);
        let history = environment::home().map(|home| home.join("chat-history"));
        if let Some(path) = history.as_ref().filter(|p| p.exists())
            && let Err(error) = editor.load_history(path)
        {
            output::note(&format!("warning: cannot read the history {}: {error}", path.display()));
        }
        Ok(Lines::Editor { editor, history })
    }

    fn interactive(&self) -> bool {
        matches!(self, Lines::Editor { .. })
    }

    /// The next line, with those that it goes on in; `None` at the end.
    fn next(&mut self) -> Result<Option<String>> {
        let mut text = String::new();
        loop {
            let prompt = if text.is_empty() { "> " } else { "… " };
            let Some(line) = self.read(prompt)? else { return Ok((!text.is_empty()).then_some(text)) };
            match line.strip_suffix('\\') {
                Some(start) => text += &format!("{start}\n"),
                None => return Ok(Some(text + &line)),
            }
        }
    }

    fn read(&mut self, prompt: &str) -> Result<Option<String>> {
        match self {
            Lines::Editor { editor, .. } => match editor.readline(prompt) {
                Ok(line) => Ok(Some(line)),
                // Ctrl-C drops the line, as it drops an answer.
                Err(ReadlineError::Interrupted) => Ok(Some(String::new())),
                Err(ReadlineError::Eof) => Ok(None),
                Err(error) => Err(error).context("cannot read from the terminal"),
            },
            Lines::Pipe => {
                let mut line = String::new();
                let read = stdin().read_line(&mut line).context("cannot read standard input")?;
                Ok((read > 0).then(|| line.trim_end_matches(['\n', '\r']).to_owned()))
            }
        }
    }

    /// Keeps the history for the next time.
    fn close(self) {
        let Lines::Editor { mut editor, history: Some(path) } = self else { return };
        let saved = match path.parent().map(fs::create_dir_all) {
            Some(Err(error)) => Err(error.to_string()),
            _ => editor.save_history(&path).map_err(|e| e.to_string()),
        };
        if let Err(error) = saved {
            output::note(&format!("warning: cannot keep the history in {}: {error}", path.display()));
        }
    }
}
