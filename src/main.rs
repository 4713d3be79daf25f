//! The program `pais`.

mod cli;

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Uploads and jobs allocate on many threads in turn. The allocator of glibc keeps what each of them
/// freed in an arena of its own, so the memory of a busy service grows for hours.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
