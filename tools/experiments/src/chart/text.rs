//! Text in SVG.

/// With the characters replaced that have a meaning in XML.
pub(super) fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

/// About the width of a text of 13 pixels.
pub(super) fn width(text: &str) -> f64 {
    text.chars().count() as f64 * 7.2
}
