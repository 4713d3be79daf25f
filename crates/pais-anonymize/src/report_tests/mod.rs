//! What the reports of whole runs say, and what they disclose.

mod classification;
mod disclosure;
mod distortion;
mod sampling;
mod unchanged;
