//! Numbers as people read them.

use serde_json::Value;

/// A share as a percentage: `29 %`, `0.4 %`; two significant digits below 10 %, without trailing zeros.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    shown(share, format!("{percent:.0$}", digits_of(percent)))
}

/// A share as the bound of a sentence with "at most": as [`percent`], and rounded up.
pub(crate) fn percent_at_most(share: f64) -> String {
    let digits = digits_of(share * 100.0);
    let bound = rounded_up(share);
    shown(bound.max(share), format!("{:.digits$}", bound * 100.0))
}

/// The share that [`percent_at_most`] shows.
pub(crate) fn rounded_up(share: f64) -> f64 {
    let percent = share * 100.0;
    let unit = 10f64.powi(digits_of(percent) as i32);
    // 0.07 * 100 is a little more than 7.
    (percent * unit - 1e-9).max(0.0).ceil() / (unit * 100.0)
}

/// A share as a percentage with up to four digits after the point, for a bound that is compared with the share
/// found: `33.3333 %`.
pub(crate) fn fine_percent(share: f64) -> String {
    shown(share, format!("{:.4}", share * 100.0))
}

/// Digits of a percentage after the point.
fn digits_of(percent: f64) -> usize {
    match percent.abs() {
        value if value >= 9.95 || value == 0.0 => 0,
        value if value >= 0.995 => 1,
        value if value >= 0.0995 => 2,
        _ => 3,
    }
}

fn shown(share: f64, text: String) -> String {
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    match text {
        "0" if share > 0.0 => "less than 0.001 %".to_owned(),
        "100" if share < 1.0 => "more than 99 %".to_owned(),
        text => format!("{text} %"),
    }
}

/// A difference of two percentages: `0.5 percentage points`.
pub(crate) fn points(difference: f64) -> String {
    let text = percent(difference);
    let number = text.trim_end_matches(" %");
    let unit = if number == "1" { "point" } else { "points" };
    format!("{number} percentage {unit}")
}

/// A sentence with a capital letter.
pub(crate) fn capital(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

/// A whole number with separators of thousands: `45,222`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 record`, `2 records`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// A number of a document as a percentage; `None` if it is not a number.
pub(crate) fn share(value: &Value) -> Option<String> {
    value.as_f64().map(percent)
}

/// The items of a list of a document; none if it is not a list.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The items of a list of a document as text.
pub(crate) fn texts(value: &Value) -> Vec<String> {
    items(value).iter().map(plain).collect()
}

/// Words joined as in a sentence: `a, b and c`.
pub(crate) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A value of a document as text, numbers with at most six decimals.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(whole), _) => count(whole),
            (None, Some(float)) => decimal(float),
            _ => number.to_string(),
        },
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| format!("{name}: {}", plain(value)));
            fields.collect::<Vec<_>>().join("; ")
        }
    }
}

fn decimal(number: f64) -> String {
    let text = format!("{number:.6}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "0" if number != 0.0 => format!("{number:.1e}"),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{count, list, percent, percent_at_most, plain, points};

    #[test]
    fn shares_are_percentages_of_two_digits() {
        for (share, text) in [
            (0.294872, "29 %"),
            (0.2, "20 %"),
            (0.0, "0 %"),
            (1.0, "100 %"),
            (0.0421, "4.2 %"),
            (0.05, "5 %"),
            (0.00043, "0.043 %"),
            (0.0000001, "less than 0.001 %"),
            (0.9999, "more than 99 %"),
        ] {
            assert_eq!(percent(share), text, "{share}");
        }
    }

    #[test]
    fn a_bound_is_never_below_the_share() {
        for (share, text) in [
            (0.125, "13 %"),
            (1.0 / 3.0, "34 %"),
            (0.07, "7 %"),
            (0.3, "30 %"),
            (1.0 / 12.0, "8.4 %"),
            (0.0, "0 %"),
            (0.995, "100 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(percent_at_most(share), text, "{share}");
        }
        for whole in 0..=100 {
            let share = f64::from(whole) / 100.0;
            assert_eq!(percent_at_most(share), percent(share), "{whole}");
        }
    }

    #[test]
    fn differences_of_percentages_are_percentage_points() {
        assert_eq!(points(0.005), "0.5 percentage points");
        assert_eq!(points(0.01), "1 percentage point");
        assert_eq!(points(0.0), "0 percentage points");
    }

    #[test]
    fn counts_have_separators() {
        assert_eq!(count(7), "7");
        assert_eq!(count(45_222), "45,222");
        assert_eq!(count(1_000_000), "1,000,000");
    }

    #[test]
    fn words_are_joined_as_in_a_sentence() {
        let words = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(list(&words), "a, b and c");
        assert_eq!(list(&words[..1]), "a");
    }

    #[test]
    fn values_are_text_for_people() {
        assert_eq!(plain(&json!(0.5)), "0.5");
        assert_eq!(plain(&json!(0.00000004)), "4.0e-8");
        assert_eq!(plain(&json!({"Surgery": ["a", "b"]})), "Surgery: a, b");
        assert_eq!(plain(&json!(45222)), "45,222");
    }
}
