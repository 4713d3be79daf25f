//! Verifies a package.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};

use crate::archive::{
    CENTRAL_BYTES, END_BYTES, Entry, LONGEST_NAME, MOST_ENTRIES, directory, read_directory,
    read_end,
};
use crate::manifest::{MANIFEST, Manifest, PackagedFile};
use crate::signing::PublicKey;
use crate::write::measure;

/// Size of the largest manifest, in bytes: more than [`MOST_ENTRIES`] files need.
const LARGEST_MANIFEST: u32 = 4 << 20;

/// What is wrong with a package.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It is not a zip file in the form of a package: bytes before, between or after its parts have
    /// changed.
    #[error("{0}")]
    Form(&'static str),
    /// The content of a file has changed.
    #[error("{0} has changed: its SHA-256 is not the listed one")]
    Changed(String),
    /// A file is listed but not there.
    #[error("{0} is listed but missing")]
    Missing(String),
    /// A file is there but not listed.
    #[error("{0} is not listed in {MANIFEST}")]
    NotListed(String),
    /// The manifest is not in the form in which it is signed.
    #[error("{0}")]
    Manifest(&'static str),
    /// The signature is not that of the key on the manifest.
    #[error("the signature of {MANIFEST} is not valid")]
    Signature,
    /// The package is signed by another key than the given one.
    #[error("the package is signed by another key than the given one")]
    OtherKey,
}

/// What was found in a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// What is wrong; empty for a good package.
    pub faults: Vec<Fault>,
    /// The release, if the manifest can be read.
    pub release_id: Option<String>,
    /// The listed files.
    pub files: Vec<PackagedFile>,
    /// The key that the package names.
    pub public_key: Option<PublicKey>,
}

impl Verification {
    /// Whether nothing is wrong.
    pub fn holds(&self) -> bool {
        self.faults.is_empty()
    }

    fn failed(fault: Fault) -> Self {
        Self {
            faults: vec![fault],
            release_id: None,
            files: Vec::new(),
            public_key: None,
        }
    }
}

/// Verifies a package. With `pinned`, it must be signed by that key; otherwise by the key that it names itself,
/// which anybody can create.
///
/// Every byte of the file is compared with what it must be: files with their listed SHA-256, the
/// manifest with its signed form, and the rest with the one form of a package. Reads the file once,
/// and needs memory for the directory and the manifest, which are bounded.
///
/// # Errors
/// Those of `package`. A package that does not hold is a result, not an error.
pub fn verify(
    package: &mut (impl Read + Seek),
    pinned: Option<&PublicKey>,
) -> io::Result<Verification> {
    let entries = match entries(package)? {
        Ok(entries) => entries,
        Err(detail) => return Ok(Verification::failed(Fault::Form(detail))),
    };
    let mut written = Vec::new();
    let mut found = BTreeMap::new();
    let mut faults = Vec::new();
    // The content of an entry begins after its header, and its end is where the next one begins.
    package.rewind()?;
    for entry in &entries {
        let expected = entry.local_header();
        let mut header = vec![0; expected.len()];
        package.read_exact(&mut header)?;
        if header != expected {
            let detail = "a header of the zip file is not that of a package";
            return Ok(Verification::failed(Fault::Form(detail)));
        }
        let is_manifest = entry.name == MANIFEST;
        if is_manifest && entry.bytes > LARGEST_MANIFEST {
            let detail = "manifest.json is too large";
            return Ok(Verification::failed(Fault::Manifest(detail)));
        }
        let measured = measure(&mut package.by_ref().take(entry.bytes.into()), |block| {
            if is_manifest {
                written.extend_from_slice(block);
            }
            Ok(())
        })?;
        if measured.crc != entry.crc {
            faults.push(Fault::Form(
                "a checksum of the zip file is not that of its file",
            ));
        }
        if !is_manifest {
            found.insert(entry.name.as_str(), measured);
        }
    }
    let manifest: Manifest = match serde_json::from_slice(&written) {
        Ok(manifest) => manifest,
        Err(_) => {
            let detail = "manifest.json is missing, or is not a manifest";
            return Ok(Verification::failed(Fault::Manifest(detail)));
        }
    };
    for file in &manifest.files {
        match found.remove(file.name.as_str()) {
            None => faults.push(Fault::Missing(file.name.clone())),
            Some(it) if (it.bytes, &it.sha256) != (file.bytes, &file.sha256) => {
                faults.push(Fault::Changed(file.name.clone()));
            }
            Some(_) => {}
        }
    }
    faults.extend(found.keys().map(|&name| Fault::NotListed(name.to_owned())));
    let listed = manifest.files.iter().map(|file| file.name.as_str());
    let is_in_order = listed
        .chain([MANIFEST])
        .eq(entries.iter().map(|entry| &*entry.name));
    if faults.is_empty() && !is_in_order {
        faults.push(Fault::Form(
            "the files are not in the order of manifest.json",
        ));
    }
    if manifest.file().ok() != Some(written) {
        let detail = "manifest.json is not written in the form of a manifest";
        faults.push(Fault::Manifest(detail));
    }
    let public_key = PublicKey::from_document(&manifest.public_key).ok();
    if pinned.is_some() && public_key.as_ref() != pinned {
        faults.push(Fault::OtherKey);
    }
    if !public_key.is_some_and(|key| manifest.is_signed_by(&key)) {
        faults.push(Fault::Signature);
    }
    Ok(Verification {
        faults,
        release_id: Some(manifest.release_id),
        files: manifest.files,
        public_key,
    })
}

/// The entries of a package, if its directory has the one form; else a sentence.
fn entries(package: &mut (impl Read + Seek)) -> io::Result<Result<Vec<Entry>, &'static str>> {
    const NOT_A_PACKAGE: &str =
        "the file is not a package: it does not end like one, or has bytes after its end";
    const OTHER_FORM: &str = "the directory of the zip file is not that of a package";
    let size = package.seek(SeekFrom::End(0))?;
    let Some(end_at) = size.checked_sub(END_BYTES) else {
        return Ok(Err(NOT_A_PACKAGE));
    };
    let mut end = [0; END_BYTES as usize];
    package.seek(SeekFrom::Start(end_at))?;
    package.read_exact(&mut end)?;
    let Some((count, start, length)) = read_end(&end) else {
        return Ok(Err(NOT_A_PACKAGE));
    };
    let longest = count * (CENTRAL_BYTES + LONGEST_NAME) as u64;
    if count > MOST_ENTRIES || length > longest || start + length != end_at {
        return Ok(Err(OTHER_FORM));
    }
    let mut found = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    package.seek(SeekFrom::Start(start))?;
    package.read_exact(&mut found)?;
    let Some(entries) = read_directory(&found) else {
        return Ok(Err(OTHER_FORM));
    };
    let mut names: Vec<&str> = entries.iter().map(|entry| &*entry.name).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Ok(Err("two files of the package have the same name"));
    }
    found.extend(end);
    // So the entries fill the file up to the directory.
    if directory(&entries).as_ref() != Some(&found) {
        return Ok(Err(OTHER_FORM));
    }
    Ok(Ok(entries))
}
