//! Bodies that are read as they stream: never held in memory as a whole.

pub(super) mod incoming;
pub mod pace;
pub(crate) mod slots;

pub use pace::UploadPace;
