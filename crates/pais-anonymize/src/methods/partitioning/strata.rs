//! Halves of a group that no single cut divides: the rows of each combination of bounded values
//! are halved by themselves, so that both halves have about the same shares of each value.

use rustc_hash::FxHashMap;

use super::confidence::BoundedCells;
use super::dimension::SplitDimension;
use super::tally::UNBOUNDED;

/// Reorders the rows into two halves along a dimension, each of which has half of the rows with
/// each combination of bounded values, and that both meet *C*. `bounded` has the values of `rows`
/// in their order. Returns the number of rows of the first half; `None` where rounding leaves one
/// of the halves above *C*.
pub(super) fn halve(
    rows: &mut [u32],
    dimension: &SplitDimension,
    bounded: &BoundedCells,
) -> Option<usize> {
    let mut strata: FxHashMap<&[u32], Vec<u32>> = FxHashMap::default();
    for index in 0..rows.len() as u32 {
        let cells = bounded.record(index as usize);
        strata.entry(cells).or_default().push(index);
    }
    let mut strata: Vec<(&[u32], Vec<u32>)> = strata.into_iter().collect();
    strata.sort_unstable_by_key(|(cells, _)| *cells);
    let (mut below, mut above) = (Vec::new(), Vec::new());
    // Rows that exceed no bound, in the order of the dimension.
    let (mut free_below, mut free_above) = (Vec::new(), Vec::new());
    let mut takes_more = false;
    for (cells, mut stratum) in strata {
        stratum.sort_by_key(|&index| dimension.codes[rows[index as usize] as usize]);
        let middle = (stratum.len() + usize::from(takes_more)) / 2;
        let upper = stratum.split_off(middle);
        if cells.iter().all(|&cell| cell == UNBOUNDED) {
            (free_below, free_above) = (stratum, upper);
        } else {
            if (upper.len() + stratum.len()) % 2 == 1 {
                takes_more = !takes_more;
            }
            below.extend(stratum);
            above.extend(upper);
        }
    }
    let tally = |bound: &[u32], free: &[u32]| {
        let mut tally = bounded.empty_tally();
        for &index in bound.iter().chain(free) {
            tally.add(bounded.record(index as usize));
        }
        tally
    };
    let (mut lower, mut upper) = (tally(&below, &free_below), tally(&above, &free_above));
    // The half with one row too many with a value gets free rows of the other.
    while !bounded.allows(&upper) {
        let index = free_below.pop()?;
        lower.remove(bounded.record(index as usize));
        upper.add(bounded.record(index as usize));
        free_above.push(index);
    }
    // The other half has to do without them.
    while !bounded.allows(&lower) {
        let index = free_above.pop()?;
        upper.remove(bounded.record(index as usize));
        lower.add(bounded.record(index as usize));
        free_below.push(index);
        if !bounded.allows(&upper) {
            return None;
        }
    }
    let left = below.len() + free_below.len();
    let order = [below, free_below, above, free_above].concat();
    let order: Vec<u32> = order
        .into_iter()
        .map(|index| rows[index as usize])
        .collect();
    rows.copy_from_slice(&order);
    Some(left)
}
