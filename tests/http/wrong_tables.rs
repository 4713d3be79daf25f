//! Invalid files: CSV, NDJSON, Parquet, and their compression.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field};

use crate::hospital::TABLE;
use crate::submissions::{NDJSON, PARQUET, gzip, ndjson, parquet, parquet_file};
use crate::wrong_input::{Fixture, InvalidRequest, Position, SECRET};

const CSV: &str = "text/csv";
const HEADER: &str = "ID,Job,Sex,Age,Transfuse,Surgery\n";
const GOOD: &str = r#"{"ID":"1","Job":"Mover","Sex":"M","Age":34,"Transfuse":"Y","Surgery":"x"}"#;

const MALFORMED: (u16, &str) = (400, "malformed_body");
const HEADER_FAULT: (u16, &str) = (422, "invalid_header");
const CELLS: (u16, &str) = (422, "invalid_cells");
const EMPTY: (u16, &str) = (422, "empty_submission");
const MEDIA: (u16, &str) = (415, "unsupported_media_type");
const LARGE: (u16, &str) = (413, "too_large");

pub(crate) fn cases(fixture: &Fixture) -> Vec<InvalidRequest> {
    let path = format!("{}/submissions", fixture.dataset);
    let mut cases = csv_cases(&path);
    cases.extend(ndjson_cases(&path));
    cases.extend(parquet_cases(&path));
    cases.extend(compressed_cases(&path));
    cases
}

fn csv_cases(path: &str) -> Vec<InvalidRequest> {
    let case = |name, body: &[u8], refusal| InvalidRequest::post(name, path, CSV, body, refusal);
    let with = |row: &[u8]| [HEADER.as_bytes(), row].concat();
    let cell = |name, row: &str, column| {
        case(name, &with(row.as_bytes()), CELLS).at(Position::Column(column))
    };
    vec![
        case("csv: an empty body", b"", EMPTY),
        case("csv: only a byte order mark", "\u{feff}".as_bytes(), EMPTY),
        case("csv: only a header", HEADER.as_bytes(), EMPTY),
        case("csv: only blank lines", &with(b"\n\r\n\n"), EMPTY),
        case("csv: no header", b"1,zz-secret-zz,M,34,Y,x\n", HEADER_FAULT),
        case(
            "csv: a missing column",
            b"ID,Job,Sex,Age,Transfuse\n1,Mover,M,34,Y\n",
            HEADER_FAULT,
        )
        .at(Position::Column("Surgery")),
        case(
            "csv: an unknown column",
            b"ID,Job,Sex,Age,Transfuse,Surgery,zz-secret-zz\n",
            HEADER_FAULT,
        )
        .at(Position::Line(1)),
        case(
            "csv: a duplicate column",
            b"ID,Job,Sex,Age,Transfuse,Surgery,Job\n",
            HEADER_FAULT,
        )
        .at(Position::Column("Job")),
        case(
            "csv: a column name in another case",
            b"ID,job,Sex,Age,Transfuse,Surgery\n",
            HEADER_FAULT,
        ),
        case(
            "csv: semicolons",
            b"ID;Job;Sex;Age;Transfuse;Surgery\n1;zz-secret-zz;M;34;Y;x\n",
            HEADER_FAULT,
        ),
        case(
            "csv: invalid UTF-8 in the header",
            b"ID,J\xf6b,Sex,Age,Transfuse,Surgery\n",
            MALFORMED,
        ),
        case(
            "csv: NUL in the header",
            b"ID,Job\0,Sex,Age,Transfuse,Surgery\n",
            MALFORMED,
        ),
        case(
            "csv: invalid UTF-8 in a cell",
            &with(b"1,zz-secret-zz\xff,M,34,Y,x\n"),
            MALFORMED,
        ),
        case(
            "csv: invalid UTF-8 in an identifier",
            &with(b"zz-secret-zz\xff,Mover,M,34,Y,x\n"),
            MALFORMED,
        ),
        case(
            "csv: NUL in a cell",
            &with(b"1,Mover,M,34,Y,zz-secret-zz\0\n"),
            MALFORMED,
        ),
        case(
            "csv: UTF-16 without a byte order mark",
            &utf16(TABLE)[2..],
            MALFORMED,
        ),
        case(
            "csv: UTF-16 that ends in half a character",
            &utf16(TABLE)[..201],
            MALFORMED,
        ),
        case(
            "csv: an unclosed quote",
            &with(b"1,\"zz-secret-zz,M,34,Y,x\n2,Mover,M,1,Y,x\n"),
            MALFORMED,
        ),
        case(
            "csv: a missing cell",
            &with(b"1,Mover,M,34,zz-secret-zz\n"),
            CELLS,
        )
        .at(Position::Line(2)),
        case(
            "csv: an extra cell",
            &with(b"1,Mover,M,34,Y,x\n2,Mover,M,34,Y,x,zz-secret-zz\n"),
            CELLS,
        )
        .at(Position::Line(3)),
        cell("csv: an unknown label", "1,zz-secret-zz,M,34,Y,x\n", "Job"),
        cell("csv: an inner label", "1,Technical,M,34,Y,x\n", "Job"),
        cell("csv: a label in another case", "1,mover,M,34,Y,x\n", "Job"),
        cell("csv: a space inside a label", "1,Mo ver,M,34,Y,x\n", "Job"),
        cell("csv: the root label", "1,Mover,*,34,Y,x\n", "Sex"),
        cell(
            "csv: text in a numeric column",
            "1,Mover,M,zz-secret-zz,Y,x\n",
            "Age",
        ),
        cell("csv: a decimal comma", "1,Mover,M,\"3,4\",Y,x\n", "Age"),
        cell("csv: NaN", "1,Mover,M,NaN,Y,x\n", "Age"),
        cell("csv: an infinite number", "1,Mover,M,1e999,Y,x\n", "Age"),
        cell("csv: above the domain", "1,Mover,M,99.01,Y,x\n", "Age"),
        cell("csv: below the domain", "1,Mover,M,-1,Y,x\n", "Age"),
        case(
            "csv: an invalid cell in the last of many rows",
            &with(
                &[
                    "1,Mover,M,34,Y,x\n".repeat(20_000).as_bytes(),
                    b"1,zz-secret-zz,M,34,Y,x\n",
                ]
                .concat(),
            ),
            CELLS,
        )
        .at(Position::Line(20_002)),
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

fn ndjson_cases(path: &str) -> Vec<InvalidRequest> {
    let case = |name, body: &str, refusal| InvalidRequest::post(name, path, NDJSON, body, refusal);
    let good = |from: &str, to: &str| GOOD.replace(from, to);
    let second = |line: String| format!("{GOOD}\n{line}\n");
    vec![
        case("ndjson: an empty body", "", EMPTY),
        case("ndjson: only blank lines", "\n \n\t\n", EMPTY),
        case(
            "ndjson: invalid JSON",
            &second(good("34", "zz-secret-zz")),
            MALFORMED,
        )
        .at(Position::Line(2)),
        case("ndjson: an array", &format!("[{GOOD}]"), MALFORMED).at(Position::Line(1)),
        case(
            "ndjson: one object on several lines",
            &good(",", ",\n"),
            MALFORMED,
        )
        .at(Position::Line(1)),
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
            "ndjson: a lone surrogate",
            &second(good("Mover", "zz-secret-zz\\ud800")),
            MALFORMED,
        ),
        case(
            "ndjson: an unknown key",
            &second(good("\"ID\"", "\"zz-secret-zz\":1,\"ID\"")),
            CELLS,
        )
        .at(Position::Line(2)),
        case(
            "ndjson: a missing key",
            &second(good("\"Sex\":\"M\",", "")),
            CELLS,
        )
        .at(Position::Column("Sex")),
        case(
            "ndjson: a duplicate key",
            &second(good("\"ID\"", "\"Sex\":\"F\",\"ID\"")),
            CELLS,
        )
        .at(Position::Column("Sex")),
        case(
            "ndjson: a nested value",
            &second(good("34", "{\"zz-secret-zz\":1}")),
            CELLS,
        )
        .at(Position::Column("Age")),
        case(
            "ndjson: an array in a categorical column",
            &second(good("\"Mover\"", "[\"zz-secret-zz\"]")),
            CELLS,
        )
        .at(Position::Column("Job")),
        case(
            "ndjson: a boolean in a numeric column",
            &second(good("34", "true")),
            CELLS,
        )
        .at(Position::Column("Age")),
        case(
            "ndjson: outside the domain",
            &second(good("34", "340")),
            CELLS,
        )
        .at(Position::Line(2)),
        case(
            "ndjson: an unknown label",
            &second(good("Mover", SECRET)),
            CELLS,
        )
        .at(Position::Column("Job")),
        InvalidRequest::post(
            "ndjson: invalid UTF-8",
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

fn parquet_cases(path: &str) -> Vec<InvalidRequest> {
    let case =
        |name, body: Vec<u8>, refusal| InvalidRequest::post(name, path, PARQUET, body, refusal);
    let texts = |cells: &[&str]| -> ArrayRef { Arc::new(StringArray::from(cells.to_vec())) };
    let batch =
        |columns: Vec<(&str, ArrayRef)>| parquet_file(RecordBatch::try_from_iter(columns).unwrap());
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
        case("parquet: an empty body", Vec::new(), MALFORMED),
        case("parquet: CSV", TABLE.as_bytes().to_vec(), MALFORMED),
        case("parquet: only the magic", b"PAR1PAR1".to_vec(), MALFORMED),
        case(
            "parquet: an invalid footer",
            b"PAR1zz-secret-zz\xff\xff\xff\x7fPAR1".to_vec(),
            MALFORMED,
        ),
        case("parquet: truncated", cut, MALFORMED),
        case("parquet: damaged pages", damaged, MALFORMED),
        case("parquet: an unknown column", batch(extra), HEADER_FAULT),
        case("parquet: a missing column", batch(lacking), HEADER_FAULT)
            .at(Position::Column("Surgery")),
        case("parquet: a nested column", batch(nested), CELLS).at(Position::Column("Job")),
        case("parquet: no rows", batch(none), EMPTY),
        case("parquet: an unknown label", batch(row(SECRET, "34")), CELLS)
            .at(Position::Column("Job")),
        case(
            "parquet: text in a numeric column",
            batch(row("Mover", SECRET)),
            CELLS,
        )
        .at(Position::Column("Age")),
        case(
            "parquet: outside the domain",
            batch(row("Mover", "100")),
            CELLS,
        )
        .at(Position::Line(1)),
    ]
}

fn compressed_cases(path: &str) -> Vec<InvalidRequest> {
    let compressed = |name, encoding: &str, body: Vec<u8>, refusal| {
        InvalidRequest::post(name, path, CSV, body, refusal).header("content-encoding", encoding)
    };
    let mut cut = gzip(TABLE.as_bytes());
    cut.truncate(cut.len() - 10);
    let mut flipped = gzip(TABLE.as_bytes());
    let end = flipped.len() - 6;
    flipped[end] ^= 0xff;
    let zstd = zstd::encode_all(TABLE.as_bytes(), 1).unwrap();
    let bomb = vec![b'\n'; 64 << 20];
    let plain = |name, media: &str| InvalidRequest::post(name, path, media, TABLE, MEDIA);
    vec![
        compressed("gzip: not compressed", "gzip", TABLE.into(), MALFORMED),
        compressed("gzip: truncated", "gzip", cut, MALFORMED),
        compressed("gzip: a wrong checksum", "gzip", flipped, MALFORMED),
        compressed("gzip: zstd instead", "gzip", zstd.clone(), MALFORMED),
        compressed("gzip: a decompression bomb", "gzip", gzip(&bomb), LARGE),
        compressed("zstd: not compressed", "zstd", TABLE.into(), MALFORMED),
        compressed(
            "zstd: truncated",
            "zstd",
            zstd[..zstd.len() / 2].to_vec(),
            MALFORMED,
        ),
        compressed(
            "zstd: a decompression bomb",
            "zstd",
            zstd::encode_all(&bomb[..], 1).unwrap(),
            LARGE,
        ),
        compressed("an unknown encoding", "br", TABLE.into(), MEDIA),
        compressed(
            "two encodings",
            "gzip, gzip",
            gzip(&gzip(TABLE.as_bytes())),
            MEDIA,
        ),
        compressed("gzip: NDJSON as CSV", "gzip", gzip(&ndjson()), HEADER_FAULT),
        plain("an unknown media type", "application/octet-stream"),
        plain("a form", "multipart/form-data; boundary=x"),
        plain("JSON", "application/json"),
        plain("an unsupported charset", "text/csv; charset=iso-8859-1"),
        plain("an empty media type", ""),
    ]
}
