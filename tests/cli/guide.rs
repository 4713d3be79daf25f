//! The commands of the guide, in their order, with their printed output.

use crate::document_shell::{DocumentShell, entries};

#[test]
fn the_guide_leads_from_a_file_to_a_granted_release() {
    let mut shell = DocumentShell::new();
    let entries = entries(include_str!("../../docs/guide.md"));
    assert!(entries.len() > 20, "{} commands", entries.len());
    for entry in &entries {
        shell.check(entry);
    }
}
