//! The allocator of the programs, mimalloc: when freed pages go back to the system.

use std::ffi::{c_int, c_long};

// The functions below are in it.
use mimalloc as _;

/// The number of mimalloc's option for how long freed pages are kept before they are returned to the system,
/// and its default, in milliseconds.
const PURGE_DELAY: c_int = 15;
const DEFAULT_DELAY: c_long = 1000;

/// A job frees the memory of one of its phases within less than a second, and the next phase takes other pages:
/// with the default, the peak of a job on a million rows is 40 MB higher. Returning pages immediately takes
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
    // Another version of mimalloc may have another option of this number. A value from MIMALLOC_PURGE_DELAY is
    // not the default, and is kept.
    if mi_option_get(PURGE_DELAY) == DEFAULT_DELAY {
        mi_option_set_default(PURGE_DELAY, DELAY);
    }
}

/// Returns to the system the pages that this thread and the threads of the computing pool have freed.
///
/// Each thread keeps pages for itself. An idle one keeps them until it allocates again, and a phase of a job
/// needs other sizes than the previous one.
pub(crate) fn return_freed_pages() {
    rayon::spawn_broadcast(|_| mi_collect(true));
    mi_collect(true);
}
