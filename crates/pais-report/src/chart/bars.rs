//! Horizontal bars, one a row, with their values as text.

use maud::{Markup, html};

/// One bar.
pub struct Bar {
    /// What it is.
    pub name: String,
    /// Its value as text.
    pub text: String,
    /// Its length, 0 to 1.
    pub share: f64,
}

/// A figure of bars. Names and values are text, so it reads without the picture.
pub fn bars(title: &str, bars: &[Bar]) -> Markup {
    html! {
        figure.bars {
            figcaption { (title) }
            table {
                tbody {
                    @for bar in bars {
                        @let width = format!("width:{:.1}%", bar.share.clamp(0.0, 1.0) * 100.0);
                        tr {
                            th scope="row" { (bar.name) }
                            td.track { span.fill style=(width) {} }
                            td.value { (bar.text) }
                        }
                    }
                }
            }
        }
    }
}
