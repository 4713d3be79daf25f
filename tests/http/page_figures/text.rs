//! The text of a page, from which a test takes the figures that it expects, until none is left.

/// The text of a page: a line for each cell, item and paragraph.
pub(super) struct PageText {
    text: String,
    page: String,
}

/// Elements inside of a line.
const INLINE: [&str; 5] = ["strong", "a", "code", "span", "em"];

impl PageText {
    pub(super) fn new(html: &str) -> Self {
        let mut text = String::from("\n");
        let mut rest = html;
        while let Some((before, tag)) = rest.split_once('<') {
            text.push_str(before);
            let (tag, after) = tag.split_once('>').unwrap();
            let name = tag.trim_start_matches('/');
            let name = name.split(char::is_whitespace).next().unwrap();
            rest = after;
            // Pictures have their figures in words beside them.
            for skipped in ["style", "svg"] {
                if tag.split(' ').next() == Some(skipped) {
                    rest = rest.split_once(&format!("</{skipped}>")).unwrap().1;
                }
            }
            if !INLINE.contains(&name) {
                text.push('\n');
            }
        }
        for (escaped, character) in [
            ("&lt;", "<"),
            ("&gt;", ">"),
            ("&quot;", "\""),
            ("&amp;", "&"),
        ] {
            text = text.replace(escaped, character);
        }
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let text: String = lines.map(|line| format!("\n{line}\n")).collect();
        Self {
            page: text.clone(),
            text,
        }
    }

    /// Takes the first occurrence of a text away.
    #[track_caller]
    pub(super) fn take(&mut self, phrase: &str) {
        let Some((before, after)) = self.text.split_once(phrase) else {
            panic!("the page does not say {phrase:?}\n{}", self.page);
        };
        self.text = format!("{before}\u{2026}{after}");
    }

    /// Takes lines that follow each other, such as the cells of a row.
    #[track_caller]
    pub(super) fn take_row(&mut self, cells: &[&str]) {
        let lines: String = cells.iter().map(|cell| format!("\n{cell}\n")).collect();
        self.take(&lines);
    }

    /// Takes the time at which the release was made.
    #[track_caller]
    pub(super) fn take_time(&mut self) {
        let time = self
            .text
            .lines()
            .find(|line| line.ends_with(" UTC"))
            .unwrap()
            .to_owned();
        self.take(&time);
    }

    /// Whether it still says something.
    pub(super) fn says(&self, phrase: &str) -> bool {
        self.text.contains(phrase)
    }

    /// The whole page, for a message.
    pub(super) fn all(&self) -> &str {
        &self.page
    }

    /// Takes an explained field of the annex, and gives its value.
    #[track_caller]
    pub(super) fn take_field(&mut self, name: &str) -> String {
        let start = format!("\n{name}\n\n");
        let Some((_, after)) = self.text.split_once(&start) else {
            panic!("the page has no field {name}\n{}", self.page);
        };
        let mut lines = after.lines().filter(|line| !line.is_empty());
        let (meaning, value) = (
            lines.next().unwrap().to_owned(),
            lines.next().unwrap().to_owned(),
        );
        assert!(meaning.len() > 8, "{name} is not explained: {meaning}");
        self.take(&format!("{start}{meaning}\n\n{value}\n"));
        value
    }

    /// Takes all occurrences of texts that are the same on every page.
    pub(super) fn take_words(&mut self, words: &[&str]) {
        for word in words {
            self.text = self.text.replace(word, "\u{2026}");
        }
    }

    /// Fails for a figure that nobody has taken.
    #[track_caller]
    pub(super) fn assert_no_figure_is_left(&self) {
        let lines = self.text.lines();
        let left = lines.filter(|line| line.contains(|it: char| it.is_ascii_digit()));
        let left: Vec<&str> = left.collect();
        assert!(left.is_empty(), "{left:#?}\n{}", self.page);
    }
}
