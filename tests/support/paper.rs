//! A person who types back the shown recovery words.

/// The prompt below the words.
pub const ENTER: &str = "Enter when you have them, Ctrl-C to throw them away: ";
/// The prompt for all of them.
pub const WORDS: &str = "The eleven words (not shown): ";

/// Types the words back as they were shown; each prompt names the places.
pub struct Paper {
    pub words: Vec<String>,
    /// Answers that are wrong on purpose, before the right ones.
    pub slips: usize,
    pub asked: usize,
}

impl Paper {
    pub const fn new(slips: usize) -> Self {
        Self { words: Vec::new(), slips, asked: 0 }
    }

    pub fn whole(&self) -> String {
        self.words.join(" ")
    }

    /// The typed answer, once the output since the last answer is a question.
    pub fn answer(&mut self, fresh: &str) -> Option<String> {
        if fresh.contains(ENTER) {
            self.words = fresh
                .lines()
                .filter_map(|line| line.trim().split_once(".  "))
                .filter(|(number, _)| number.trim().parse::<u32>().is_ok())
                .map(|(_, word)| word.trim().to_owned())
                .collect();
            assert_eq!(self.words.len(), 11, "{fresh}");
            return Some(String::new());
        }
        if fresh.ends_with(WORDS) {
            return Some(self.whole());
        }
        let (_, place) = fresh.strip_suffix(" of your paper (not shown): ")?.rsplit_once("Word ")?;
        let place: usize = place.parse().unwrap();
        self.asked += 1;
        if self.slips > 0 {
            self.slips -= 1;
            return Some("abacus-not".to_owned());
        }
        Some(self.words[place - 1].to_uppercase())
    }
}
