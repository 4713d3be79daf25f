//! Small self-contained pages: no scripts, nothing loaded from elsewhere, every value escaped.

use std::fmt::Write;

use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};

/// Nothing but the page's own styles: even a value that slipped through could do nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;\
padding:0 1rem;color:#1a1a1a;background:#fff}h1{font-size:1.6rem}h2{font-size:1.2rem;\
margin-top:2rem}table{border-collapse:collapse;width:100%}th,td{text-align:left;\
padding:.3rem .6rem;border-bottom:1px solid #ddd;vertical-align:top;overflow-wrap:anywhere}\
td.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}td.b{width:40%}\
td.b span{display:block;height:.8rem;background:#4a78a8;min-width:1px}.yes{color:#17652c}\
.no{color:#a11}small{color:#555}code{overflow-wrap:anywhere}";

/// A text as it may stand in HTML, between tags and in quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            char => escaped.push(char),
        }
    }
    escaped
}

/// A page under construction.
pub(super) struct Page(String);

impl Page {
    /// A page with a title, which is its first heading too.
    pub(super) fn new(title: &str) -> Self {
        let title = escape(title);
        Self(format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
             <style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        ))
    }

    /// A heading.
    pub(super) fn heading(&mut self, text: &str) {
        self.line(format_args!("<h2>{}</h2>", escape(text)));
    }

    /// A paragraph of text.
    pub(super) fn text(&mut self, text: &str) {
        self.line(format_args!("<p>{}</p>", escape(text)));
    }

    /// A line of HTML, in which every value is escaped already.
    pub(super) fn line(&mut self, html: std::fmt::Arguments) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{html}");
    }

    /// The answer with the page.
    pub(super) fn into_response(mut self) -> Response {
        self.0.push_str("</body>\n</html>\n");
        let mut response = Html(self.0).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(POLICY),
        );
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        response
    }
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn markup_becomes_text() {
        assert_eq!(
            escape("<a href=\"x\" id='y'>&</a>"),
            "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;&lt;/a&gt;"
        );
    }
}
