//! Work that many threads do and one thread takes, in the order in which it was given out.
//!
//! The calling thread takes the results. Threads of the current rayon pool make them ahead of it;
//! where the next one is neither made nor being made, the calling thread makes it itself. So it
//! gets on with a pool of one thread, with a pool that is busy with something else, and from within
//! the pool. Only at the end it waits until the pool has come to every call for help, which then
//! finds nothing to do: what the threads share is borrowed from the caller.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rayon::Scope;

/// How many results to have ahead, so that no thread idles while the calling one takes a result.
pub(super) fn ahead() -> usize {
    2 * rayon::current_num_threads()
}

/// Makes a result of each job and gives `take` all of them, in the order of the jobs.
///
/// `make` runs on the calling thread and on the others of the current rayon pool, `take` on the
/// calling thread alone. Results that are being made or wait to be taken are `ahead` at most; with
/// none ahead no other thread is asked. When `take` returns, no further job is begun.
pub(super) fn in_order<J: Send, R: Send, T>(
    jobs: impl Iterator<Item = J> + Send,
    ahead: usize,
    make: impl Fn(J) -> R + Sync,
    take: impl FnOnce(&mut dyn Iterator<Item = R>) -> T,
) -> T {
    // The calling thread counts as one of the pool's, whether it is or not.
    let helpers = match ahead {
        0 => 0,
        _ => rayon::current_num_threads() - 1,
    };
    if helpers == 0 {
        return take(&mut jobs.map(make));
    }
    let shop = Shop {
        state: Mutex::new(State {
            jobs: Some(jobs),
            results: VecDeque::with_capacity(ahead),
            taken: 0,
            helpers: 0,
            failed: false,
        }),
        next_is_made: Condvar::new(),
        ahead,
        make,
    };
    rayon::in_place_scope(|scope| {
        let taken = take(&mut Results {
            shop: &shop,
            scope,
            helpers,
        });
        let mut state = shop.state();
        state.jobs = None;
        state.results.clear();
        taken
    })
}

/// What the threads share.
struct Shop<I, R, M> {
    state: Mutex<State<I, R>>,
    next_is_made: Condvar,
    ahead: usize,
    make: M,
}

struct State<I, R> {
    /// Those not begun; `None` when all are.
    jobs: Option<I>,
    /// From the next one to be taken on; `None` while it is being made.
    results: VecDeque<Option<R>>,
    /// Results taken.
    taken: usize,
    /// Helpers asked for that have not left.
    helpers: usize,
    /// Whether a helper panicked; the scope goes on with its panic.
    failed: bool,
}

impl<J, R, I, M> Shop<I, R, M>
where
    J: Send,
    R: Send,
    I: Iterator<Item = J> + Send,
    M: Fn(J) -> R + Sync,
{
    /// Nothing panics that holds the lock but the iterator of jobs, and then nothing is lost.
    fn state(&self) -> MutexGuard<'_, State<I, R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job and its number, if there is room for its result.
    fn claim(&self, state: &mut State<I, R>) -> Option<(usize, J)> {
        if state.results.len() >= self.ahead {
            return None;
        }
        let Some(job) = state.jobs.as_mut()?.next() else {
            state.jobs = None;
            return None;
        };
        state.results.push_back(None);
        Some((state.taken + state.results.len() - 1, job))
    }

    /// Makes the result of a claimed job, with the lock released meanwhile.
    fn work(&self, (number, job): (usize, J)) -> MutexGuard<'_, State<I, R>> {
        let result = (self.make)(job);
        let mut state = self.state();
        let place = number - state.taken;
        // Nobody wants it any more where there is no place.
        if let Some(slot) = state.results.get_mut(place) {
            *slot = Some(result);
        }
        if place == 0 {
            self.next_is_made.notify_one();
        }
        state
    }

    /// Works while there is room, and leaves: a thread of the pool never waits for the one that
    /// takes.
    fn help(&self) {
        let _leaving = OnPanic(|| {
            self.state().failed = true;
            self.next_is_made.notify_one();
        });
        let mut state = self.state();
        while let Some(claimed) = self.claim(&mut state) {
            drop(state);
            state = self.work(claimed);
        }
        state.helpers -= 1;
    }
}

/// The results as the calling thread takes them.
struct Results<'a, 'scope, I, R, M> {
    shop: &'scope Shop<I, R, M>,
    scope: &'a Scope<'scope>,
    helpers: usize,
}

impl<'scope, J, R, I, M> Iterator for Results<'_, 'scope, I, R, M>
where
    J: Send,
    R: Send,
    I: Iterator<Item = J> + Send,
    M: Fn(J) -> R + Sync,
{
    type Item = R;

    fn next(&mut self) -> Option<R> {
        let shop = self.shop;
        let mut state = shop.state();
        loop {
            if let Some(made) = state.results.front_mut()
                && let Some(result) = made.take()
            {
                state.results.pop_front();
                state.taken += 1;
                self.call_helpers(&mut state);
                return Some(result);
            }
            self.call_helpers(&mut state);
            if let Some(claimed) = shop.claim(&mut state) {
                drop(state);
                state = shop.work(claimed);
            } else if state.results.is_empty() || state.failed {
                return None;
            } else {
                // A thread is at it.
                let waited = shop.next_is_made.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl<'scope, J, R, I, M> Results<'_, 'scope, I, R, M>
where
    J: Send,
    R: Send,
    I: Iterator<Item = J> + Send,
    M: Fn(J) -> R + Sync,
{
    /// Asks for as many helpers as there is room for results.
    fn call_helpers(&self, state: &mut State<I, R>) {
        if state.jobs.is_none() {
            return;
        }
        let room = self.shop.ahead - state.results.len();
        for _ in 0..room.min(self.helpers - state.helpers) {
            let shop = self.shop;
            state.helpers += 1;
            self.scope.spawn(move |_| shop.help());
        }
    }
}

/// Does something when it is dropped by a panic.
struct OnPanic<F: Fn()>(F);

impl<F: Fn()> Drop for OnPanic<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use rayon::{ThreadPool, ThreadPoolBuilder};

    use super::in_order;

    fn pool(threads: usize) -> ThreadPool {
        let builder = ThreadPoolBuilder::new().num_threads(threads);
        builder.build().unwrap()
    }

    #[test]
    fn results_come_in_order_and_few_are_ahead() {
        let expected: Vec<usize> = (0..500).map(|number| number * 2).collect();
        for threads in [1, 2, 4] {
            for ahead in [0, 1, 2, 8] {
                let made = AtomicUsize::new(0);
                let make = |number: usize| {
                    made.fetch_add(1, Ordering::SeqCst);
                    number * 2
                };
                let taken = pool(threads).install(|| {
                    in_order(0..500, ahead, make, |results| {
                        let mut taken = Vec::new();
                        for result in results {
                            taken.push(result);
                            assert!(made.load(Ordering::SeqCst) <= taken.len() + ahead);
                        }
                        taken
                    })
                });
                assert_eq!(taken, expected, "{threads} threads, {ahead} ahead");
            }
        }
        // From a thread that is none of a pool's.
        let taken: Vec<usize> = in_order(0..500, 8, |number| number * 2, |it| it.collect());
        assert_eq!(taken, expected);
    }

    #[test]
    fn a_pool_that_is_busy_is_not_waited_for() {
        let pool = pool(2);
        let (free, held) = mpsc::channel::<()>();
        pool.spawn(move || held.recv().unwrap());
        let taken = pool.install(|| {
            in_order(
                0..100,
                4,
                |number| number,
                |results| {
                    let taken = results.count();
                    free.send(()).unwrap();
                    taken
                },
            )
        });
        assert_eq!(taken, 100);
    }

    #[test]
    fn no_job_is_begun_when_no_result_is_wanted() {
        for threads in [1, 4] {
            let begun = AtomicUsize::new(0);
            let make = |number| {
                begun.fetch_add(1, Ordering::SeqCst);
                number
            };
            let first = pool(threads).install(|| in_order(0..1000, 8, make, |it| it.nth(2)));
            assert_eq!(first, Some(2));
            assert!(begun.load(Ordering::SeqCst) <= 3 + 8);
        }
    }

    #[test]
    fn a_panic_goes_on_and_nothing_hangs() {
        for threads in [1, 2, 4] {
            let make = |number| {
                assert_ne!(number, 50, "as it should");
                number
            };
            let run = || pool(threads).install(|| in_order(0..100, 8, make, |it| it.count()));
            assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
        }
    }

    #[test]
    fn calls_may_be_nested() {
        let expected: usize = (0..100).map(|outer: usize| (0..outer).sum::<usize>()).sum();
        for threads in [1, 2, 4] {
            let make = |outer: usize| -> usize {
                in_order(0..outer, 4, |inner| inner, |results| results.sum())
            };
            let sum: usize = pool(threads).install(|| in_order(0..100, 8, make, |it| it.sum()));
            assert_eq!(sum, expected);
        }
    }
}
