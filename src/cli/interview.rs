//! Puts the open questions of a draft to a person, and reads the answers.

use std::io::{self, BufRead, Read, Write};

use pais_io::draft::{Answer, Doubt};

/// Maximum number of bytes of an answer.
const MOST_BYTES: u64 = 1_000;

/// Asks each question until it is answered. An empty line takes the first choice, and so does the end of
/// the input for the questions that are left.
///
/// # Errors
/// If the answers cannot be read, or the questions not written.
pub(super) fn ask(
    doubts: &[Doubt],
    mut input: impl BufRead,
    mut output: impl Write,
) -> io::Result<Vec<Answer>> {
    let mut answers = Vec::new();
    for (number, doubt) in doubts.iter().enumerate() {
        writeln!(
            output,
            "Question {} of {}: {}",
            number + 1,
            doubts.len(),
            doubt.question
        )?;
        for (choice, number) in doubt.choices.iter().zip(1..) {
            writeln!(output, "  {number}) {choice}{}", meaning(choice))?;
        }
        let choice = loop {
            write!(output, "Answer [1]: ")?;
            output.flush()?;
            let mut line = String::new();
            if (&mut input).take(MOST_BYTES).read_line(&mut line)? == 0 {
                writeln!(output, "\nNo more input: the proposed answers are taken.")?;
                return Ok(answers);
            }
            match chosen(&doubt.choices, line.trim()) {
                Some(choice) => break choice,
                None => writeln!(
                    output,
                    "Give a number from 1 to {}, or an empty line for 1.",
                    doubt.choices.len()
                )?,
            }
        };
        answers.push(Answer {
            column: doubt.column.clone(),
            choice: choice.to_owned(),
        });
    }
    Ok(answers)
}

/// The choice of a line: its number, its word, or the first one for an empty line.
fn chosen<'c>(choices: &'c [String], line: &str) -> Option<&'c str> {
    let number = if line.is_empty() { Ok(1) } else { line.parse() };
    let by_number = number
        .ok()
        .and_then(|number: usize| choices.get(number.checked_sub(1)?));
    let by_word = || choices.iter().find(|choice| *choice == line);
    by_number.or_else(by_word).map(String::as_str)
}

/// What an answer does, beside its name.
fn meaning(choice: &str) -> &'static str {
    match choice {
        "identifier" => ": dropped",
        "subject" => ": not released; all rows of one count as one person",
        "quasi_identifier" => ": other people know it; generalized",
        "sensitive" => ": nobody may infer it; released, and protected by the privacy model",
        "class" => ": what analysts predict; released as it is",
        "insensitive" => ": nobody knows it; released as it is",
        "value" => ": a value as the others",
        "missing" => ": no value; declared as a word for a missing cell",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use pais_io::draft::Doubt;

    use super::ask;

    fn doubt(column: &str) -> Doubt {
        Doubt {
            column: column.to_owned(),
            question: format!("What is `{column}`?"),
            choices: vec!["identifier".to_owned(), "insensitive".to_owned()],
            also: Vec::new(),
        }
    }

    fn answers(input: &str) -> Vec<String> {
        let doubts = [doubt("a"), doubt("b")];
        let mut output = Vec::new();
        let answers = ask(&doubts, input.as_bytes(), &mut output).unwrap();
        let answers = answers.into_iter();
        answers
            .map(|answer| format!("{} {}", answer.column, answer.choice))
            .collect()
    }

    #[test]
    fn answers_are_numbers_or_words_and_an_empty_line_is_the_first_choice() {
        assert_eq!(answers("\n2\n"), ["a identifier", "b insensitive"]);
        assert_eq!(
            answers("insensitive\n \n"),
            ["a insensitive", "b identifier"]
        );
        // Other answers are asked for again.
        assert_eq!(
            answers("0\n3\nyes\n2\n1\n"),
            ["a insensitive", "b identifier"]
        );
        // What is not answered stays as it is proposed.
        assert_eq!(answers("2\n"), ["a insensitive"]);
        assert!(answers("").is_empty());
    }
}
