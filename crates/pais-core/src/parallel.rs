//! Work shared among threads, with little code for each call: rayon's adaptors are compiled again for each
//! closure, dozens of functions each time.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// The results of `work` for all items, in the order of the items. An item is a task: it should cost far more
/// than a lock, 20 ns.
///
/// # Panics
/// As `work` does.
///
/// ```
/// let squares = pais_core::parallel::map(1..4, |number| number * number);
/// assert_eq!(squares, [1, 4, 9]);
/// ```
pub fn map<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let tasks = items.into_iter().map(|item| Mutex::new(Task::Open(item)));
    let tasks: Vec<Mutex<Task<T, R>>> = tasks.collect();
    for_each_number(tasks.len(), &|number| {
        // No other thread has this number, so no lock is held while the task runs.
        let put = |task| {
            let mut place = tasks[number].lock();
            let place = place.as_deref_mut().map_err(PoisonError::get_mut);
            std::mem::replace(place.unwrap_or_else(|place| place), task)
        };
        if let Task::Open(item) = put(Task::Taken) {
            put(Task::Done(work(item)));
        }
    });
    let done = tasks.into_iter().filter_map(|task| {
        match task.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Task::Done(result) => Some(result),
            // Unreachable: every task was run.
            Task::Open(_) | Task::Taken => None,
        }
    });
    done.collect()
}

/// An item of [`map`], then its result.
enum Task<T, R> {
    Open(T),
    Taken,
    Done(R),
}

/// Adds up tasks, each of which is added to the sum of a thread by `add`; `join` adds two of these sums, which
/// begin with `zero`. The result must not depend on which tasks are in one sum.
///
/// # Panics
/// As the functions do.
pub fn sum<A: Send>(
    tasks: usize,
    zero: &(dyn Fn() -> A + Sync),
    add: &(dyn Fn(A, usize) -> A + Sync),
    join: &(dyn Fn(A, A) -> A + Sync),
) -> A {
    let tasks = (0..tasks).into_par_iter();
    tasks.fold(zero, add).reduce(zero, join)
}

fn for_each_number(count: usize, work: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().for_each(work);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::{map, sum};

    #[test]
    fn results_are_in_the_order_of_the_items() {
        for count in [0, 1, 2, 1000] {
            let items = (0..count).map(|number| vec![number]);
            let expected: Vec<usize> = (0..count).collect();
            assert_eq!(map(items, |item| item[0]), expected);
        }
    }

    #[test]
    fn parts_of_a_slice_are_changed() {
        let mut numbers = [1; 10];
        let parts = numbers.chunks_mut(3).enumerate();
        map(parts, |(number, part)| part.fill(number));
        assert_eq!(numbers, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]);
    }

    #[test]
    fn tasks_may_share_their_own_work() {
        let sums = map(0..20u64, |number| {
            map(0..number, |part| part).iter().sum::<u64>()
        });
        assert_eq!(sums[19], 171);
    }

    #[test]
    fn each_task_is_in_the_sum_once() {
        let zero = || Vec::new();
        let add = |mut sum: Vec<usize>, task| {
            sum.push(task);
            sum
        };
        let join = |one: Vec<usize>, other| [one, other].concat();
        let tasks = sum(500, &zero, &add, &join);
        assert_eq!(tasks.len(), 500);
        assert_eq!(BTreeSet::from_iter(tasks), (0..500).collect());
    }

    #[test]
    fn a_panic_of_a_task_is_one_of_the_caller() {
        let run = || map(0..10, |number| assert_ne!(number, 7));
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    }
}
