//! The page as a whole.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::input::ReportPage;
use crate::{
    annex, cost, distributions, guarantee, guidelines, hierarchies, risk, summary, tradeoff,
};

const STYLE: &str = include_str!("page.css");

impl ReportPage {
    /// The page as an HTML document.
    pub fn render(&self) -> String {
        let tradeoff = tradeoff::tradeoff(self);
        let hierarchies = hierarchies::hierarchies(self);
        let distributions = distributions::distributions(self);
        let guidelines = guidelines::guidelines(self);
        let shown = |section: &Markup| !section.0.is_empty();
        let sections = [
            ("asked", "What was asked", true),
            ("guaranteed", "What is guaranteed", true),
            ("cost", "What it cost", true),
            ("risk", "What risk remains", true),
            ("labels", "How far it was generalized", shown(&hierarchies)),
            ("tradeoff", "Other choices", shown(&tradeoff)),
            (
                "distributions",
                "Raw beside released",
                shown(&distributions),
            ),
            ("guidelines", "What guidelines ask", shown(&guidelines)),
            ("annex", "For the record", true),
        ];
        let content = html! {
            (summary::head(self))
            (summary::summary(self))
            nav aria-label="Sections" {
                @for (id, title, _) in sections.iter().filter(|section| section.2) {
                    a href=(format!("#{id}")) { (title) }
                }
            }
            (guarantee::asked(self))
            (guarantee::guaranteed(self))
            (cost::cost(self))
            (risk::risk(self))
            (hierarchies)
            (tradeoff)
            (distributions)
            (guidelines)
            (annex::annex(self))
        };
        document(&self.title(), &content)
    }
}

/// A page as an HTML document.
pub(crate) fn document(title: &str, content: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main { (content) }
            }
        }
    };
    page.into_string()
}
