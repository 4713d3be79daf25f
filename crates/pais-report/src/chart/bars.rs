//! Horizontal bars, one per row, with their values as text.

use maud::{Markup, html};

/// One bar.
pub(crate) struct Bar {
    /// What it is.
    pub(crate) name: String,
    /// Its value as text.
    pub(crate) text: String,
    /// Its value, from 0.
    pub(crate) share: f64,
}

/// A figure of bars. `whole` is the value of the full width: figures that are compared have the same. Names and
/// values are text, so that it can be read without the picture.
pub(crate) fn bars(title: &str, bars: &[Bar], whole: f64) -> Markup {
    let length = |bar: &Bar| (bar.share / whole.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
    html! {
        figure.bars {
            figcaption { (title) }
            table {
                tbody {
                    @for bar in bars {
                        @let width = format!("width:{:.1}%", length(bar) * 100.0);
                        tr {
                            th scope="row" { (bar.name) }
                            td.track { @if bar.share > 0.0 { span.fill style=(width) {} } }
                            td.value { (bar.text) }
                        }
                    }
                }
            }
        }
    }
}
