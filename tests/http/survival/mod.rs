//! Attacks on the real program: what one client does must not harm the others.

mod connections;
mod large_json;
mod slow_uploads;
