//! Base editions: editions whose cut the later ones continue. A new edition goes below the cut of the previous
//! one.

use std::collections::BTreeMap;

use pais_core::definition::ContinuedCut;
use pais_core::schema::Schema;
use pais_core::taxonomy::Interval;

/// Column to the labels of a cut.
type CutLabels = BTreeMap<String, Vec<String>>;

/// Number of editions of a base after which a new base is tried: a year of months.
const EDITIONS: usize = 12;

/// A new base is tried for an edition with at least this many times the rows of any since the base.
const GROWTH: u64 = 2;

/// Maximum mean NCP of a new base, as a share of that of the edition that continues the old one.
const MOST_LOSS: f64 = 0.9;

/// A published edition.
#[derive(Clone, Debug, PartialEq)]
pub struct EarlierEdition {
    /// The cut of its release; `None` where there is no single one, under local recoding.
    pub cut: Option<BTreeMap<String, Vec<String>>>,
    /// Rows of its release.
    pub rows: u64,
    /// Whether it does not continue the cut of an earlier edition.
    pub is_base: bool,
}

/// The published editions of a publication, as far as the next one depends on them.
pub(crate) struct Bases<'a> {
    /// The cuts of the base editions, oldest first.
    cuts: Vec<&'a CutLabels>,
    /// Rows of the newest base edition and of those that continue it.
    rows: Vec<u64>,
}

impl<'a> Bases<'a> {
    /// Of the published editions, oldest first.
    pub(crate) fn of(editions: &'a [EarlierEdition]) -> Self {
        let newest = editions.iter().rposition(|it| it.is_base);
        let since = editions[newest.unwrap_or(0)..].iter();
        let bases = editions.iter().filter(|it| it.is_base);
        Self {
            cuts: bases.filter_map(|it| it.cut.as_ref()).collect(),
            rows: since.map(|it| it.rows).collect(),
        }
    }

    /// The cut that the next edition continues: that of the newest base edition.
    pub(crate) fn continued(&self) -> Option<ContinuedCut> {
        let newest = self.cuts.last().copied();
        newest.map(|labels| ContinuedCut {
            labels: labels.clone(),
            goes_below: false,
        })
    }

    /// What a new base edition continues: the labels of all base editions, so that its own labels cross none of
    /// them.
    fn extended(&self) -> ContinuedCut {
        let mut labels = CutLabels::new();
        for (column, own) in self.cuts.iter().copied().flatten() {
            labels
                .entry(column.clone())
                .or_default()
                .extend_from_slice(own);
        }
        ContinuedCut {
            labels,
            goes_below: true,
        }
    }

    /// The cut that a new base edition continues, if one is tried in addition to an edition with this many
    /// rows. It depends only on published numbers: those of the editions, and of their rows.
    pub(crate) fn tried(&self, rows: u64) -> Option<ContinuedCut> {
        let most = self.rows.iter().max()?;
        let is_due =
            self.rows.len().is_multiple_of(EDITIONS) || rows >= most.saturating_mul(GROWTH);
        (is_due && !self.cuts.is_empty()).then(|| self.extended())
    }

    /// Whether each interval of a cut that overlaps an interval of a base is inside or around it. Labels of
    /// trees always fit.
    pub(crate) fn fit(&self, schema: &Schema, cut: &CutLabels) -> bool {
        let mut columns = schema.stored();
        columns.all(|column| {
            let scale = column.kind().scale();
            let intervals = |cut: &CutLabels| -> Vec<Interval> {
                let labels = cut.get(column.name()).into_iter().flatten();
                let parsed = labels.filter_map(|label| Interval::parse_on(label, scale?));
                parsed.collect()
            };
            let own = intervals(cut);
            let mut bases = self.cuts.iter().flat_map(|base| intervals(base));
            bases.all(|base| own.iter().all(|own| !crosses(own, &base)))
        })
    }
}

fn crosses(one: &Interval, other: &Interval) -> bool {
    let meet = one.lo.max(other.lo) < one.hi.min(other.hi);
    meet && !one.encloses(other) && !other.encloses(one)
}

/// Whether a new base with this mean NCP loses noticeably less than an edition of the same rows that
/// continues the old one.
pub(crate) fn is_better(base: f64, continued: f64) -> bool {
    base <= MOST_LOSS * continued
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Bases, EarlierEdition};

    fn edition(rows: u64, labels: Option<&[&str]>) -> EarlierEdition {
        let labels = labels.map(|labels| labels.iter().map(|&it| it.to_owned()).collect());
        EarlierEdition {
            is_base: labels.is_some(),
            cut: Some(BTreeMap::from([(
                "a".to_owned(),
                labels.unwrap_or_default(),
            )])),
            rows,
        }
    }

    #[test]
    fn a_base_is_tried_once_in_twelve_editions_and_when_they_grow() {
        let mut editions = vec![edition(100, Some(&["x", "y"]))];
        for number in 1..=30 {
            let bases = Bases::of(&editions);
            let is_due = number % 12 == 0;
            assert_eq!(bases.tried(199).is_some(), is_due, "{number}");
            assert!(bases.tried(200).is_some());
            editions.push(edition(90, None));
        }
        // A size at which a base was tried is not tried again.
        editions.push(edition(200, None));
        assert!(Bases::of(&editions).tried(399).is_none());
        assert!(Bases::of(&editions).tried(400).is_some());
    }

    #[test]
    fn editions_continue_the_newest_base_and_a_new_one_those_of_all() {
        assert!(Bases::of(&[]).continued().is_none());
        assert!(Bases::of(&[]).tried(1).is_none());
        let editions = [
            edition(9, Some(&["x", "y"])),
            edition(9, None),
            edition(9, Some(&["x1", "x2"])),
            edition(9, None),
        ];
        let bases = Bases::of(&editions);
        let continued = bases.continued().unwrap();
        assert_eq!(continued.labels["a"], ["x1", "x2"]);
        assert!(!continued.goes_below);
        let extended = bases.tried(18).unwrap();
        assert_eq!(extended.labels["a"], ["x", "y", "x1", "x2"]);
        assert!(extended.goes_below);
    }

    #[test]
    fn without_a_single_cut_each_edition_is_a_base() {
        let local = EarlierEdition {
            cut: None,
            rows: 9,
            is_base: true,
        };
        let editions = vec![local; 12];
        let bases = Bases::of(&editions);
        assert!(bases.continued().is_none() && bases.tried(9).is_none());
    }
}
