//! Tests that released tables have the same bytes for every number of threads.

use std::io::{self, Write};

use pais_core::table::{Column, Form, NULL_CODE, ReleasedColumn, ReleasedTable};
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::csv::{Cells, csv_text};
use super::ndjson::ndjson_text;
use super::parquet::write_in_groups;

/// Number of rows of a block.
const BLOCK: usize = 8;

/// Numbers of rows just below and above the end of a block.
const ROWS: [usize; 6] = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 9 * BLOCK + 3];

/// A table with labels, text that needs quotes, numbers and sets, and with null and missing cells.
pub(super) fn table(rows: usize) -> ReleasedTable {
    let column = |name: &str, form, step: usize, texts: &[&str]| ReleasedColumn {
        name: name.into(),
        form,
        column: Column {
            dictionary: texts.iter().map(|text| (*text).into()).collect(),
            codes: (0..rows)
                .map(|row| match row * step % (texts.len() + 1) {
                    null if null == texts.len() => NULL_CODE,
                    code => code as u32,
                })
                .collect(),
        },
        missing: vec!["NA".into()],
    };
    let set = Form::Set { separator: '|' };
    let number = Form::Number;
    ReleasedTable {
        name: "data".into(),
        rows,
        columns: vec![
            column("age", Form::Generalized, 1, &["[1,30)", "[30,60)", "7"]),
            column("no\"te", Form::Text, 3, &["a,b", "\"", "x\ny", "", "NA"]),
            column("n", number, 2, &["1", "NA", "-7", "007"]),
            column("decimal", number, 5, &["1.50", "+.5", "NA"]),
            column("items", set, 1, &["a|b", "", "NA", "c"]),
        ],
    }
}

/// The three formats in small blocks.
const FORMATS: [fn(&ReleasedTable, &mut FailingWriter) -> io::Result<()>; 3] = [
    |table, out| csv_text(table, Cells::Exact).write_in_blocks(BLOCK, out),
    |table, out| ndjson_text(table).write_in_blocks(BLOCK, out),
    |table, out| write_in_groups(table, 2 * BLOCK, BLOCK, out),
];

#[test]
fn safe_csv_has_no_formulas_and_keeps_numbers() {
    let column = |name: &str, form, texts: &[&str]| ReleasedColumn {
        name: name.into(),
        form,
        column: Column {
            dictionary: texts.iter().map(|text| (*text).into()).collect(),
            codes: (0..texts.len() as u32).collect(),
        },
        missing: Vec::new(),
    };
    let note = ["=1+1", "+a", "-5", "@x,y", "\tz", "\rz", "a=1", ""];
    let number = ["-5", "+.5", "7", "-inf", "-5|x", "-", "1", "2"];
    let group = ["-5", "[-5,7)", "=x", "-1e3", "a", "b", "c", "d"];
    let table = ReleasedTable {
        name: "data".into(),
        rows: 8,
        columns: vec![
            column("=note", Form::Text, &note),
            column("n", Form::Number, &number),
            column("g", Form::Generalized, &group),
        ],
    };
    let text = |write: fn(&ReleasedTable, &mut Vec<u8>) -> io::Result<()>| {
        let mut out = Vec::new();
        write(&table, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let exact = "=note,n,g\n=1+1,-5,-5\n+a,+.5,\"[-5,7)\"\n-5,7,=x\n\"@x,y\",-inf,-1e3\n\
                 \tz,-5|x,a\n\"\rz\",-,b\na=1,1,c\n,2,d\n";
    let safe = "'=note,n,g\n'=1+1,-5,-5\n'+a,+.5,\"[-5,7)\"\n'-5,7,'=x\n\"'@x,y\",'-inf,-1e3\n\
                '\tz,'-5|x,a\n\"'\rz\",'-,b\na=1,1,c\n,2,d\n";
    assert_eq!(text(super::csv), exact);
    assert_eq!(text(super::safe_csv), safe);
}

#[test]
fn cells_of_every_length_are_written_unchanged() {
    let texts: Vec<String> = (1..100).map(|length| "x".repeat(length)).collect();
    let mut table = table(texts.len());
    table.columns.truncate(2);
    for column in &mut table.columns {
        column.column = Column {
            dictionary: texts.iter().map(|text| text.as_str().into()).collect(),
            codes: (0..texts.len() as u32).collect(),
        };
    }
    table.columns[1].name = "note".into();
    let (mut csv, mut ndjson) = (Vec::new(), Vec::new());
    crate::write::csv(&table, &mut csv).unwrap();
    crate::write::ndjson(&table, &mut ndjson).unwrap();
    let lines = texts.iter().map(|text| format!("{text},{text}\n"));
    let expected = "age,note\n".to_owned() + &lines.collect::<String>();
    assert_eq!(String::from_utf8(csv).unwrap(), expected);
    let lines = texts.iter();
    let lines = lines.map(|text| format!("{{\"age\":\"{text}\",\"note\":\"{text}\"}}\n"));
    assert_eq!(
        String::from_utf8(ndjson).unwrap(),
        lines.collect::<String>()
    );
}

/// A writer that accepts `most` bytes and then fails.
struct FailingWriter {
    kept: Vec<u8>,
    most: usize,
}

impl FailingWriter {
    fn after(most: usize) -> Self {
        let kept = Vec::new();
        Self { kept, most }
    }
}

impl Write for FailingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.kept.len() + bytes.len() > self.most {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                "the writer is full",
            ));
        }
        self.kept.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn pool(threads: usize) -> ThreadPool {
    let builder = ThreadPoolBuilder::new().num_threads(threads);
    builder.build().unwrap()
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    let (one, four) = (pool(1), pool(4));
    for rows in ROWS {
        let table = table(rows);
        for (index, write) in FORMATS.iter().enumerate() {
            let render = || {
                let mut out = FailingWriter::after(usize::MAX);
                write(&table, &mut out).unwrap();
                out.kept
            };
            let expected = one.install(render);
            assert!(
                four.install(render) == expected,
                "format {index}, {rows} rows"
            );
            // From a thread outside every pool.
            assert!(render() == expected, "format {index}, {rows} rows");
        }
    }
}

#[test]
fn the_text_does_not_depend_on_the_block_size() {
    for rows in ROWS {
        let table = table(rows);
        for lines in [csv_text(&table, Cells::Exact), ndjson_text(&table)] {
            let (mut small, mut whole, mut default) = (Vec::new(), Vec::new(), Vec::new());
            pool(4).install(|| lines.write_in_blocks(BLOCK, &mut small).unwrap());
            lines.write_in_blocks(rows.max(1), &mut whole).unwrap();
            lines.write(&mut default).unwrap();
            assert_eq!(small, whole);
            assert_eq!(default, whole);
        }
    }
}

#[test]
fn the_error_of_a_failing_writer_is_returned() {
    let table = table(200 * BLOCK);
    for threads in [1, 4] {
        let pool = pool(threads);
        for write in FORMATS {
            let mut whole = FailingWriter::after(usize::MAX);
            write(&table, &mut whole).unwrap();
            let whole = whole.kept.len();
            for most in [0, 1, whole / 2, whole - 1] {
                let failed = pool.install(|| write(&table, &mut FailingWriter::after(most)));
                assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
            }
        }
    }
}
