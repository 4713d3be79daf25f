//! Reads the key-encryption key of a service, as its operator could.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The first key of a key file.
#[allow(dead_code, reason = "each test program uses a part")]
pub fn read(path: &Path) -> [u8; 32] {
    let text = std::fs::read_to_string(path).unwrap();
    let line = text.lines().next().unwrap();
    STANDARD.decode(line).unwrap().try_into().unwrap()
}
