//! Work that several threads do and one thread takes, in the order in which it was given out.
//!
//! The calling thread takes the results; threads of this call's own make them ahead of it, and
//! where the next one is neither made nor being made, the calling thread makes it itself. They are
//! not of the rayon pool: that may be busy for minutes with a search, and what is rendered here is
//! what somebody waits for.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// How many results to have ahead, so that no thread idles while the calling one takes a result.
pub(super) fn ahead() -> usize {
    2 * rayon::current_num_threads()
}

/// Makes a result of each job and gives `take` all of them, in the order of the jobs.
///
/// `make` runs on the calling thread and on as many more as make up the number that the rayon pool
/// has, `take` on the calling thread alone. Results that are being made or wait to be taken are
/// `ahead` at most; with none ahead there is no other thread. When `take` returns, no further job
/// is begun.
pub(super) fn in_order<J: Send, R: Send, T>(
    jobs: impl Iterator<Item = J> + Send,
    ahead: usize,
    make: impl Fn(J) -> R + Sync,
    take: impl FnOnce(&mut dyn Iterator<Item = R>) -> T,
) -> T {
    let helpers = (rayon::current_num_threads() - 1).min(ahead);
    if helpers == 0 {
        return take(&mut jobs.map(make));
    }
    let shop = Shop {
        state: Mutex::new(State {
            jobs: Some(jobs),
            results: VecDeque::with_capacity(ahead),
            taken: 0,
            failed: false,
        }),
        next_is_made: Condvar::new(),
        room_is_made: Condvar::new(),
        ahead,
        make,
    };
    thread::scope(|scope| {
        // The helpers leave even when `take` panics, or the scope would wait for them.
        let _closing = OnDrop(|| shop.close());
        for _ in 0..helpers {
            // Where the system has no thread to give, the calling one does more itself.
            let spawned = thread::Builder::new().spawn_scoped(scope, || shop.help());
            if spawned.is_err() {
                break;
            }
        }
        take(&mut Results { shop: &shop })
    })
}

/// What the threads share.
struct Shop<I, R, M> {
    state: Mutex<State<I, R>>,
    next_is_made: Condvar,
    room_is_made: Condvar,
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
    /// Whether a helper panicked; the scope goes on with its panic.
    failed: bool,
}

impl<I, R, M> Shop<I, R, M> {
    /// Nothing panics that holds the lock but the iterator of jobs, and then nothing is lost.
    fn state(&self) -> MutexGuard<'_, State<I, R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No further job is begun, and no result is wanted.
    fn close(&self) {
        let mut state = self.state();
        state.jobs = None;
        state.results.clear();
        self.room_is_made.notify_all();
    }
}

impl<J, R, I, M> Shop<I, R, M>
where
    J: Send,
    R: Send,
    I: Iterator<Item = J> + Send,
    M: Fn(J) -> R + Sync,
{
    /// The next job and its number, if there is room for its result.
    fn claim(&self, state: &mut State<I, R>) -> Option<(usize, J)> {
        if state.results.len() >= self.ahead {
            return None;
        }
        let Some(job) = state.jobs.as_mut()?.next() else {
            state.jobs = None;
            self.room_is_made.notify_all();
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

    /// Works until all jobs are begun.
    fn help(&self) {
        let _leaving = OnDrop(|| {
            if thread::panicking() {
                self.state().failed = true;
                self.next_is_made.notify_one();
            }
        });
        let mut state = self.state();
        while state.jobs.is_some() {
            if let Some(claimed) = self.claim(&mut state) {
                drop(state);
                state = self.work(claimed);
            } else if state.jobs.is_some() {
                let waited = self.room_is_made.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// The results as the calling thread takes them.
struct Results<'a, I, R, M> {
    shop: &'a Shop<I, R, M>,
}

impl<J, R, I, M> Iterator for Results<'_, I, R, M>
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
                shop.room_is_made.notify_one();
                return Some(result);
            }
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

/// Does something when it is dropped.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
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
        // Takes the pool's other thread until all results are taken.
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
