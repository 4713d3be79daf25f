//! The program `pais`.

mod cli;

use std::ffi::{c_int, c_long};
use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Uploads and jobs allocate on many threads in turn. The allocator of glibc keeps what each of them
/// freed in an arena of its own, so the memory of a busy service grows for hours.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

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
    reason = "the allocator's options have no safe interface: both functions check the number of the \
              option, and read or write a plain number before there is another thread"
)]
unsafe extern "C" {
    safe fn mi_option_get(option: c_int) -> c_long;
    safe fn mi_option_set_default(option: c_int, value: c_long);
}

fn main() -> ExitCode {
    // mimalloc asks for pages of 2 MB. One of them stays whole while any part of it is in use: the peak of a
    // job is 65 MB higher with them, an idle service takes 15 MB more, and no phase is faster. A kernel without
    // the setting has none of them. PostgreSQL, if it is a child, inherits the setting.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    // Another version of mimalloc may have another option of this number. What MIMALLOC_PURGE_DELAY says is
    // no default, and stays.
    if mi_option_get(PURGE_DELAY) == DEFAULT_DELAY {
        mi_option_set_default(PURGE_DELAY, DELAY);
    }
    cli::main()
}
