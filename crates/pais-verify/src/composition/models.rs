//! Which models have to hold on a meet.

use std::num::NonZeroU32;

use pais_core::model::PrivacyModel;

use super::composed_release::PlacedRelease;

/// The releases whose models have to hold: of each that a model of another one implies, not that
/// one but the weaker. A recipient who has the release with the weaker model can know as much from
/// that one alone.
pub(super) fn models_to_decide<'p, 'a>(
    releases: &[&'p PlacedRelease<'a>],
) -> Vec<&'p PlacedRelease<'a>> {
    let mut kept: Vec<&PlacedRelease> = Vec::new();
    for &release in releases {
        if kept.iter().any(|other| implies(release, other)) {
            continue;
        }
        kept.retain(|other| !implies(other, release));
        kept.push(release);
    }
    kept
}

/// Whether every table that meets the model of `stronger` meets that of `weaker`.
fn implies(stronger: &PlacedRelease, weaker: &PlacedRelease) -> bool {
    let (stronger, weaker) = (stronger.release, weaker.release);
    if stronger.quasi_identifiers != weaker.quasi_identifiers
        || stronger.sensitive != weaker.sensitive
    {
        return false;
    }
    match (stronger.model, weaker.model) {
        (PrivacyModel::Lkc(strong), PrivacyModel::Lkc(weak)) => {
            let length = |l: Option<NonZeroU32>| l.map_or(u32::MAX, NonZeroU32::get);
            let bounds_the_same = strong.sensitive_values == weak.sensitive_values
                && strong.missing_sensitive == weak.missing_sensitive;
            length(strong.l) >= length(weak.l)
                && strong.k >= weak.k
                && (weak.c.is_unbounded()
                    || (bounds_the_same && strong.c.as_f64() <= weak.c.as_f64()))
        }
        (PrivacyModel::KmAnonymity(strong), PrivacyModel::KmAnonymity(weak)) => {
            strong.k >= weak.k && strong.m >= weak.m
        }
        (PrivacyModel::Groups(strong), PrivacyModel::Groups(weak)) => {
            strong.k >= weak.k && strong.diversity == weak.diversity
        }
        _ => false,
    }
}
