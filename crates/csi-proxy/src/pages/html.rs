//! The page at `/`: the text of `/statusz` for a browser, with links to the other pages and the
//! slow calls marked. It has no script and loads nothing.

const STYLE: &str = ":root { color-scheme: light dark } body \
                     { font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem } nav a \
                     { margin-right: 1rem } pre { white-space: pre-wrap; overflow-wrap: anywhere }";

/// Returns the page with the text of `/statusz`. `refreshes` makes the browser load it again every
/// five seconds.
pub(super) fn page(program: &str, statusz: &str, refreshes: bool) -> String {
    let (refresh, link, action) = if refreshes {
        (
            "<meta http-equiv=\"refresh\" content=\"5\">",
            "/",
            "stop refreshing",
        )
    } else {
        ("", "/?refresh", "refresh every 5 s")
    };
    let links = [
        "statusz",
        "statusz?format=json",
        "flagz",
        "metrics",
        "healthz",
        "readyz",
    ]
    .map(|path| format!("<a href=\"/{path}\">{path}</a>"))
    .join(" ");
    let status = escaped(statusz).replace("\n! ", "\n<mark>slow</mark> ");
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, \
         initial-scale=1\">{refresh}<title>{program}</title><style>{STYLE}</style></head><body>\n\
         <nav><a href=\"{link}\">{action}</a> {links}</nav>\n<pre>{status}</pre></body></html>\n"
    )
}

/// Escapes text, so that a browser shows it and does not interpret it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
