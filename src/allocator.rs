//! The allocator of the programs, mimalloc: when freed pages go back to the system.

use std::ffi::{c_int, c_long};

// The functions below are in it.
use mimalloc as _;

/// The option of mimalloc for how long freed pages are kept before they are returned to the system, and
/// its default, in milliseconds.
const PURGE_DELAY: c_int = 15;
const DEFAULT_DELAY: c_long = 1000;

/// A job frees what a phase of it needed within less than a second, and the next phase takes other pages:
/// with the default the peak of a job on a million rows is 40 MB higher. Returning pages at once takes
/// twice the system time.
const DELAY: c_long = 30;

#[expect(
    unsafe_code,
    reason = "these functions have no safe interface: the first two check the number of the option, and \
              read or write a plain number before there is another thread; the last returns \
              pages that nothing is in"
)]
unsafe extern "C" {
    safe fn mi_option_get(option: c_int) -> c_long;
    safe fn mi_option_set_default(option: c_int, value: c_long);
    safe fn mi_collect(force: bool);
}

/// Sets how long freed pages are kept. Is called before there is another thread.
pub fn set_purge_delay() {
    // Another version of mimalloc may have another option of this number. What MIMALLOC_PURGE_DELAY says is
    // no default, and stays.
    if mi_option_get(PURGE_DELAY) == DEFAULT_DELAY {
        mi_option_set_default(PURGE_DELAY, DELAY);
    }
}

/// Returns the pages to the system that this thread and those of the computing pool have freed.
///
/// Each thread keeps pages for itself. An idle one keeps them until it allocates again, and a phase of a job
/// needs other sizes than the one before.
pub(crate) fn return_freed_pages() {
    rayon::spawn_broadcast(|_| mi_collect(true));
    mi_collect(true);
}
