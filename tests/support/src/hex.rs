//! Bytes in hexadecimal.

/// Two lower-case digits for each byte, as the service writes digests.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
