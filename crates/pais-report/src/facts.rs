//! The facts that the sections of a page read from the documents of a release.

use serde_json::Value;

use crate::input::ReportPage;
use crate::words::items;

/// The verdict on a release at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It meets its privacy model.
    Holds,
    /// It does, but what is released unchanged singles out a significant share of its records.
    HoldsButSinglesOut,
    /// It does not meet its privacy model.
    DoesNotHold,
}

impl ReportPage {
    /// The word of the privacy model.
    pub(crate) fn model(&self) -> &str {
        self.privacy["model"].as_str().unwrap_or_default()
    }

    /// Records that fit what an adversary of the model knows, at least.
    pub(crate) fn smallest_known(&self) -> Option<u64> {
        self.utility()["smallest_known_group"].as_u64()
    }

    /// The release at a glance; `None` where nothing was verified.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        let holds = self.verification["holds"].as_bool()?;
        Some(match (holds, self.report["verdict"].as_str()) {
            (false, _) => Verdict::DoesNotHold,
            (true, Some("holds_but_singles_out")) => Verdict::HoldsButSinglesOut,
            (true, _) => Verdict::Holds,
        })
    }

    /// Share of the records, or of the patients, that the columns released unchanged single out together.
    pub(crate) fn singled_out(&self) -> Option<f64> {
        self.risk()["unchanged"]["singled_out_share"].as_f64()
    }

    /// Share of the records, or of the patients, that are unique by all columns that are not sensitive, if the columns other than
    /// quasi-identifiers, which the model does not cover, increase it noticeably.
    pub(crate) fn unique_by_others(&self) -> Option<f64> {
        /// `ACCEPTED_RISK` of `pais-core`, by which verdicts are decided; this crate reads documents only.
        const ACCEPTED: f64 = 0.09;
        let found = &self.report["guidelines"]["opinion_05_2014"]["singling_out"];
        let by_all = found["unique_share"].as_f64()?;
        let by_quasi_identifiers = found["unique_by_quasi_identifiers"].as_f64()?;
        (by_all - by_quasi_identifiers > ACCEPTED).then_some(by_all)
    }

    /// The greatest share of one sensitive value that an adversary of the model finds, and its column.
    pub(crate) fn attribute(&self) -> Option<(f64, &str)> {
        let attribute = &self.risk()["attribute"];
        Some((
            attribute["highest"].as_f64()?,
            attribute["column"].as_str()?,
        ))
    }

    /// The figures of utility.
    pub(crate) fn utility(&self) -> &Value {
        &self.report["utility"]
    }

    /// The figures of risk.
    pub(crate) fn risk(&self) -> &Value {
        &self.report["risk"]
    }

    /// Rows released.
    pub(crate) fn rows(&self) -> u64 {
        self.report["rows"].as_u64().unwrap_or(0)
    }

    /// Rows left out.
    pub(crate) fn suppressed(&self) -> u64 {
        self.report["suppressed_rows"].as_u64().unwrap_or(0)
    }

    /// Whether rows are counted as persons.
    pub(crate) fn counts_persons(&self) -> bool {
        self.report["subjects"].is_u64()
    }

    /// Whether rows are counted, because no column says which of them are of one person.
    pub(crate) fn counts_records(&self) -> bool {
        !self.counts_persons() && self.report["rows"].is_u64()
    }

    /// What groups consist of.
    pub(crate) fn unit(&self) -> (&'static str, &'static str) {
        if self.counts_persons() {
            ("patient", "patients")
        } else {
            ("record", "records")
        }
    }

    /// Whether the table is an anatomy: exact quasi-identifiers and tables of sensitive values.
    pub(crate) fn is_anatomy(&self) -> bool {
        items(&self.tables)
            .iter()
            .any(|table| table["name"] == "qit")
    }

    /// The number of facts that an adversary knows; `None` for every quasi-identifier.
    pub(crate) fn known_facts(&self) -> Option<u64> {
        match self.model() {
            "lkc" => self.privacy["l"].as_u64(),
            _ => None,
        }
    }

    /// What an adversary combines: attributes; with sets among the quasi-identifiers also items.
    pub(crate) fn known_word(&self) -> &'static str {
        let is_set =
            |column: &&Value| column["kind"] == "set" && column["role"] == "quasi_identifier";
        match (self.model(), self.columns().iter().find(is_set)) {
            ("k_m_anonymity", _) => "items",
            ("lkc", Some(_)) => "attributes and items",
            _ => "attributes",
        }
    }

    /// The columns in the codebook.
    pub(crate) fn columns(&self) -> &[Value] {
        items(&self.codebook["columns"])
    }

    /// The greatest confidence in a value that the model bounds, as verified.
    pub(crate) fn bounded_confidence(&self) -> Option<f64> {
        let bounded = &self.verification["greatest_bounded_confidence"];
        bounded.as_f64().filter(|_| self.bound().is_some())
    }

    /// The greatest confidence that the model permits; `None` where it bounds none.
    pub(crate) fn bound(&self) -> Option<f64> {
        let bound = match self.model() {
            "lkc" | "confidence_bounding" => &self.privacy["c"],
            "alpha_k" => &self.privacy["alpha"],
            _ => return None,
        };
        bound.as_f64().filter(|bound| *bound < 1.0)
    }

    /// Whether the bound holds for some sensitive values only, those that the job lists.
    pub(crate) fn lists_values(&self) -> bool {
        let columns = self.privacy["sensitive_values"].as_object();
        columns.is_some_and(|columns| !columns.is_empty())
    }

    /// What the bound is about.
    pub(crate) fn bounded_value(&self) -> &'static str {
        if self.lists_values() {
            "listed sensitive value"
        } else {
            "sensitive value"
        }
    }

    /// The title of the page.
    pub(crate) fn title(&self) -> String {
        let of = self.dataset.as_deref().or(self.name.as_deref());
        match of {
            Some(name) => format!("Report on the release of {name}"),
            None => "Report on a release".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::input::ReportPage;

    /// A release of an exact post code with k-anonymous labels, and one under LKC-privacy, for which an
    /// adversary may know more columns than the model assumes.
    #[test]
    fn columns_that_the_model_does_not_speak_of_are_in_the_summary_where_they_make_records_unique()
    {
        for (by_quasi_identifiers, by_all, found) in [
            (0.0, 0.53, Some(0.53)),
            (0.5, 0.53, None),
            (0.0, 0.05, None),
        ] {
            let singling_out = json!({"unique_by_quasi_identifiers": by_quasi_identifiers, "unique_share": by_all});
            let page = ReportPage {
                report: json!({"guidelines": {"opinion_05_2014": {"singling_out": singling_out}}}),
                ..ReportPage::default()
            };
            assert_eq!(page.unique_by_others(), found);
            assert_eq!(
                page.render().contains("53 % of the records are unique"),
                found.is_some()
            );
        }
        assert_eq!(ReportPage::default().unique_by_others(), None);
    }
}
