//! Jobs computed by several threads, whose results one thread takes in the order of the jobs.
//!
//! The calling thread takes the results, and helper threads of the same call compute them ahead. If
//! nobody has started the next result, the calling thread computes it itself. The helpers are not
//! threads of the rayon pool: a search can keep that pool busy for minutes, and a client waits for
//! the output that is rendered here.

use std::collections::VecDeque;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};

/// How many results to compute ahead, so that no thread is idle while the calling thread takes one.
pub(super) fn ahead() -> usize {
    2 * rayon::current_num_threads()
}

/// Computes the result of each job and gives `take` an iterator over all results, in the order of
/// the jobs. Returns what `take` returns.
///
/// `make` runs on the calling thread and on helper threads; together they are as many threads as
/// the rayon pool has. `take` and the iterator of jobs run on the calling thread only. At most
/// `ahead` results are being computed or wait to be taken; if `ahead` is 0 there are no helper
/// threads. After `take` has returned, no further job is started.
///
/// # Panics
/// If `make`, `take` or the iterator of jobs panics.
pub(super) fn ordered_parallel<J: Send, R: Send, T>(
    jobs: impl Iterator<Item = J>,
    ahead: usize,
    make: impl Fn(J) -> R + Sync,
    take: impl FnOnce(&mut dyn Iterator<Item = R>) -> T,
) -> T {
    let helpers = (rayon::current_num_threads() - 1).min(ahead);
    if helpers == 0 {
        return take(&mut jobs.map(make));
    }
    let make = &make;
    thread::scope(|scope| {
        let (queue, queued) = bounded::<QueuedJob<J, R>>(ahead);
        for _ in 0..helpers {
            let queued = queued.clone();
            let help = move || queued.into_iter().for_each(|job| job.compute(make));
            // If the system cannot start a thread, the calling thread computes more itself.
            if thread::Builder::new().spawn_scoped(scope, help).is_err() {
                break;
            }
        }
        let mut results = OrderedResults {
            jobs: jobs.fuse(),
            make,
            ahead,
            queue,
            queued,
            pending: VecDeque::with_capacity(ahead),
        };
        results.fill();
        // `results` is dropped here also if `take` panics, which ends the helpers.
        take(&mut results)
    })
}

/// A job that has not been started, and where its result goes.
struct QueuedJob<J, R> {
    job: J,
    result: Sender<R>,
}

impl<J, R> QueuedJob<J, R> {
    fn compute(self, make: &impl Fn(J) -> R) {
        // Fails if the results are not wanted any more.
        let _ = self.result.send(make(self.job));
    }
}

/// Iterator over the results, for the calling thread.
struct OrderedResults<'a, I, M, J, R> {
    jobs: I,
    make: &'a M,
    ahead: usize,
    queue: Sender<QueuedJob<J, R>>,
    /// The receiving end of `queue`: helpers or the calling thread start jobs in this order.
    queued: Receiver<QueuedJob<J, R>>,
    /// The results of the jobs that were queued, starting with the next one to take.
    pending: VecDeque<Receiver<R>>,
}

impl<I: Iterator<Item = J>, M, J, R> OrderedResults<'_, I, M, J, R> {
    /// Queues jobs until `ahead` results are pending.
    fn fill(&mut self) {
        while self.pending.len() < self.ahead
            && let Some(job) = self.jobs.next()
        {
            let (result, receiver) = bounded(1);
            // Has a slot for each pending result, and its other end is held here.
            let _ = self.queue.send(QueuedJob { job, result });
            self.pending.push_back(receiver);
        }
    }
}

impl<I: Iterator<Item = J>, M: Fn(J) -> R, J, R> Iterator for OrderedResults<'_, I, M, J, R> {
    type Item = R;

    fn next(&mut self) -> Option<R> {
        let result = self.pending.pop_front()?;
        while result.is_empty()
            && let Ok(job) = self.queued.try_recv()
        {
            job.compute(self.make);
        }
        // Waits if a helper is computing the result. An error means that it has panicked; the scope
        // propagates its panic.
        let result = result.recv().ok()?;
        self.fill();
        Some(result)
    }
}

impl<I, M, J, R> Drop for OrderedResults<'_, I, M, J, R> {
    /// Leaves the helpers nothing to start.
    fn drop(&mut self) {
        self.queued.try_iter().for_each(drop);
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
