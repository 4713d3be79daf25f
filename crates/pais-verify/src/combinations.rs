//! The depth-first search over the combinations of what an adversary may know.
//!
//! A combination is built in the order of its elements, so that combinations with a common prefix
//! share its work: the group of the records that fit a prefix is divided once by each element that
//! may follow.

use std::ops::Range;

use rayon::prelude::*;

use super::lists::DividedGroup;
use super::profiles::KnownValue;
use super::verification::VerifyError;

/// What a search divides, and what it finds.
pub(super) trait Combinations {
    /// What an adversary knows by one element of a combination.
    type Known: Copy;

    /// The parts of a group, with the working space to make them.
    type Parts: Default;

    /// Receives the group of the records that fit a combination. Returns whether it is divided
    /// further.
    ///
    /// # Errors
    /// [`VerifyError`] to end the search.
    fn visit(
        &mut self,
        known: &[Self::Known],
        group: &Group<Self::Parts>,
    ) -> Result<bool, VerifyError>;

    /// The elements that a group is divided by.
    fn elements(&self, group: &Group<Self::Parts>) -> Range<usize>;

    /// Divides a group by one of its elements, the first of which is `group.from`. `into` is the result of the
    /// previous element for the same group.
    ///
    /// # Errors
    /// [`VerifyError`] to end the search.
    fn divide(
        &mut self,
        group: &Group<Self::Parts>,
        element: usize,
        into: &mut Self::Parts,
    ) -> Result<(), VerifyError>;

    /// A part of a group that was divided by `element`, by its number; `None` after the last.
    fn part(&self, parts: &Self::Parts, element: usize, number: usize)
    -> Option<Part<Self::Known>>;

    /// Ends the search of one thread.
    fn finish(self)
    where
        Self: Sized,
    {
    }
}

/// A group, as a part of the last division.
pub(super) struct Group<'p, P> {
    pub(super) parts: &'p P,
    /// Its range in the parts.
    pub(super) range: Range<usize>,
    /// The first element that may extend its combination.
    pub(super) from: usize,
    /// How many elements its combination lacks for the maximum size.
    pub(super) need: usize,
}

impl<'p, P> Group<'p, P> {
    /// The group of the empty combination, which is extended by at most `need` elements.
    pub(super) fn all(parts: &'p P, range: Range<usize>, need: usize) -> Self {
        Self {
            parts,
            range,
            from: 0,
            need,
        }
    }
}

/// A part of a group.
pub(super) struct Part<K> {
    pub(super) known: K,
    pub(super) range: Range<usize>,
    /// The first element that may extend its combination.
    pub(super) from: usize,
}

impl DividedGroup {
    /// The group of all members, of the empty combination.
    pub(super) fn group(&self, need: usize) -> Group<'_, Self> {
        Group::all(self, 0..self.members.len(), need)
    }
}

impl Part<KnownValue> {
    /// The part of a group with one value of an attribute that it was divided by.
    pub(super) fn of_attribute(
        parts: &DividedGroup,
        attribute: usize,
        number: usize,
    ) -> Option<Self> {
        let (value, range) = parts.part(number)?;
        Some(Self {
            known: (attribute, value),
            range,
            from: attribute + 1,
        })
    }
}

/// A search of one thread, with its working space.
pub(super) struct Search<C: Combinations> {
    pub(super) combinations: C,
    known: Vec<C::Known>,
    spare: Vec<C::Parts>,
}

impl<C: Combinations> Search<C> {
    pub(super) fn new(combinations: C) -> Self {
        Self {
            combinations,
            known: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Visits a group and the groups of all combinations that extend its own.
    ///
    /// # Errors
    /// As [`Combinations`].
    pub(super) fn visit(&mut self, group: &Group<C::Parts>) -> Result<(), VerifyError> {
        if !self.combinations.visit(&self.known, group)? {
            return Ok(());
        }
        let mut parts = self.spare.pop().unwrap_or_default();
        for element in self.combinations.elements(group) {
            self.combinations.divide(group, element, &mut parts)?;
            let mut number = 0;
            while let Some(part) = self.combinations.part(&parts, element, number) {
                self.visit_part(&parts, part, group.need - 1)?;
                number += 1;
            }
        }
        self.spare.push(parts);
        Ok(())
    }

    fn visit_part(
        &mut self,
        parts: &C::Parts,
        part: Part<C::Known>,
        need: usize,
    ) -> Result<(), VerifyError> {
        self.known.push(part.known);
        self.visit(&Group {
            parts,
            range: part.range,
            from: part.from,
            need,
        })?;
        self.known.pop();
        Ok(())
    }
}

/// Visits the groups of all combinations that extend that of `group`, which itself is not visited.
/// The first elements, and the parts that they make, are searched in parallel.
///
/// # Errors
/// As [`Combinations`].
pub(super) fn search_in_parallel<C: Combinations + Send>(
    start: impl Fn() -> C + Sync,
    group: &Group<C::Parts>,
) -> Result<(), VerifyError>
where
    C::Parts: Send + Sync,
    C::Known: Send,
{
    let elements = start().elements(group).into_par_iter();
    elements.try_for_each(|element| {
        let mut first = start();
        let mut parts = C::Parts::default();
        // The elements are independent here: each is the first that divides the group.
        let group = &Group {
            parts: group.parts,
            range: group.range.clone(),
            from: element,
            need: group.need,
        };
        first.divide(group, element, &mut parts)?;
        let parts = &parts;
        let of_element: Vec<_> = (0..)
            .map_while(|number| first.part(parts, element, number))
            .collect();
        of_element
            .into_par_iter()
            .try_fold(
                || Search::new(start()),
                |mut search, part| {
                    search.visit_part(parts, part, group.need - 1)?;
                    Ok(search)
                },
            )
            .try_for_each(|search: Result<_, VerifyError>| {
                search?.combinations.finish();
                Ok(())
            })
    })
}

/// Calls `visit` with the chosen items and each set of `count` of the items, in the order of the items, until
/// it returns an error.
///
/// # Errors
/// That of `visit`.
pub(super) fn for_each_subset<T: Copy, E>(
    items: &[T],
    count: usize,
    chosen: &mut Vec<T>,
    visit: &mut impl FnMut(&[T]) -> Result<(), E>,
) -> Result<(), E> {
    let Some(fewer) = count.checked_sub(1) else {
        return visit(chosen);
    };
    for first in 0..(items.len() + 1).saturating_sub(count) {
        chosen.push(items[first]);
        let visited = for_each_subset(&items[first + 1..], fewer, chosen, visit);
        chosen.pop();
        visited?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pais_core::subsets::choose;

    use super::for_each_subset;

    #[test]
    fn all_subsets_are_visited_in_order_until_an_error() {
        let mut chosen = vec![9];
        let mut found = Vec::new();
        let mut visit = |subset: &[u32]| {
            found.push(subset.to_vec());
            if found.len() < 4 { Ok(()) } else { Err(()) }
        };
        assert_eq!(
            for_each_subset(&[1, 2, 3, 4], 2, &mut chosen, &mut visit),
            Err(())
        );
        assert_eq!(found, [[9, 1, 2], [9, 1, 3], [9, 1, 4], [9, 2, 3]]);
        assert_eq!(chosen, [9], "what was chosen before is left as it was");
        for (items, count, sets) in [(4, 0, 1), (4, 2, 6), (4, 4, 1), (2, 3, 0)] {
            let mut visited = 0;
            let items: Vec<u32> = (0..items).collect();
            let mut visit = |_: &[u32]| {
                visited += 1;
                Ok::<(), ()>(())
            };
            for_each_subset(&items, count, &mut Vec::new(), &mut visit).unwrap();
            assert_eq!((visited, choose(items.len(), count)), (sets, sets));
        }
    }
}
