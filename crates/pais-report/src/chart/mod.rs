//! Charts in SVG and HTML that follow the colours of the page, with text alternatives.

pub mod axis;
pub mod bars;
pub mod line;
