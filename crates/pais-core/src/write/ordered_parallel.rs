//! Jobs computed by several threads, whose results one thread takes in the order of the jobs.
//!
//! The calling thread takes the results, and helper threads of the same call compute them ahead. If
//! nobody has started the next result, the calling thread computes it itself. The helpers are not
//! threads of the rayon pool: a search can keep that pool busy for minutes, and a client waits for
//! the output that is rendered here.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// How many results to compute ahead, so that no thread is idle while the calling thread takes one.
pub(super) fn ahead() -> usize {
    2 * rayon::current_num_threads()
}

/// Computes the result of each job and gives `take` an iterator over all results, in the order of
/// the jobs. Returns what `take` returns.
///
/// `make` runs on the calling thread and on helper threads; together they are as many threads as
/// the rayon pool has. `take` runs on the calling thread only. At most `ahead` results are being
/// computed or wait to be taken; if `ahead` is 0 there are no helper threads. After `take` has
/// returned, no further job is started.
pub(super) fn ordered_parallel<J: Send, R: Send, T>(
    jobs: impl Iterator<Item = J> + Send,
    ahead: usize,
    make: impl Fn(J) -> R + Sync,
    take: impl FnOnce(&mut dyn Iterator<Item = R>) -> T,
) -> T {
    let helpers = (rayon::current_num_threads() - 1).min(ahead);
    if helpers == 0 {
        return take(&mut jobs.map(make));
    }
    let pool = OrderedPool {
        state: Mutex::new(PoolState {
            jobs: Some(jobs),
            results: VecDeque::with_capacity(ahead),
            taken: 0,
            failed: false,
        }),
        next_is_ready: Condvar::new(),
        slot_is_free: Condvar::new(),
        ahead,
        make,
    };
    thread::scope(|scope| {
        // Ends the helpers also if `take` panics; otherwise the scope would wait for them forever.
        let _closing = OnDrop(|| pool.close());
        for _ in 0..helpers {
            // If the system cannot start a thread, the calling thread computes more itself.
            let spawned = thread::Builder::new().spawn_scoped(scope, || pool.run_helper());
            if spawned.is_err() {
                break;
            }
        }
        take(&mut OrderedResults { pool: &pool })
    })
}

/// The state that the threads share.
struct OrderedPool<I, R, M> {
    state: Mutex<PoolState<I, R>>,
    next_is_ready: Condvar,
    slot_is_free: Condvar,
    ahead: usize,
    make: M,
}

struct PoolState<I, R> {
    /// The jobs that are not started; `None` when all are started.
    jobs: Option<I>,
    /// Results, starting with the next one to take; `None` while a result is being computed.
    results: VecDeque<Option<R>>,
    /// Number of results taken.
    taken: usize,
    /// Whether a helper panicked; the scope propagates its panic.
    failed: bool,
}

impl<I, R, M> OrderedPool<I, R, M> {
    /// Locks the state. A poisoned lock is ignored: only the iterator of jobs can panic while the
    /// lock is held, and the state is consistent then.
    fn state(&self) -> MutexGuard<'_, PoolState<I, R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts no further job and discards the results that were not taken.
    fn close(&self) {
        let mut state = self.state();
        state.jobs = None;
        state.results.clear();
        self.slot_is_free.notify_all();
    }
}

impl<J, R, I, M> OrderedPool<I, R, M>
where
    J: Send,
    R: Send,
    I: Iterator<Item = J> + Send,
    M: Fn(J) -> R + Sync,
{
    /// Takes the next job and its number, if fewer than `ahead` results are pending.
    fn claim(&self, state: &mut PoolState<I, R>) -> Option<(usize, J)> {
        if state.results.len() >= self.ahead {
            return None;
        }
        let Some(job) = state.jobs.as_mut()?.next() else {
            state.jobs = None;
            self.slot_is_free.notify_all();
            return None;
        };
        state.results.push_back(None);
        Some((state.taken + state.results.len() - 1, job))
    }

    /// Computes the result of a claimed job without holding the lock. Returns the lock.
    fn compute(&self, (number, job): (usize, J)) -> MutexGuard<'_, PoolState<I, R>> {
        let result = (self.make)(job);
        let mut state = self.state();
        let position = number - state.taken;
        // After `close` there is no slot, and the result is dropped.
        if let Some(slot) = state.results.get_mut(position) {
            *slot = Some(result);
        }
        if position == 0 {
            self.next_is_ready.notify_one();
        }
        state
    }

    /// The loop of a helper thread: computes results until all jobs are started.
    fn run_helper(&self) {
        let _on_panic = OnDrop(|| {
            if thread::panicking() {
                self.state().failed = true;
                self.next_is_ready.notify_one();
            }
        });
        let mut state = self.state();
        while state.jobs.is_some() {
            if let Some(claimed) = self.claim(&mut state) {
                drop(state);
                state = self.compute(claimed);
            } else if state.jobs.is_some() {
                let waited = self.slot_is_free.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// Iterator over the results, for the calling thread.
struct OrderedResults<'a, I, R, M> {
    pool: &'a OrderedPool<I, R, M>,
}

impl<J, R, I, M> Iterator for OrderedResults<'_, I, R, M>
where
    J: Send,
    R: Send,
    I: Iterator<Item = J> + Send,
    M: Fn(J) -> R + Sync,
{
    type Item = R;

    fn next(&mut self) -> Option<R> {
        let pool = self.pool;
        let mut state = pool.state();
        loop {
            if let Some(made) = state.results.front_mut()
                && let Some(result) = made.take()
            {
                state.results.pop_front();
                state.taken += 1;
                pool.slot_is_free.notify_one();
                return Some(result);
            }
            if let Some(claimed) = pool.claim(&mut state) {
                drop(state);
                state = pool.compute(claimed);
            } else if state.results.is_empty() || state.failed {
                return None;
            } else {
                // A helper is computing the next result.
                let waited = pool.next_is_ready.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// Calls a function when it is dropped.
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

    use super::ordered_parallel;

    fn pool(threads: usize) -> ThreadPool {
        let builder = ThreadPoolBuilder::new().num_threads(threads);
        builder.build().unwrap()
    }

    #[test]
    fn results_are_in_order_and_at_most_ahead_are_pending() {
        let expected: Vec<usize> = (0..500).map(|number| number * 2).collect();
        for threads in [1, 2, 4] {
            for ahead in [0, 1, 2, 8] {
                let made = AtomicUsize::new(0);
                let make = |number: usize| {
                    made.fetch_add(1, Ordering::SeqCst);
                    number * 2
                };
                let taken = pool(threads).install(|| {
                    ordered_parallel(0..500, ahead, make, |results| {
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
        // From a thread outside every pool.
        let taken: Vec<usize> = ordered_parallel(0..500, 8, |number| number * 2, |it| it.collect());
        assert_eq!(taken, expected);
    }

    #[test]
    fn a_busy_rayon_pool_does_not_block_the_call() {
        let pool = pool(2);
        let (free, held) = mpsc::channel::<()>();
        // Occupies the pool's other thread until all results are taken.
        pool.spawn(move || held.recv().unwrap());
        let taken = pool.install(|| {
            ordered_parallel(
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
    fn no_job_is_started_after_take_returns() {
        for threads in [1, 4] {
            let started = AtomicUsize::new(0);
            let make = |number| {
                started.fetch_add(1, Ordering::SeqCst);
                number
            };
            let first =
                pool(threads).install(|| ordered_parallel(0..1000, 8, make, |it| it.nth(2)));
            assert_eq!(first, Some(2));
            assert!(started.load(Ordering::SeqCst) <= 3 + 8);
        }
    }

    #[test]
    fn a_panic_is_propagated_and_nothing_hangs() {
        for threads in [1, 2, 4] {
            let make = |number| {
                assert_ne!(number, 50, "the expected panic");
                number
            };
            let run =
                || pool(threads).install(|| ordered_parallel(0..100, 8, make, |it| it.count()));
            assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
        }
    }

    #[test]
    fn calls_may_be_nested() {
        let expected: usize = (0..100).map(|outer: usize| (0..outer).sum::<usize>()).sum();
        for threads in [1, 2, 4] {
            let make = |outer: usize| -> usize {
                ordered_parallel(0..outer, 4, |inner| inner, |results| results.sum())
            };
            let sum: usize =
                pool(threads).install(|| ordered_parallel(0..100, 8, make, |it| it.sum()));
            assert_eq!(sum, expected);
        }
    }
}
