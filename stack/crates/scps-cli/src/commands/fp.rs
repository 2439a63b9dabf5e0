//! `scps fp`: the file client, by hand or by script.

use crate::error::CliError;
use crate::fp::console::{Signals, Terminal};
use crate::fp::editor::Editor;
use crate::fp::keyboard::Keyboard;
use crate::fp::{FpOptions, TransportName, World, ANY};
use crate::say;
use clap::Args;
use scps_fp::client::{Client, Report, Resolver};
use scps_fp::command::split_commands;
use scps_io::IoError;
use std::cell::RefCell;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

/// Options of `scps fp`.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub struct FpArgs {
    /// Server to connect to
    host: Option<String>,
    /// Its control port [default: the tunable CTLPORT, 2121]
    port: Option<u16>,
    /// Our address; over SCPS-TP one the kernel does not own
    #[arg(long, value_name = "ADDR", default_value_t = ANY)]
    local: IpAddr,
    /// Log in as this user
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Read the password from this file
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// Local files are relative to this folder
    #[arg(long, value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// This side opens data connections
    #[arg(long)]
    passive: bool,
    /// Run these commands, separated by ";" outside of quotes, and leave; may be repeated
    #[arg(short = 'e', long = "execute", value_name = "COMMANDS")]
    execute: Vec<String>,
    /// Go on after a command that failed
    #[arg(long)]
    keep_going: bool,
    /// Write one JSON object per command here instead of to standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Show commands as they are sent
    #[arg(long)]
    debug: bool,
    /// Show nothing but results
    #[arg(long)]
    quiet: bool,
    /// Keep the history of the prompt here
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    #[command(flatten)]
    options: FpOptions,
}

/// The system's name service.
struct Names;

impl Resolver for Names {
    fn resolve(&self, host: &str, port: u16) -> Option<SocketAddr> {
        let found: Vec<SocketAddr> = (host, port).to_socket_addrs().ok()?.collect();
        found.iter().find(|a| a.is_ipv4()).or(found.first()).copied()
    }
}

/// Where commands come from.
enum Source {
    /// The command line.
    Given(std::vec::IntoIter<String>),
    /// A pipe or file.
    Piped,
    /// A person.
    Prompt(Box<Editor>),
}

impl FpArgs {
    /// Runs commands until there are none.
    pub fn run(&self) -> Result<ExitCode, CliError> {
        let system = |what| move |source| CliError::Io(IoError::System { what, source });
        let mut counters = self.options.counters();
        let mut world = self.open_world()?;
        let signals = Rc::new(RefCell::new(Signals::install().map_err(system("signals"))?));
        let keyboard = Rc::new(RefCell::new(Keyboard::new()));
        world.watch(signals.borrow().fd());
        world.fail_waits_when(signals.borrow().end_flag());
        let source = self.source()?;
        let listens = !matches!(source, Source::Given(_));
        if listens {
            world.watch(std::os::fd::AsFd::as_fd(&std::io::stdin()));
        }
        let mut terminal =
            Terminal { signals: Rc::clone(&signals), keyboard: Rc::clone(&keyboard), listens, quiet: self.quiet };
        let mut output: Box<dyn Write> = match &self.json {
            Some(path) => Box::new(File::create(path).map_err(CliError::file(path))?),
            None => Box::new(std::io::stdout()),
        };
        let writes = self.json.is_some() || !matches!(source, Source::Prompt(_));
        let mut client = Client::new(world.net(), &mut terminal, self.options.mib()?, self.local);
        client.folder.clone_from(&self.folder);
        client.set_passive(self.passive);
        client.show_commands(self.debug);
        let mut all_well = true;
        let mut write = |report: &Report| -> Result<(), CliError> {
            all_well &= report.is_complete();
            if writes {
                let text = crate::say::json(report)?;
                let file_error = |source| CliError::File { path: "output".to_owned(), source };
                writeln!(output, "{text}").and_then(|()| output.flush()).map_err(file_error)?;
            }
            Ok(())
        };
        let mut session = Session { client: &mut client, source, keyboard, keep_going: self.keep_going };
        let opened = self.open_session(&mut session, &mut write)?;
        if opened {
            session.run(&signals, &mut write)?;
        }
        let ended = signals.borrow().end();
        if client.is_connected() && ended.is_none() {
            client.run_line("close", &Names);
        }
        drop(client);
        world.tell_notices();
        if let Some(cause) = ended {
            world.abort_all();
            counters.update(&world)?;
            return Ok(cause.exit_code());
        }
        world.linger();
        counters.update(&world)?;
        Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn open_world(&self) -> Result<World, CliError> {
        if self.options.transport == TransportName::Tp && self.local == ANY {
            return Err(CliError::Usage(
                "--local: expected this stack's address, as --transport tp needs it.".to_owned(),
            ));
        }
        self.options.open(self.local)
    }

    fn source(&self) -> Result<Source, CliError> {
        if !self.execute.is_empty() {
            let lines: Vec<String> = self.execute.iter().flat_map(|e| split_commands(e)).map(str::to_owned).collect();
            return Ok(Source::Given(lines.into_iter()));
        }
        if !std::io::stdin().is_terminal() {
            return Ok(Source::Piped);
        }
        let editor = Editor::new(self.history.clone()).map_err(|e| CliError::Usage(format!("terminal: {e}.")))?;
        Ok(Source::Prompt(Box::new(editor)))
    }

    /// What the command line asks for before the first command; false if it failed and that ends the run.
    fn open_session(
        &self,
        session: &mut Session<'_, '_>,
        write: &mut dyn FnMut(&Report) -> Result<(), CliError>,
    ) -> Result<bool, CliError> {
        let mut lines = Vec::new();
        if let Some(host) = &self.host {
            let port = self.port.map_or(String::new(), |p| format!(" {p}"));
            lines.push(format!("open {host}{port}"));
        }
        if let Some(user) = &self.user {
            let password = match &self.password_file {
                None => String::new(),
                Some(path) => {
                    let text = std::fs::read_to_string(path).map_err(CliError::file(path))?;
                    text.trim_end_matches(['\r', '\n']).to_owned()
                }
            };
            let quote = |word: &str| format!("\"{}\"", word.replace('"', "\"\""));
            lines.push(format!("user {} {}", quote(user), quote(&password)));
        }
        for line in lines {
            if let Some(report) = session.client.run_line(&line, &Names) {
                write(&report)?;
                if !report.is_complete() {
                    say::remark(format_args!("scps: {}: {}", report.command, report.text));
                    return Ok(self.keep_going || matches!(session.source, Source::Prompt(_)));
                }
            }
        }
        Ok(true)
    }
}

struct Session<'s, 'c> {
    client: &'s mut Client<'c>,
    source: Source,
    keyboard: Rc<RefCell<Keyboard>>,
    keep_going: bool,
}

impl Session<'_, '_> {
    fn next_line(&mut self) -> Result<Option<String>, CliError> {
        if !matches!(self.source, Source::Given(_)) {
            self.client.rest();
        }
        match &mut self.source {
            Source::Given(lines) => Ok(lines.next()),
            Source::Piped => Ok(self.keyboard.borrow_mut().next_line()),
            Source::Prompt(editor) => {
                // What was typed while a transfer ran comes first.
                if let Some(line) = self.keyboard.borrow_mut().pop() {
                    return Ok(Some(line));
                }
                editor.line().map_err(|e| CliError::Usage(format!("terminal: {e}.")))
            }
        }
    }

    fn run(
        &mut self,
        signals: &Rc<RefCell<Signals>>,
        write: &mut dyn FnMut(&Report) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        let is_prompt = matches!(self.source, Source::Prompt(_));
        loop {
            signals.borrow().set_waiting(true);
            let line = self.next_line()?;
            signals.borrow().set_waiting(false);
            let Some(line) = line else { break };
            let line = if is_prompt { with_password(line)? } else { line };
            let is_last = matches!(line.trim(), "quit" | "bye");
            signals.borrow().forget_interrupt();
            if is_prompt {
                // Elsewhere ^C ends what still is to run.
                signals.borrow().take_abort();
            }
            if let Some(report) = self.client.run_line(&line, &Names) {
                write(&report)?;
                if is_prompt {
                    show(&report)?;
                } else if !report.is_complete() {
                    say::remark(format_args!("scps: {}: {}", report.command, report.text));
                    if !self.keep_going {
                        break;
                    }
                }
            }
            let ends = signals.borrow().end().is_some();
            if is_last || ends || (signals.borrow().take_abort() && !is_prompt) {
                break;
            }
        }
        if let Source::Prompt(editor) = std::mem::replace(&mut self.source, Source::Piped) {
            editor.finish().map_err(|e| CliError::Usage(format!("history: {e}.")))?;
        }
        Ok(())
    }
}

/// `user name` at the prompt asks for the password without showing it.
fn with_password(line: String) -> Result<String, CliError> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if !matches!(words[..], ["user", _] | ["proxy", "user", _]) {
        return Ok(line);
    }
    let password = rpassword::prompt_password("Password: ")
        .map_err(|source| CliError::File { path: "terminal".to_owned(), source })?;
    Ok(format!("{line} \"{}\"", password.replace('"', "\"\"")))
}

/// A result as people read it.
fn show(report: &Report) -> Result<(), CliError> {
    let mut lines = Vec::new();
    if !report.is_complete() {
        lines.push(format!("{:?}: {}", report.status, report.text));
    } else if report.octets.is_none() {
        lines.push(report.text.clone());
    }
    if report.octets.is_some() {
        lines.push(format!("It took {:.6} seconds", report.seconds));
    }
    if let Some(integrity) = report.integrity {
        lines.push(format!("integrity: {integrity:?}"));
    }
    if let Some(marker) = report.marker {
        lines.push(format!("marker: {marker}"));
    }
    lines.iter().try_for_each(say::result)
}
