// Reads just enough of Rust and Markdown to tell which names a text uses.

use std::collections::BTreeSet;

/// The same code with comments and the contents of texts blanked, so that a word in them is not
/// taken for a name. Lines stay where they are.
pub fn without_comments_and_texts(code: &str) -> String {
    let chars: Vec<char> = code.chars().collect();
    let mut kept = String::with_capacity(code.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => find(&chars, at, "\n"),
            '/' if chars.get(at + 1) == Some(&'*') => end_of_block(&chars, at),
            '"' => end_of_text(&chars, at),
            'r' if !is_word(at.checked_sub(1).map(|before| chars[before])) => {
                match raw_text(&chars, at) {
                    Some(end) => end,
                    None => at,
                }
            }
            '\'' => end_of_char(&chars, at),
            _ => at,
        };
        if end > at {
            kept.extend(chars[at..end].iter().filter(|&&char| char == '\n'));
            kept.push(' ');
            at = end;
        } else {
            kept.push(chars[at]);
            at += 1;
        }
    }
    kept
}

fn is_word(char: Option<char>) -> bool {
    char.is_some_and(|char| char.is_alphanumeric() || char == '_')
}

/// Where `pattern` next starts, or the end.
fn find(chars: &[char], from: usize, pattern: &str) -> usize {
    let pattern: Vec<char> = pattern.chars().collect();
    let found = chars[from..]
        .windows(pattern.len())
        .position(|window| window == pattern);
    found.map_or(chars.len(), |found| from + found)
}

fn end_of_block(chars: &[char], from: usize) -> usize {
    let mut depth = 0;
    let mut at = from;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                at += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    at
}

fn end_of_text(chars: &[char], from: usize) -> usize {
    let mut at = from + 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

fn raw_text(chars: &[char], from: usize) -> Option<usize> {
    let hashes = chars[from + 1..]
        .iter()
        .take_while(|&&char| char == '#')
        .count();
    let open = from + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return None;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    let end = find(chars, open + 1, &close) + close.chars().count();
    Some(end.min(chars.len()))
}

/// The end of a character, or `from` where the quote begins a lifetime.
fn end_of_char(chars: &[char], from: usize) -> usize {
    match (chars.get(from + 1), chars.get(from + 2)) {
        (Some('\\'), _) => (find(chars, from + 3, "'") + 1).min(chars.len()),
        (Some(_), Some('\'')) => from + 3,
        _ => from,
    }
}

/// All identifiers of the code.
pub fn identifiers(code: &str) -> BTreeSet<&str> {
    code.split(|char: char| !is_word(Some(char)))
        .filter(|word| !word.is_empty())
        .collect()
}

/// The first names below the crate's root that the code of a module uses: by `crate::` or the
/// crate's own name, or by as many `super::` as lead there; alone or in a group.
pub fn rooms(code: &str, modules: &[String]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for root in ["crate", "pais"] {
        for (at, _) in code.match_indices(root) {
            let before = code[..at].chars().next_back();
            let rest = &code[at + root.len()..];
            if let Some(rest) = rest.strip_prefix("::")
                && !is_word(before)
            {
                found.extend(heads(rest));
            }
        }
    }
    // `mod tests { use super::super::…; }` climbs one more, which only makes the rule stricter:
    // one `super` of an inline module is not counted as one of the file.
    let climb = "super::".repeat(modules.len());
    for (at, _) in code.match_indices(&climb) {
        let before = &code[..at];
        let after = &code[at + climb.len()..];
        if !before.ends_with("::") && !is_word(before.chars().next_back()) {
            found.extend(heads(after.trim_start_matches("super::")));
        }
    }
    found
}

/// The names that a path goes on with: one, or those at the top of a group.
fn heads(rest: &str) -> Vec<String> {
    let rest = rest.trim_start();
    let name = |text: &str| -> String {
        let text = text.trim_start();
        text.chars()
            .take_while(|&char| is_word(Some(char)))
            .collect()
    };
    let Some(group) = rest.strip_prefix('{') else {
        return vec![name(rest)];
    };
    let mut names = Vec::new();
    let mut depth = 0;
    let mut item = String::new();
    for char in group.chars() {
        match char {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(name(&std::mem::take(&mut item))),
            _ => {}
        }
        if depth == 0 && char != ',' {
            item.push(char);
        }
    }
    names.push(name(&item));
    names
}

/// The targets of a Markdown text's links, code left out.
pub fn links(text: &str) -> Vec<&str> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for (at, _) in line.match_indices("](") {
            if let Some(target) = line[at + 2..].split(')').next() {
                found.push(target);
            }
        }
    }
    found
}

#[test]
fn names_are_told_from_words() {
    let code = r##"
        use crate::{store, table::{csv, Schema}, domain::Code};
        // crate::http::router is only spoken of
        fn f<'a>(x: &'a str) -> char { let _ = "crate::jobs"; let _ = r#"crate::cli"#; '"' }
        use super::super::engine::Phase; use super::near;
    "##;
    let code = without_comments_and_texts(code);
    let modules = ["privacy".to_owned(), "lkc".to_owned()];
    let named: Vec<String> = rooms(&code, &modules).into_iter().collect();
    assert_eq!(named, ["domain", "engine", "store", "table"]);
    assert!(identifiers(&code).contains("near"));
    assert_eq!(links("a [b](c.md#d) and\n```\n[e](f)\n```"), ["c.md#d"]);
}
