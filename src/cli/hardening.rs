//! What keeps keys in the memory of this process.

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

/// Switches core dumps off, and keeps other processes of the same user from reading this one's memory.
/// Called before a key is read. Failures are logged: the keys are then as safe as the system's settings.
pub(crate) fn forbid_dumps() {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let limited = setrlimit(Resource::Core, none);
    let hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    if let Err(error) = limited.and(hidden) {
        tracing::warn!(%error, "core dumps could not be switched off");
    }
}
