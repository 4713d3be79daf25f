//! The head of a page: what it is about, and the release in three sentences.

use maud::{Markup, html};

use crate::facts::Verdict;
use crate::input::{ApprovalFact, ApprovalState, EditionFact, Reader, ReportPage};
use crate::unchanged;
use crate::words::{
    capital, count, counted, fine_percent, list, percent, percent_at_most, plain, rounded_up,
};

/// Title, people and purpose.
pub(crate) fn head(page: &ReportPage) -> Markup {
    html! {
        header {
            h1 { (page.title()) }
            @if let Some(description) = &page.description { p.lead { (description) } }
            dl.people {
                @if let Some(holder) = &page.holder { dt { "Released by" } dd { (holder) } }
                (reader(page))
                @if let Some(approval) = &page.approval { dt { "Approval" } dd { (decided(approval)) } }
                @if let Some(at) = &page.made_at { dt { "Made" } dd { (at) } }
                dt { "Size" }
                dd {
                    (counted(page.rows(), "record", "records"))
                    @if let Some(persons) = page.report["subjects"].as_u64() {
                        " of " (counted(persons, "patient", "patients"))
                    }
                }
            }
        }
    }
}

/// Who approved or rejected the release, when and why.
fn decided(approval: &ApprovalFact) -> Markup {
    let state = match approval.state {
        ApprovalState::Pending => "waits for a decision; nobody can fetch it yet",
        ApprovalState::Approved => "approved",
        ApprovalState::Rejected => "rejected: nobody can fetch it",
    };
    html! {
        (state)
        @if let Some(by) = &approval.by { " by " (by) }
        @if let Some(at) = &approval.at { ", " (at) }
        @if let Some(reason) = &approval.reason { p { (reason) } }
    }
}

fn reader(page: &ReportPage) -> Markup {
    html! {
        @match &page.reader {
            Reader::Recipient { recipient, purpose } => {
                @if let Some(recipient) = recipient { dt { "Granted to" } dd { (recipient) } }
                @if let Some(purpose) = purpose { dt { "Purpose" } dd { (purpose) } }
            }
            Reader::Holder { grants } => {
                dt { "Granted to" }
                dd {
                    @if grants.is_empty() { "nobody yet" }
                    @for grant in grants {
                        p {
                            strong { (grant.recipient) } ", for: " (grant.purpose)
                            @if let Some(until) = &grant.until { " (until " (until) ")" }
                        }
                    }
                }
            }
        }
    }
}

/// The release in three sentences.
pub(crate) fn summary(page: &ReportPage) -> Markup {
    html! {
        section.summary #summary aria-label="Summary" {
            @match page.verdict() {
                Some(Verdict::Holds) => p.verdict.yes { "✓ The released table meets its privacy model." },
                Some(Verdict::HoldsButSinglesOut) => p.verdict.but {
                    "The released table meets its privacy model, but what is released unchanged singles out "
                    (page.singled_out().map_or_else(|| "some".to_owned(), percent)) " of its " (page.unit().1) "."
                },
                Some(Verdict::DoesNotHold) => p.verdict.no { "✗ The released table does not meet its privacy model." },
                None => {}
            }
            @if let Some(share) = page.unique_by_others() {
                p.verdict.but {
                    (percent(share)) " of the " (page.unit().1) " are unique by all columns that are not sensitive, \
                     taken together: somebody who knows these values of a patient finds the " (page.unit().0) "."
                }
            }
            @if let Some(unchanged) = unchanged::sentence(page) { p { (unchanged) } }
            p {
                (protection(page))
                @if page.counts_records() { " Records are counted: a patient with several counts several times." }
            }
            p { (cost(page)) }
            @if let Some(edition) = page.edition { p { (rows_of_edition(edition)) } }
            p { (risk(page)) }
        }
    }
}

/// What an adversary who knows a patient finds, in one sentence.
pub(crate) fn protection(page: &ReportPage) -> String {
    let (one, many) = page.unit();
    let who = match page.known_facts() {
        Some(facts) => format!(
            "Who knows up to {} about a patient",
            counted(facts, "fact", "facts")
        ),
        None if page.model() == "k_m_anonymity" => {
            let items = page.privacy["m"].as_u64().unwrap_or(1);
            format!(
                "Who knows up to {} of a patient's sets",
                counted(items, "item", "items")
            )
        }
        None if page.is_anatomy() => {
            let attribute = page.attribute().map(|(share, column)| {
                format!(
                    " At most {} of a group have the same value of {column}.",
                    percent_at_most(share)
                )
            });
            let group = match page.utility()["smallest_group"].as_u64() {
                Some(smallest) => format!(
                    "What is protected is the link to sensitive values: who finds a patient's record \
                     finds a group of at least {} with it, and cannot see which sensitive value of \
                     the group is the patient's.",
                    counted(smallest, one, many)
                ),
                None => "Sensitive values are released by group, not by record.".to_owned(),
            };
            return group + &attribute.unwrap_or_default();
        }
        None => "Who knows all quasi-identifiers of a patient".to_owned(),
    };
    let Some(smallest) = page.smallest_known() else {
        return format!("{who} is faced with several {many} that fit.");
    };
    let found = format!(
        "{who} finds at least {} that fit",
        counted(smallest, one, many)
    );
    match (page.bound(), page.bounded_confidence()) {
        // Nothing was bounded: a misspelt value is one that no record has.
        (Some(_), Some(0.0)) => format!("{found}; no record has a {}.", page.bounded_value()),
        (Some(bound), Some(found_share)) => {
            let values = bounded_values(page);
            // Rounded up, the share could look greater than the bound.
            let share = if rounded_up(found_share) > bound {
                fine_percent(bound)
            } else {
                percent_at_most(found_share)
            };
            if page.counts_persons() {
                let of_patients = of_patients(page, bound).unwrap_or_default();
                format!(
                    "{found}, and no {values} is in more than {share} of their records.{of_patients}"
                )
            } else {
                format!("{found}, and no {values} is shared by more than {share} of them.")
            }
        }
        _ => match page.attribute() {
            // What they have in common is not bounded, so a reader may learn it of all of them.
            Some((share, column)) => format!(
                "{found}. Up to {} of the records that fit have the same value of {column}.",
                percent_at_most(share)
            ),
            None => format!("{found}."),
        },
    }
}

/// How many patients of a group have a value in common, where these are more than the bound permits of records.
fn of_patients(page: &ReportPage, bound: f64) -> Option<String> {
    let share = page.risk()["greatest_confidence_per_subject"].as_f64()?;
    (share > bound).then(|| {
        format!(
            " Of the patients themselves, up to {} of those equal in all quasi-identifiers have one value in common.",
            percent_at_most(share)
        )
    })
}

/// The values that the bound is about, with their columns if these are few.
fn bounded_values(page: &ReportPage) -> String {
    /// Most columns that the sentence names.
    const MOST_NAMED: usize = 3;
    let listed = page.privacy["sensitive_values"].as_object();
    let listed = listed.filter(|columns| !columns.is_empty());
    let columns: Vec<String> = match listed {
        Some(columns) => columns.keys().cloned().collect(),
        None => {
            let columns = page.columns().iter();
            let columns = columns.filter(|column| column["role"] == "sensitive");
            columns.map(|column| plain(&column["name"])).collect()
        }
    };
    if columns.is_empty() || columns.len() > MOST_NAMED {
        return page.bounded_value().to_owned();
    }
    let value = if listed.is_some() {
        "listed value"
    } else {
        "value"
    };
    format!("{value} of {}", list(&columns))
}

/// Which rows an edition does not have.
fn rows_of_edition(edition: EditionFact) -> String {
    let EditionFact {
        number,
        held_back_rows,
    } = edition;
    match held_back_rows {
        Some(0) => {
            format!("It is edition {number} of a publication, and no record waits for a later one.")
        }
        Some(held_back) => format!(
            "It is edition {number} of a publication, and {} for a later one: with earlier editions they would break \
             the privacy model.",
            if held_back == 1 {
                "1 record waits".to_owned()
            } else {
                format!("{} records wait", count(held_back))
            }
        ),
        None => format!(
            "It is edition {number} of a publication, which can hold records back: an edition need not have all \
             records of its period."
        ),
    }
}

fn cost(page: &ReportPage) -> String {
    let suppressed = page.suppressed();
    let left_out = match suppressed {
        0 if page.edition.is_some() => "none of its records was left out".to_owned(),
        0 => "no record was left out".to_owned(),
        number => format!(
            "{} of {} records were left out",
            count(number),
            count(number + page.rows())
        ),
    };
    if page.is_anatomy() {
        return format!(
            "Every attribute is released exactly, sensitive values are counted by group, and {left_out}."
        );
    }
    match page.utility()["ncp"].as_f64() {
        Some(ncp) => format!(
            "{} of the detail of the quasi-identifiers was given up for this on average, and {left_out}.",
            capital(&percent(ncp))
        ),
        None => format!("{}.", capital(&left_out)),
    }
}

fn risk(page: &ReportPage) -> String {
    let (one, many) = page.unit();
    let risk = page.risk();
    let (Some(highest), Some(average)) = (risk["highest"].as_f64(), risk["average"].as_f64())
    else {
        return "No risk was measured.".to_owned();
    };
    let all = match page.known_facts() {
        _ if page.is_anatomy() => {
            "Records themselves are not protected, because quasi-identifiers are exact: somebody who \
             knows all of them of a patient"
        }
        Some(_) => {
            "Somebody who knew every quasi-identifier of a patient, which is more than \
                    this release is protected against,"
        }
        None => "Somebody who knows every quasi-identifier of a patient",
    };
    let worst = if highest >= 0.999 {
        format!("with certainty for the most exposed {many}")
    } else {
        format!(
            "with a chance of {} for the most exposed {one}",
            percent(highest)
        )
    };
    format!(
        "{all} would pick the right {one} with a chance of {} on average, {worst}.",
        percent(average)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::protection;
    use crate::input::{EditionFact, ReportPage};
    use crate::words::percent;

    fn page(privacy: Value) -> ReportPage {
        let column = |name: &str, role: &str| json!({"name": name, "role": role});
        ReportPage {
            privacy,
            verification: json!({"greatest_bounded_confidence": 0.25}),
            report: json!({
                "utility": {"smallest_known_group": 20},
                "risk": {"attribute": {"highest": 0.98, "column": "Diagnose"}},
            }),
            codebook: json!({"columns": [
                column("age", "quasi_identifier"),
                column("Diagnose", "sensitive"),
                column("Produkt", "sensitive"),
            ]}),
            ..ReportPage::default()
        }
    }

    #[test]
    fn an_edition_says_what_it_does_not_have() {
        let mut page = page(json!({"model": "k_anonymity", "k": 5}));
        assert!(page.render().contains("o record was left out"));
        for (held_back_rows, words) in [
            (Some(278), "278 records wait for a later one"),
            (Some(0), "no record waits for a later one"),
            (None, "need not have all records of its period"),
        ] {
            page.edition = Some(EditionFact {
                number: 3,
                held_back_rows,
            });
            let page = page.render();
            assert!(page.contains(words), "{words}");
            assert!(!page.contains("o record was left out"));
        }
    }

    /// The bound is about records: of eight patients, six can share a value that fewer than half of their records have.
    #[test]
    fn the_summary_does_not_take_shares_of_records_for_shares_of_patients() {
        let mut of_patients = page(json!({"model": "lkc", "l": 2, "k": 5, "c": 0.5}));
        of_patients.report["subjects"] = json!(100);
        let said = protection(&of_patients);
        assert!(
            said.ends_with("is in more than 25 % of their records."),
            "{said}"
        );
        of_patients.report["risk"]["greatest_confidence_per_subject"] = json!(0.75);
        let said = protection(&of_patients);
        assert!(said.contains("up to 75 % of those equal"), "{said}");
        of_patients.report["risk"]["greatest_confidence_per_subject"] = json!(0.5);
        assert!(!protection(&of_patients).contains("themselves"));
    }

    #[test]
    fn the_summary_says_what_a_reader_infers_where_the_model_does_not_bound_it() {
        for privacy in [
            json!({"model": "k_anonymity", "k": 20}),
            json!({"model": "distinct_l_diversity", "k": 20, "l": 2}),
            json!({"model": "lkc", "l": 2, "k": 20, "c": 1.0}),
        ] {
            let said = protection(&page(privacy));
            let inferred = format!(
                "that fit. Up to {} of the records that fit have the same value of Diagnose.",
                percent(0.98)
            );
            assert!(said.ends_with(&inferred), "{said}");
        }
    }

    #[test]
    fn the_summary_names_the_columns_that_the_bound_is_about() {
        for (listed, values) in [
            (json!(null), "no value of Diagnose and Produkt is shared"),
            (
                json!({"Produkt": ["x"]}),
                "no listed value of Produkt is shared",
            ),
        ] {
            let bounded =
                json!({"model": "lkc", "l": 2, "k": 20, "c": 0.3, "sensitive_values": listed});
            let said = protection(&page(bounded));
            assert!(said.contains(values), "{said}");
            assert!(!said.contains("98"), "{said}");
        }
    }
}
