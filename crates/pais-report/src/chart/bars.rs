//! Horizontal bars, one a row, with their values as text.

use maud::{Markup, html};

/// One bar.
pub(crate) struct Bar {
    /// What it is.
    pub(crate) name: String,
    /// Its value as text.
    pub(crate) text: String,
    /// Its length, 0 to 1.
    pub(crate) share: f64,
}

/// A figure of bars. Names and values are text, so it reads without the picture.
pub(crate) fn bars(title: &str, bars: &[Bar]) -> Markup {
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
