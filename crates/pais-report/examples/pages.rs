//! Writes a page of each kind of release into a directory, to be looked at.

#[path = "../tests/pages/mod.rs"]
mod pages;

fn main() -> std::io::Result<()> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    for (name, page) in pages::all() {
        std::fs::write(format!("{dir}/{name}.html"), page.render())?;
    }
    Ok(())
}
