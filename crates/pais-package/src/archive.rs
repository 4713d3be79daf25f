//! The canonical form of the zip file (APPNOTE.TXT 6.3.10, sections 4.3.7, 4.3.12 and 4.3.16): stored entries,
//! no extra fields, no comment, the earliest date.

/// The first bytes of a local header, a header of the directory, and the end record.
const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;

/// Length of the end record, which is the end of the file.
pub(crate) const END_BYTES: u64 = 22;

/// Length of a local header without the name.
pub(crate) const LOCAL_BYTES: u64 = 30;

/// Length of a header of the directory without the name.
pub(crate) const CENTRAL_BYTES: usize = 46;

/// Maximum number of entries of a package: the files of a dataset of 1,024 columns, and some more.
pub(crate) const MOST_ENTRIES: u64 = 4_096;

/// Longest name of an entry, in bytes.
pub(crate) const LONGEST_NAME: usize = 255;

/// 1980-01-01, the earliest date of a zip file.
const DATE: u16 = 0x21;

/// The version of the format that is needed: 1.0.
const VERSION: u16 = 10;

/// An entry of the zip file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its name: letters, digits, `-`, `_` and `.`.
    pub(crate) name: String,
    /// The CRC-32 of its content.
    pub(crate) crc: u32,
    /// Size of its content. The form is limited to 4 GiB.
    pub(crate) bytes: u32,
}

/// Whether a text is the name of a file in every file system, without a directory.
pub(crate) fn is_name(name: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=LONGEST_NAME).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(is_safe)
}

impl Entry {
    /// The fields that both headers have: version, date, checksum, sizes and length of the name.
    fn common(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(26);
        // Version, flags, method (stored), time, date.
        for number in [VERSION, 0, 0, 0, DATE] {
            bytes.extend(number.to_le_bytes());
        }
        for number in [self.crc, self.bytes, self.bytes] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend((self.name.len() as u16).to_le_bytes());
        // No extra field.
        bytes.extend([0; 2]);
        bytes
    }

    /// The header before the content.
    pub(crate) fn local_header(&self) -> Vec<u8> {
        let mut bytes = LOCAL.to_le_bytes().to_vec();
        bytes.extend(self.common());
        bytes.extend(self.name.as_bytes());
        bytes
    }

    /// The header in the directory. `offset` is where the local header is.
    fn central_header(&self, offset: u32) -> Vec<u8> {
        let mut bytes = CENTRAL.to_le_bytes().to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.common());
        // No comment, first disk, no attributes.
        bytes.extend([0; 10]);
        bytes.extend(offset.to_le_bytes());
        bytes.extend(self.name.as_bytes());
        bytes
    }

    /// The length of the local header and the content.
    fn length(&self) -> u64 {
        LOCAL_BYTES + self.name.len() as u64 + u64::from(self.bytes)
    }
}

/// Whether a package of these entries is within the form: at most 4 GiB and the maximum number of entries.
pub(crate) fn fits(entries: &[Entry]) -> bool {
    let header = |entry: &Entry| CENTRAL_BYTES as u64 + entry.name.len() as u64;
    let bytes: u64 = entries.iter().map(|it| it.length() + header(it)).sum();
    entries.len() as u64 <= MOST_ENTRIES && bytes + END_BYTES <= u32::MAX.into()
}

/// The directory with the end record. `None` above 4 GiB or above the maximum number of entries of the form.
pub(crate) fn directory(entries: &[Entry]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut offset = 0u64;
    for entry in entries {
        bytes.extend(entry.central_header(u32::try_from(offset).ok()?));
        offset += entry.length();
    }
    let start = u32::try_from(offset).ok()?;
    let length = u32::try_from(bytes.len()).ok()?;
    u32::try_from(offset + u64::from(length) + END_BYTES).ok()?;
    let count = u16::try_from(entries.len()).ok()?;
    bytes.extend(END.to_le_bytes());
    // This disk, the disk of the directory, entries on this disk, all entries.
    for number in [0, 0, count, count] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(length.to_le_bytes());
    bytes.extend(start.to_le_bytes());
    // No comment.
    bytes.extend([0; 2]);
    Some(bytes)
}

/// The number of entries, and the start and the length of the directory, of an end record.
pub(crate) fn read_end(bytes: &[u8; END_BYTES as usize]) -> Option<(u64, u64, u64)> {
    let number =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let count = u16::from_le_bytes([bytes[10], bytes[11]]);
    let (length, start) = (number(12), number(16));
    (number(0) == END).then_some((u64::from(count), u64::from(start), u64::from(length)))
}

/// The entries of a directory. `None` where it is cut short, or a name is not one of a package.
pub(crate) fn read_directory(mut bytes: &[u8]) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let (header, rest) = bytes.split_at_checked(CENTRAL_BYTES)?;
        let number = |at: usize| Some(u32::from_le_bytes(header.get(at..at + 4)?.try_into().ok()?));
        let length = u16::from_le_bytes([header[28], header[29]]);
        let (name, rest) = rest.split_at_checked(length.into())?;
        let name = std::str::from_utf8(name)
            .ok()
            .filter(|name| is_name(name))?;
        entries.push(Entry {
            name: name.to_owned(),
            crc: number(16)?,
            bytes: number(24)?,
        });
        bytes = rest;
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::{CENTRAL_BYTES, END_BYTES, Entry, LOCAL_BYTES, MOST_ENTRIES, directory, fits};

    fn entry(bytes: u32) -> Entry {
        Entry {
            name: "a".to_owned(),
            crc: 0,
            bytes,
        }
    }

    #[test]
    fn what_fits_has_a_directory() {
        // What two entries of one letter take beside their contents.
        let headers = 2 * (LOCAL_BYTES + CENTRAL_BYTES as u64 + 2) + END_BYTES;
        let most = u32::MAX - headers as u32;
        for (bytes, expected) in [(most, true), (most + 1, false)] {
            let entries = [entry(1 << 31), entry(bytes - (1 << 31))];
            assert_eq!(fits(&entries), expected);
            assert_eq!(directory(&entries).is_some(), expected);
        }
        let entries = vec![entry(0); MOST_ENTRIES as usize + 1];
        assert!(fits(&entries[1..]) && !fits(&entries));
    }
}
