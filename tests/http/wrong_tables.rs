//! Wrong files: CSV, NDJSON, Parquet, and what they are packed in.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field};

use crate::contract_submissions::{NDJSON, PARQUET, gzip, ndjson, parquet, written};
use crate::hospital::TABLE;
use crate::wrong_input::{Case, Ground, Place, SECRET};

const CSV: &str = "text/csv";
const HEADER: &str = "ID,Job,Sex,Age,Transfuse,Surgery\n";
const GOOD: &str = r#"{"ID":"1","Job":"Mover","Sex":"M","Age":34,"Transfuse":"Y","Surgery":"x"}"#;

const MALFORMED: (u16, &str) = (400, "malformed_body");
const HEADER_FAULT: (u16, &str) = (422, "invalid_header");
const CELLS: (u16, &str) = (422, "invalid_cells");
const EMPTY: (u16, &str) = (422, "empty_submission");
const MEDIA: (u16, &str) = (415, "unsupported_media_type");
const LARGE: (u16, &str) = (413, "too_large");

pub fn cases(ground: &Ground) -> Vec<Case> {
    let path = format!("{}/submissions", ground.dataset);
    let mut cases = csv_cases(&path);
    cases.extend(ndjson_cases(&path));
    cases.extend(parquet_cases(&path));
    cases.extend(packed_cases(&path));
    cases
}

fn csv_cases(path: &str) -> Vec<Case> {
    let case = |name, body: &[u8], refusal| Case::post(name, path, CSV, body, refusal);
    let with = |row: &[u8]| [HEADER.as_bytes(), row].concat();
    let cell = |name, row: &str, column| {
        case(name, &with(row.as_bytes()), CELLS).at(Place::Column(column))
    };
    vec![
        case("csv: nothing at all", b"", EMPTY),
        case("csv: only a byte order mark", "\u{feff}".as_bytes(), EMPTY),
        case("csv: a header alone", HEADER.as_bytes(), EMPTY),
        case("csv: blank lines alone", &with(b"\n\r\n\n"), EMPTY),
        case("csv: no header", b"1,zz-secret-zz,M,34,Y,x\n", HEADER_FAULT),
        case(
            "csv: a column lacks",
            b"ID,Job,Sex,Age,Transfuse\n1,Mover,M,34,Y\n",
            HEADER_FAULT,
        )
        .at(Place::Column("Surgery")),
        case(
            "csv: a column too many",
            b"ID,Job,Sex,Age,Transfuse,Surgery,zz-secret-zz\n",
            HEADER_FAULT,
        )
        .at(Place::Line(1)),
        case(
            "csv: a column twice",
            b"ID,Job,Sex,Age,Transfuse,Surgery,Job\n",
            HEADER_FAULT,
        )
        .at(Place::Column("Job")),
        case(
            "csv: another case of a name",
            b"ID,job,Sex,Age,Transfuse,Surgery\n",
            HEADER_FAULT,
        ),
        case(
            "csv: semicolons",
            b"ID;Job;Sex;Age;Transfuse;Surgery\n1;zz-secret-zz;M;34;Y;x\n",
            HEADER_FAULT,
        ),
        case(
            "csv: a header that is no UTF-8",
            b"ID,J\xf6b,Sex,Age,Transfuse,Surgery\n",
            MALFORMED,
        ),
        case(
            "csv: NUL in the header",
            b"ID,Job\0,Sex,Age,Transfuse,Surgery\n",
            MALFORMED,
        ),
        case(
            "csv: a cell that is no UTF-8",
            &with(b"1,zz-secret-zz\xff,M,34,Y,x\n"),
            MALFORMED,
        ),
        case(
            "csv: an identifier that is no UTF-8",
            &with(b"zz-secret-zz\xff,Mover,M,34,Y,x\n"),
            MALFORMED,
        ),
        case(
            "csv: NUL in a cell",
            &with(b"1,Mover,M,34,Y,zz-secret-zz\0\n"),
            MALFORMED,
        ),
        case("csv: UTF-16", &utf16(TABLE), MALFORMED),
        case(
            "csv: a quote never closed",
            &with(b"1,\"zz-secret-zz,M,34,Y,x\n2,Mover,M,1,Y,x\n"),
            MALFORMED,
        ),
        case(
            "csv: a cell too few",
            &with(b"1,Mover,M,34,zz-secret-zz\n"),
            CELLS,
        )
        .at(Place::Line(2)),
        case(
            "csv: a cell too many",
            &with(b"1,Mover,M,34,Y,x\n2,Mover,M,34,Y,x,zz-secret-zz\n"),
            CELLS,
        )
        .at(Place::Line(3)),
        cell("csv: no leaf", "1,zz-secret-zz,M,34,Y,x\n", "Job"),
        cell("csv: an inner label", "1,Technical,M,34,Y,x\n", "Job"),
        cell("csv: a label of another case", "1,mover,M,34,Y,x\n", "Job"),
        cell("csv: spaces around a label", "1, Mover ,M,34,Y,x\n", "Job"),
        cell(
            "csv: the label over all values",
            "1,Mover,*,34,Y,x\n",
            "Sex",
        ),
        cell(
            "csv: a word for a number",
            "1,Mover,M,zz-secret-zz,Y,x\n",
            "Age",
        ),
        cell("csv: a decimal comma", "1,Mover,M,\"3,4\",Y,x\n", "Age"),
        cell("csv: a number that is none", "1,Mover,M,NaN,Y,x\n", "Age"),
        cell("csv: an endless number", "1,Mover,M,1e999,Y,x\n", "Age"),
        cell("csv: above the domain", "1,Mover,M,99.01,Y,x\n", "Age"),
        cell("csv: below the domain", "1,Mover,M,-1,Y,x\n", "Age"),
        case(
            "csv: wrong in the last of many rows",
            &with(
                &[
                    "1,Mover,M,34,Y,x\n".repeat(20_000).as_bytes(),
                    b"1,zz-secret-zz,M,34,Y,x\n",
                ]
                .concat(),
            ),
            CELLS,
        )
        .at(Place::Line(20_002)),
        case(
            "csv: larger than the limit",
            &with("1,Mover,M,34,Y,x\n".repeat(70_000).as_bytes()),
            LARGE,
        ),
    ]
}

fn utf16(text: &str) -> Vec<u8> {
    let units = std::iter::once(0xfeff).chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

fn ndjson_cases(path: &str) -> Vec<Case> {
    let case = |name, body: &str, refusal| Case::post(name, path, NDJSON, body, refusal);
    let good = |from: &str, to: &str| GOOD.replace(from, to);
    let second = |line: String| format!("{GOOD}\n{line}\n");
    vec![
        case("ndjson: nothing at all", "", EMPTY),
        case("ndjson: blank lines alone", "\n \n\t\n", EMPTY),
        case(
            "ndjson: no JSON",
            &second(good("34", "zz-secret-zz")),
            MALFORMED,
        )
        .at(Place::Line(2)),
        case("ndjson: an array", &format!("[{GOOD}]"), MALFORMED).at(Place::Line(1)),
        case(
            "ndjson: one object over lines",
            &good(",", ",\n"),
            MALFORMED,
        )
        .at(Place::Line(1)),
        case(
            "ndjson: two objects on a line",
            &format!("{GOOD}{GOOD}"),
            MALFORMED,
        ),
        case("ndjson: CSV", TABLE, MALFORMED),
        case(
            "ndjson: NUL in a string",
            &second(good("Mover", "zz-secret-zz\\u0000")),
            MALFORMED,
        ),
        case(
            "ndjson: half a character",
            &second(good("Mover", "zz-secret-zz\\ud800")),
            MALFORMED,
        ),
        case(
            "ndjson: a key too many",
            &second(good("\"ID\"", "\"zz-secret-zz\":1,\"ID\"")),
            CELLS,
        )
        .at(Place::Line(2)),
        case(
            "ndjson: a key lacks",
            &second(good("\"Sex\":\"M\",", "")),
            CELLS,
        )
        .at(Place::Column("Sex")),
        case(
            "ndjson: a key twice",
            &second(good("\"ID\"", "\"Sex\":\"F\",\"ID\"")),
            CELLS,
        )
        .at(Place::Column("Sex")),
        case(
            "ndjson: a nested value",
            &second(good("34", "{\"zz-secret-zz\":1}")),
            CELLS,
        )
        .at(Place::Column("Age")),
        case(
            "ndjson: an array for no set",
            &second(good("\"Mover\"", "[\"zz-secret-zz\"]")),
            CELLS,
        )
        .at(Place::Column("Job")),
        case(
            "ndjson: a truth for a number",
            &second(good("34", "true")),
            CELLS,
        )
        .at(Place::Column("Age")),
        case(
            "ndjson: outside the domain",
            &second(good("34", "340")),
            CELLS,
        )
        .at(Place::Line(2)),
        case("ndjson: no leaf", &second(good("Mover", SECRET)), CELLS).at(Place::Column("Job")),
        Case::post(
            "ndjson: no UTF-8",
            path,
            NDJSON,
            &b"{\"ID\":\"zz-secret-zz\xff\"}\n"[..],
            MALFORMED,
        ),
        case(
            "ndjson: deeply nested",
            &second(good("34", &"[".repeat(100_000))),
            MALFORMED,
        ),
    ]
}

fn parquet_cases(path: &str) -> Vec<Case> {
    let case = |name, body: Vec<u8>, refusal| Case::post(name, path, PARQUET, body, refusal);
    let texts = |cells: &[&str]| -> ArrayRef { Arc::new(StringArray::from(cells.to_vec())) };
    let batch =
        |columns: Vec<(&str, ArrayRef)>| written(RecordBatch::try_from_iter(columns).unwrap());
    let row = |job: &str, age: &str| {
        vec![
            ("ID", texts(&["1"])),
            ("Job", texts(&[job])),
            ("Sex", texts(&["M"])),
            ("Age", texts(&[age])),
            ("Transfuse", texts(&["Y"])),
            ("Surgery", texts(&["x"])),
        ]
    };
    let whole = parquet();
    let mut cut = whole.clone();
    cut.truncate(whole.len() / 2);
    let mut damaged = whole.clone();
    let middle = damaged.len() / 4;
    damaged[8..middle].fill(0xAB);
    let mut extra = row("Mover", "34");
    extra.push((SECRET, texts(&["x"])));
    let mut lacking = row("Mover", "34");
    lacking.remove(5);
    let field = Arc::new(Field::new("x", DataType::Utf8, false));
    let mut nested = row("Mover", "34");
    nested[1].1 = Arc::new(StructArray::from(vec![(field, texts(&[SECRET]))]));
    let none: Vec<(&str, ArrayRef)> = row("Mover", "34")
        .into_iter()
        .map(|(name, column)| (name, column.slice(0, 0)))
        .collect();
    vec![
        case("parquet: nothing at all", Vec::new(), MALFORMED),
        case("parquet: CSV", TABLE.as_bytes().to_vec(), MALFORMED),
        case("parquet: only the magic", b"PAR1PAR1".to_vec(), MALFORMED),
        case(
            "parquet: a footer of nonsense",
            b"PAR1zz-secret-zz\xff\xff\xff\x7fPAR1".to_vec(),
            MALFORMED,
        ),
        case("parquet: cut short", cut, MALFORMED),
        case("parquet: damaged pages", damaged, MALFORMED),
        case("parquet: a column too many", batch(extra), HEADER_FAULT),
        case("parquet: a column lacks", batch(lacking), HEADER_FAULT).at(Place::Column("Surgery")),
        case("parquet: a nested column", batch(nested), CELLS).at(Place::Column("Job")),
        case("parquet: no rows", batch(none), EMPTY),
        case("parquet: no leaf", batch(row(SECRET, "34")), CELLS).at(Place::Column("Job")),
        case("parquet: no number", batch(row("Mover", SECRET)), CELLS).at(Place::Column("Age")),
        case(
            "parquet: outside the domain",
            batch(row("Mover", "100")),
            CELLS,
        )
        .at(Place::Line(1)),
    ]
}

fn packed_cases(path: &str) -> Vec<Case> {
    let packed = |name, encoding: &str, body: Vec<u8>, refusal| {
        Case::post(name, path, CSV, body, refusal).header("content-encoding", encoding)
    };
    let mut cut = gzip(TABLE.as_bytes());
    cut.truncate(cut.len() - 10);
    let mut flipped = gzip(TABLE.as_bytes());
    let end = flipped.len() - 6;
    flipped[end] ^= 0xff;
    let zstd = zstd::encode_all(TABLE.as_bytes(), 1).unwrap();
    let bomb = vec![b'\n'; 64 << 20];
    let plain = |name, media: &str| Case::post(name, path, media, TABLE, MEDIA);
    vec![
        packed("gzip: it is not", "gzip", TABLE.into(), MALFORMED),
        packed("gzip: cut short", "gzip", cut, MALFORMED),
        packed("gzip: a wrong checksum", "gzip", flipped, MALFORMED),
        packed("gzip: it is zstd", "gzip", zstd.clone(), MALFORMED),
        packed("gzip: a bomb", "gzip", gzip(&bomb), LARGE),
        packed("zstd: it is not", "zstd", TABLE.into(), MALFORMED),
        packed(
            "zstd: cut short",
            "zstd",
            zstd[..zstd.len() / 2].to_vec(),
            MALFORMED,
        ),
        packed(
            "zstd: a bomb",
            "zstd",
            zstd::encode_all(&bomb[..], 1).unwrap(),
            LARGE,
        ),
        packed("an encoding nobody knows", "br", TABLE.into(), MEDIA),
        packed(
            "two encodings",
            "gzip, gzip",
            gzip(&gzip(TABLE.as_bytes())),
            MEDIA,
        ),
        packed(
            "gzip: NDJSON under CSV",
            "gzip",
            gzip(&ndjson()),
            HEADER_FAULT,
        ),
        plain("a media type nobody knows", "application/octet-stream"),
        plain("a form", "multipart/form-data; boundary=x"),
        plain("JSON", "application/json"),
        plain("another charset", "text/csv; charset=iso-8859-1"),
        plain("no media type", ""),
    ]
}
