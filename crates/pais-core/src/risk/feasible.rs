//! What the whole table can meet.

use super::{Coded, Feasible};

/// The unit in which the smallest *C* is given.
const MILLION: u128 = 1_000_000;

/// What a table of this many persons with these sensitive columns can meet.
pub(super) fn of<'a>(sensitive: impl Iterator<Item = &'a Coded<'a>>, persons: u64) -> Feasible {
    let mut feasible = Feasible {
        k_max: persons,
        l_max: None,
        c_min: None,
    };
    for column in sensitive {
        let mut rows = column.values.rows_by_code();
        if let Some(missing) = column.values.missing {
            rows[missing as usize] = 0;
        }
        let with_value: u64 = rows.iter().sum();
        let Some(most) = rows.into_iter().max().filter(|most| *most > 0) else {
            continue;
        };
        let l = with_value / most;
        let millionths = (u128::from(most) * MILLION).div_ceil(u128::from(with_value));
        let c = millionths as f64 / MILLION as f64;
        feasible.l_max = Some(feasible.l_max.map_or(l, |other| other.min(l)));
        feasible.c_min = Some(feasible.c_min.map_or(c, |other| other.max(c)));
    }
    feasible
}
