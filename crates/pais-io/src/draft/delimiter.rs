//! The delimiter of a CSV file, and the names in its header, from the beginning of its text.

use crate::read::{Delimiter, TextParameters};

/// The delimiters that are tried. If several fit, the first one is proposed.
const DELIMITERS: [char; 4] = [',', ';', '\t', '|'];

/// Maximum number of records that are divided to find the delimiter.
const MOST_RECORDS: usize = 100;

/// The beginning of a text divided at one delimiter.
struct Division {
    delimiter: Delimiter,
    /// Cells of the header.
    header: Vec<Vec<u8>>,
    records: usize,
    /// Records with as many cells as the header.
    as_header: usize,
}

impl Division {
    /// Better divisions are greater: those whose records fit the header, and those with more cells.
    fn rank(&self) -> (bool, usize) {
        let fits = self.as_header * 10 >= self.records * 9;
        let cells = self.header.len();
        (fits && cells > 1, cells)
    }
}

/// The delimiter of a text and its header's cells, from the beginning of the text. `is_cut` says whether more
/// text follows. If a delimiter is `given`, it is used.
pub(super) fn find(head: &[u8], is_cut: bool, given: &TextParameters) -> (Delimiter, Vec<Vec<u8>>) {
    let decimal = given.decimal.map(|mark| mark.character());
    let candidates = DELIMITERS.into_iter().filter(|it| Some(*it) != decimal);
    let candidates: Vec<Delimiter> = match given.delimiter {
        Some(given) => vec![given],
        None => candidates.filter_map(Delimiter::new).collect(),
    };
    let mut best: Option<Division> = None;
    for delimiter in candidates {
        let division = divide(head, is_cut, delimiter);
        if best
            .as_ref()
            .is_none_or(|best| division.rank() > best.rank())
        {
            best = Some(division);
        }
    }
    best.map_or((Delimiter::COMMA, Vec::new()), |best| {
        (best.delimiter, best.header)
    })
}

fn divide(head: &[u8], is_cut: bool, delimiter: Delimiter) -> Division {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter.byte())
        .from_reader(head);
    let mut division = Division {
        delimiter,
        header: Vec::new(),
        records: 0,
        as_header: 0,
    };
    let mut record = csv::ByteRecord::new();
    // Reading from memory has no errors; byte records are not decoded.
    while division.records < MOST_RECORDS && reader.read_byte_record(&mut record).unwrap_or(false) {
        // The last record of a part of the text can be a part of a record.
        if is_cut && reader.position().byte() == head.len() as u64 && division.records > 0 {
            break;
        }
        division.records += 1;
        if division.records == 1 {
            division.header = record.iter().map(<[u8]>::to_vec).collect();
        }
        division.as_header += usize::from(record.len() == division.header.len());
    }
    division
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::read::{Delimiter, TextParameters};

    #[test]
    fn records_show_the_delimiter() {
        for (text, delimiter, cells) in [
            ("a,b\n1,2\n", ',', 2),
            ("a;b;c\n1,5;2,5;3\n", ';', 3),
            ("a\tb\n1\t2,3\n", '\t', 2),
            ("a|b\r\n1|2\r\n", '|', 2),
            ("a,b\nx|y,1\nx|z,2\n", ',', 2),
            ("\"a,b\";c\n1;2\n", ';', 2),
            ("a\n1\n", ',', 1),
            ("a;b,c\n1;2,3\n", ',', 2),
            ("a;b\n\"x;y\nz\";2\n", ';', 2),
            ("", ',', 0),
        ] {
            let (found, header) = find(text.as_bytes(), false, &TextParameters::default());
            assert_eq!(
                (char::from(found.byte()), header.len()),
                (delimiter, cells),
                "{text:?}"
            );
        }
        let given = TextParameters {
            delimiter: Delimiter::new('|'),
            ..TextParameters::default()
        };
        assert_eq!(find(b"a,b\n", false, &given).1, [b"a,b".to_vec()]);
        let comma = TextParameters {
            decimal: ",".parse().ok(),
            ..TextParameters::default()
        };
        assert_eq!(find(b"a,b;c\n1,2;3\n", false, &comma).0.byte(), b';');
    }

    #[test]
    fn a_record_that_is_cut_off_does_not_count() {
        let (found, header) = find(b"a;b;c\n1;2;3\n1;", true, &TextParameters::default());
        assert_eq!((found.byte(), header.len()), (b';', 3));
    }
}
