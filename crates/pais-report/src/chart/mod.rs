//! Charts: rows of bars in a page, and series over an axis.

mod axis;
mod bars;
mod plot;

pub use axis::{Axis, Scale};
pub(crate) use bars::{Bar, bars};
pub use plot::{Chart, DASHES, Series};
