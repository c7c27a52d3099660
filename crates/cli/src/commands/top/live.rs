//! The view on a terminal, refreshed each second.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use ratatui::{DefaultTerminal, Frame};

use super::screen::lines;
use super::table::{ScreenLine, Tone};
use super::watched::{REFRESH, Watched, ask_all};
use crate::failure::Failure;
use crate::{interrupt, output};

/// Time between two checks for keys and answers.
const TURN: Duration = Duration::from_millis(100);

/// Ends of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leave {
    Quit,
    Interrupted,
}

/// Shows the targets until a key or a signal ends the view. The terminal is restored, also after a panic.
pub(super) fn run(watched: Vec<Watched>, token: Option<String>) -> Result<(), Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::NoTerminal);
    }
    let stop = interrupt::flag();
    let is_coloured = output::is_coloured(&io::stdout());
    let (sender, receiver) = mpsc::sync_channel(1);
    // The thread ends with the program, or when the view no longer takes its answers.
    std::thread::spawn(move || keep_asking(watched, token.as_deref(), &sender));
    let mut terminal = ratatui::try_init()?;
    let left =
        TopView { is_coloured, lines: Vec::new(), top: 0, page: 1 }.show(&mut terminal, &receiver, stop);
    ratatui::try_restore()?;
    match left? {
        Leave::Quit => Ok(()),
        Leave::Interrupted => Err(Failure::Stopped),
    }
}

fn keep_asking(mut watched: Vec<Watched>, token: Option<&str>, sender: &SyncSender<Vec<ScreenLine>>) {
    loop {
        let began = Instant::now();
        ask_all(&mut watched, token);
        if sender.send(lines(&watched)).is_err() {
            return;
        }
        std::thread::sleep(REFRESH.saturating_sub(began.elapsed()));
    }
}

struct TopView {
    is_coloured: bool,
    lines: Vec<ScreenLine>,
    /// The first line shown.
    top: usize,
    /// Lines shown at a time.
    page: usize,
}

impl TopView {
    fn show(
        &mut self,
        terminal: &mut DefaultTerminal,
        receiver: &Receiver<Vec<ScreenLine>>,
        stop: &AtomicBool,
    ) -> io::Result<Leave> {
        loop {
            if let Some(lines) = receiver.try_iter().last() {
                self.lines = lines;
            }
            terminal.draw(|frame| self.draw(frame))?;
            if stop.load(Ordering::Relaxed) {
                return Ok(Leave::Interrupted);
            }
            if event::poll(TURN)?
                && let Event::Key(key) = event::read()?
                && let Some(leave) = self.handle_key(key)
            {
                return Ok(leave);
            }
        }
    }

    fn handle_key(&mut self, key: KeyEvent) -> Option<Leave> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        match key.code {
            KeyCode::Char('q') => return Some(Leave::Quit),
            // In raw mode the terminal sends no signal for Ctrl-C.
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Some(Leave::Interrupted);
            }
            KeyCode::Down | KeyCode::Char('j') => self.top += 1,
            KeyCode::Up | KeyCode::Char('k') => self.top = self.top.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.top += self.page,
            KeyCode::PageUp => self.top = self.top.saturating_sub(self.page),
            KeyCode::Home => self.top = 0,
            KeyCode::End => self.top = self.lines.len(),
            _ => {}
        }
        None
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let [body, foot] = Layout::vertical([Constraint::Min(1), Constraint::Length(1)]).areas(frame.area());
        self.page = usize::from(body.height).max(1);
        self.top = self.top.min(self.lines.len().saturating_sub(self.page));
        let shown: Vec<Line<'_>> = self
            .lines
            .iter()
            .skip(self.top)
            .take(self.page)
            .map(|line| Line::styled(line.text.as_str(), self.style(line.tone)))
            .collect();
        let shown = if self.lines.is_empty() { vec![Line::from("asking ...")] } else { shown };
        frame.render_widget(Paragraph::new(shown), body);
        let below = self.lines.len().saturating_sub(self.top + self.page);
        let keys = format!("q leaves, arrows scroll; {} lines above, {below} below", self.top);
        frame.render_widget(Line::from(keys).dim(), foot);
    }

    fn style(&self, tone: Tone) -> Style {
        let style = Style::new();
        match (tone, self.is_coloured) {
            (Tone::Plain, _) => style,
            (Tone::Heading, _) => style.add_modifier(Modifier::BOLD),
            (Tone::Header, _) => style.add_modifier(Modifier::DIM),
            (Tone::Warning, true) => style.yellow(),
            (Tone::Alarm, true) => style.red().bold(),
            (Tone::Warning | Tone::Alarm, false) => style.add_modifier(Modifier::BOLD),
        }
    }
}
