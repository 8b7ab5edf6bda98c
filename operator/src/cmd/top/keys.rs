//! Keys of the terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;

/// How soon the thread notices that it is to end.
const POLL: Duration = Duration::from_millis(200);

/// Keys that wait, at most; more are dropped.
const QUEUE: usize = 16;

/// What a person asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Quit,
    /// Look at the hub now.
    Refresh,
    /// The next list.
    Next,
    Down,
    Up,
    /// The terminal has another size.
    Redraw,
}

/// The keys, read by a thread of its own: reading them blocks.
pub struct Keys {
    pressed: mpsc::Receiver<Key>,
    ended: Arc<AtomicBool>,
}

impl Keys {
    /// Begins to read.
    pub fn listen() -> Self {
        let (sender, pressed) = mpsc::channel(QUEUE);
        let ended = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&ended);
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                match event::poll(POLL) {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(_) => return,
                }
                let Ok(event) = event::read() else { return };
                if let Some(key) = meaning(&event) {
                    // A person who presses faster than the screen is drawn loses keys.
                    let _ = sender.try_send(key);
                }
            }
        });
        Self { pressed, ended }
    }

    /// The next key; none when the terminal is gone.
    pub async fn next(&mut self) -> Option<Key> {
        self.pressed.recv().await
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

fn meaning(event: &Event) -> Option<Key> {
    match event {
        Event::Key(key) if key.kind == KeyEventKind::Release => None,
        Event::Key(key) if key.modifiers.contains(KeyModifiers::CONTROL) => {
            (key.code == KeyCode::Char('c')).then_some(Key::Quit)
        }
        Event::Key(key) => match key.code {
            KeyCode::Char('q') | KeyCode::Esc => Some(Key::Quit),
            KeyCode::Char('r') => Some(Key::Refresh),
            KeyCode::Tab => Some(Key::Next),
            KeyCode::Down | KeyCode::Char('j') => Some(Key::Down),
            KeyCode::Up | KeyCode::Char('k') => Some(Key::Up),
            _ => None,
        },
        Event::Resize(_, _) => Some(Key::Redraw),
        _ => None,
    }
}
