//! What was asked, what is guaranteed, and what is not.

use maud::{Markup, html};
use serde_json::Value;

use crate::input::{Reader, ReportPage};
use crate::summary;
use crate::words::{counted, fine_percent, list, plain, texts};

/// The section on what the job asked for.
pub(crate) fn asked(page: &ReportPage) -> Markup {
    html! {
        section #asked {
            h2 { "What was asked" }
            p { (model_in_words(page)) }
            p.note {
                "Quasi-identifiers are the attributes by which others may know a patient; they are "
                @if page.is_anatomy() { "exact here. " } @else { "generalized. " }
                "Identifiers, such as names and numbers, are dropped and not even stored."
            }
            (sensitive_values(&page.privacy["sensitive_values"]))
            (ranges(&page.privacy["min_range"]))
            @if let Some(columns) = page.report["pre_generalization"].as_object() {
                p { "Generalized before anything else, as the job asked:" }
                ul { @for (column, levels) in columns { li { strong { (column) } ": " (levels_in_words(levels)) } } }
            }
        }
    }
}

fn model_in_words(page: &ReportPage) -> String {
    let privacy = &page.privacy;
    let number = |name: &str| plain(&privacy[name]);
    let share = |name: &str| fine_percent(privacy[name].as_f64().unwrap_or(1.0));
    let (_, many) = page.unit();
    let value = page.bounded_value();
    match page.model() {
        "lkc" => {
            let conclusions = match page.bound() {
                Some(_) if page.counts_persons() => format!(
                    ", and no {value} is in more than C = {} of their records.",
                    share("c")
                ),
                Some(_) => format!(
                    ", and can conclude no {value} with a confidence above C = {}.",
                    share("c")
                ),
                None => "; C = 100 % does not limit what can be concluded from them.".to_owned(),
            };
            format!(
                "LKC-privacy: somebody who knows at most L = {} attributes of a patient finds at least K = {} \
                 {many} that fit{conclusions}",
                number("l"),
                number("k")
            )
        }
        "k_anonymity" => format!(
            "k-anonymity: at least k = {} {many} are equal in all quasi-identifiers.",
            number("k")
        ),
        "confidence_bounding" => format!(
            "Confidence bounding: no {value} can be concluded with a confidence above C = {}.",
            share("c")
        ),
        "alpha_k" => format!(
            "(α,k)-anonymity: at least k = {} {many} are equal in all quasi-identifiers, and at \
             most α = {} of {} have a {value}.",
            number("k"),
            share("alpha"),
            if page.counts_persons() {
                "their records"
            } else {
                "them"
            }
        ),
        "l_diversity" => format!(
            "l-diversity over all sensitive attributes together: groups of at least k = {} {many}, \
             in which an adversary who rules out values of some attributes still cannot determine \
             the others (l = {}).",
            number("k"),
            number("l")
        ),
        "k_m_anonymity" => format!(
            "k^m-anonymity: somebody who knows at most m = {} items of a patient's sets finds at least k = {} \
             {many} that fit.",
            number("m"),
            number("k")
        ),
        "distinct_l_diversity" => format!(
            "Distinct l-diversity: groups of at least k = {} {many} with at least l = {} sensitive values.",
            number("k"),
            number("l")
        ),
        "entropy_l_diversity" => format!(
            "Entropy l-diversity: groups of at least k = {} {many} whose sensitive values are as \
             diverse as l = {} equally frequent ones.",
            number("k"),
            number("l")
        ),
        "recursive_cl_diversity" => format!(
            "Recursive (c,l)-diversity: groups of at least k = {} {many} in which the most frequent \
             sensitive value is not too frequent (c = {}, l = {}).",
            number("k"),
            number("c"),
            number("l")
        ),
        "t_closeness" => format!(
            "t-closeness: groups of at least k = {} {many} whose sensitive values are distributed as \
             in the whole table, up to a distance of t = {}.",
            number("k"),
            number("t")
        ),
        _ => format!("The privacy model {}.", plain(privacy)),
    }
}

fn sensitive_values(listed: &Value) -> Markup {
    html! {
        @if let Some(columns) = listed.as_object() {
            @if !columns.is_empty() {
                p { "Sensitive values to which the bound applies:" }
                ul {
                    @for (column, values) in columns {
                        li { strong { (column) } ": " (list(&texts(values))) }
                    }
                }
            }
        }
    }
}

fn ranges(least: &Value) -> Markup {
    html! {
        @if let Some(columns) = least.as_object() {
            p { "Numbers of each group, from the smallest to the greatest, differ by at least:" }
            ul { @for (column, least) in columns { li { strong { (column) } ": " (plain(least)) } } }
        }
    }
}

fn levels_in_words(levels: &Value) -> String {
    let mut text = format!("level {}", plain(&levels["level"]));
    for (level, values) in levels["values"].as_object().into_iter().flatten() {
        text += &format!("; {} at level {level}", texts(values).join(", "));
    }
    text
}

/// The section on what is guaranteed and what is not.
pub(crate) fn guaranteed(page: &ReportPage) -> Markup {
    let (one, many) = page.unit();
    let verification = &page.verification;
    html! {
        section #guaranteed {
            h2 { "What is guaranteed" }
            p {
                "A verifier that is separate from the search has checked the finished table"
                @if let Some(subsets) = verification["subsets"].as_u64() {
                    ", for " (counted(subsets, "combination", "combinations")) " of " (page.known_word())
                }
                "."
            }
            ul {
                li { (summary::protection(page)) }
                @if let (Some(bound), Some(found)) = (page.bound(), page.bounded_confidence()) {
                    li {
                        "The bound on the share of a " (page.bounded_value()) " is " (fine_percent(bound))
                        @if found == 0.0 {
                            "; no record has one."
                            @if matches!(page.reader, Reader::Holder { .. }) {
                                " Check how the values are written."
                            }
                        } @else {
                            "; the greatest share found is " (fine_percent(found)) "."
                        }
                    }
                }
                @if let Some(diversity) = verification["diversity"].as_f64() {
                    li { "The least diverse group has a diversity of " (plain(&diversity.into())) ", in the measure of the model." }
                }
                @if page.counts_persons() {
                    li {
                        "Patients are counted, not records: several records of one patient count once."
                        @if page.bound().is_some() {
                            " The shares of sensitive values are those among records: a patient with many records \
                             counts many times, and one value can be that of more patients than the bound says."
                        }
                    }
                } @else if page.counts_records() {
                    li {
                        "Records are counted, not patients: no column says which records are of one patient, so a \
                         patient with several records counts several times, and all records of a group can be of \
                         one patient."
                    }
                }
                @if verification["missing_sensitive"] == "excluded" && page.bound().is_some() {
                    li { "Shares are among the records that have a value; a missing value protects nobody." }
                }
            }
            h3 { "What is not protected against" }
            ul {
                @if let Some(facts) = page.known_facts() {
                    li { "Somebody who knows more than " (counted(facts, "attribute", "attributes")) " of a patient: see " a href="#risk" { "what risk remains" } "." }
                }
                @if page.bound().is_none() && !page.model().contains("diversity") && page.model() != "t_closeness" {
                    li { "Conclusions from sensitive values that all fitting " (many) " share: this model bounds how few " (many) " fit, not what they have in common." }
                }
                @if page.bound().is_some() && page.lists_values() {
                    li { "Conclusions about sensitive values that are not listed above." }
                }
                li { "Knowledge of another kind, for example that a diagnosis is likely at a certain age." }
                @let unchanged = unchanged(page);
                @if !unchanged.is_empty() {
                    li { "What these columns alone disclose, because they are released unchanged: " (list(&unchanged)) "." }
                }
                @if page.suppression_for == "size_and_confidence" {
                    li { "That a record was left out because of a sensitive value: records could be left out for that reason here." }
                }
                li { "Several releases of the same patients, compared by people who share them: before a grant, a release is checked together with those of the same dataset that its recipient has, not with those of others." }
                li { "The chance to pick the right " (one) " by guessing among those that fit." }
            }
        }
    }
}

fn unchanged(page: &ReportPage) -> Vec<String> {
    let columns = page.columns().iter();
    let columns =
        columns.filter(|column| matches!(column["role"].as_str(), Some("insensitive" | "class")));
    columns.map(|column| plain(&column["name"])).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::input::ReportPage;

    fn page(report: Value) -> String {
        let report = ReportPage {
            report,
            ..ReportPage::default()
        };
        report.render()
    }

    #[test]
    fn a_page_says_whether_patients_or_records_are_counted() {
        let of_records = page(json!({"rows": 60}));
        for sentence in [
            "Records are counted: a patient with several counts several times.",
            "all records of a group can be of one patient.",
        ] {
            assert!(of_records.contains(sentence), "{sentence}");
        }
        let of_patients = page(json!({"rows": 60, "subjects": 30}));
        assert!(!of_patients.contains("those among records"));
        assert!(of_patients.contains("Patients are counted, not records"));
        assert!(!of_patients.contains("Records are counted"));
    }
}
