//! A package is found to be good, and with any byte changed, or any file added, taken or renamed, it
//! is not.

use std::io::Cursor;

use pais_package::{
    Fault, MANIFEST, PackageError, PackageWriter, SigningKey, Verification, verify,
};
use proptest::prelude::*;

const RELEASE: &str = "0198f7a2-0000-7000-8000-000000000000";

fn key(byte: u8) -> SigningKey {
    SigningKey::from_seed(&[byte; 32]).unwrap()
}

fn package(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = PackageWriter::new(Vec::new());
    for (name, content) in files {
        writer.add(name, &mut Cursor::new(content)).unwrap();
    }
    writer.finish(RELEASE, &key(1)).unwrap()
}

fn small() -> Vec<u8> {
    package(&[
        ("data.csv", b"a,b\n1,2\n"),
        ("report.json", b"{}"),
        ("empty", b""),
    ])
}

fn found(package: &[u8]) -> Verification {
    verify(&mut Cursor::new(package), None).unwrap()
}

#[test]
fn a_package_names_its_release_its_files_and_its_key() {
    let found = found(&small());
    assert!(found.holds(), "{:?}", found.faults);
    assert_eq!(found.release_id.as_deref(), Some(RELEASE));
    assert_eq!(found.public_key, Some(key(1).public()));
    let names: Vec<_> = found
        .files
        .iter()
        .map(|file| (&*file.name, file.bytes))
        .collect();
    assert_eq!(names, [("data.csv", 8), ("report.json", 2), ("empty", 0)]);
    // SHA-256 of "{}".
    let digest = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    assert_eq!(found.files[1].sha256, digest);
    assert_eq!(small(), small());
}

#[test]
fn every_flipped_bit_is_found() {
    let good = small();
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            assert!(!found(&bad).holds(), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn every_missing_and_every_added_byte_is_found() {
    let good = small();
    for at in 0..=good.len() {
        assert!(!found(&good[..at.min(good.len() - 1)]).holds());
        for byte in [0, b'a', b'P'] {
            let mut bad = good.clone();
            bad.insert(at, byte);
            assert!(!found(&bad).holds(), "{byte} at {at}");
        }
    }
    assert!(!found(b"").holds());
}

#[test]
fn the_given_key_must_have_signed() {
    let good = small();
    let with = |byte| verify(&mut Cursor::new(&good), Some(&key(byte).public())).unwrap();
    assert!(with(1).holds());
    assert_eq!(with(2).faults, [Fault::OtherKey]);
}

/// The names and contents of the entries of a zip file.
type Entries = Vec<(String, Vec<u8>)>;

/// Writes a zip file whose entries are those of a good package, changed by `change`.
fn repackaged(change: impl Fn(&mut Entries)) -> Vec<u8> {
    let good = small();
    let manifest_at = good
        .windows(13)
        .position(|it| it == MANIFEST.as_bytes())
        .unwrap()
        + 13;
    let directory_at = good.windows(4).position(|it| it == b"PK\x01\x02").unwrap();
    let manifest = good[manifest_at..directory_at].to_vec();
    let mut files = vec![
        ("data.csv".to_owned(), b"a,b\n1,2\n".to_vec()),
        ("report.json".to_owned(), b"{}".to_vec()),
        ("empty".to_owned(), Vec::new()),
        (MANIFEST.to_owned(), manifest),
    ];
    change(&mut files);
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in &files {
        let mut common = vec![10, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
        common.extend(crc32fast::hash(content).to_le_bytes());
        common.extend((content.len() as u32).to_le_bytes());
        common.extend((content.len() as u32).to_le_bytes());
        common.extend([name.len() as u8, 0, 0, 0]);
        directory.extend(b"PK\x01\x02\x0a\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend((out.len() as u32).to_le_bytes());
        directory.extend(name.bytes());
        out.extend(b"PK\x03\x04");
        out.extend(common);
        out.extend(name.bytes());
        out.extend(content);
    }
    let start = out.len() as u32;
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([files.len() as u8, 0, files.len() as u8, 0]);
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    out
}

#[test]
fn added_missing_renamed_and_moved_files_are_found() {
    assert_eq!(repackaged(|_| {}), small());
    let faults = |change: fn(&mut Entries)| found(&repackaged(change)).faults;
    assert_eq!(
        faults(|files| files.insert(0, ("more".to_owned(), Vec::new()))),
        [Fault::NotListed("more".to_owned())]
    );
    assert_eq!(
        faults(|files| drop(files.remove(2))),
        [Fault::Missing("empty".to_owned())]
    );
    assert_eq!(
        faults(|files| files[2].0 = "full".to_owned()),
        [
            Fault::Missing("empty".to_owned()),
            Fault::NotListed("full".to_owned())
        ]
    );
    assert_eq!(
        faults(|files| files[0].1[0] = b'c'),
        [Fault::Changed("data.csv".to_owned())]
    );
    let forms: [fn(&mut Entries); 6] = [
        |files| files.swap(0, 1),
        |files| files[0].0 = "../data.csv".to_owned(),
        |files| files[0].0 = "report.json".to_owned(),
        |files| files[0].0 = "/data.csv".to_owned(),
        |files| files.swap(2, 3),
        |files| files.push(files[3].clone()),
    ];
    for change in forms {
        let faults = faults(change);
        assert!(matches!(faults[..], [Fault::Form(_)]), "{faults:?}");
    }
    let manifests: [fn(&mut Entries); 3] = [
        |files| drop(files.pop()),
        |files| files[3].1.push(b'\n'),
        |files| files[3].1 = vec![b' '; 5 << 20],
    ];
    for change in manifests {
        let faults = faults(change);
        assert!(matches!(faults[..], [Fault::Manifest(_)]), "{faults:?}");
    }
}

#[test]
fn names_are_those_of_files() {
    let mut writer = PackageWriter::new(Vec::new());
    writer.add("a", &mut Cursor::new(b"")).unwrap();
    for name in [
        "a",
        "",
        ".a",
        "a/b",
        "a\\b",
        "\u{e9}",
        MANIFEST,
        &"a".repeat(256),
    ] {
        let refused = writer.add(name, &mut Cursor::new(b"")).unwrap_err();
        assert!(matches!(refused, PackageError::Name), "{name}");
    }
}

proptest! {
    #[test]
    fn any_changed_bytes_are_found(
        content in prop::collection::vec(any::<u8>(), 0..400),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..4),
    ) {
        let good = package(&[("data.csv", &content)]);
        prop_assert!(found(&good).holds());
        let mut bad = good.clone();
        for (at, change) in changes {
            bad[at.index(good.len())] ^= change;
        }
        prop_assert_eq!(found(&bad).holds(), bad == good);
    }
}
