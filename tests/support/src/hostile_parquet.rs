//! Parquet files that claim more than they have, written byte by byte.

/// A struct in Thrift's compact protocol.
#[derive(Clone, Default)]
pub struct Thrift(Vec<u8>);

impl Thrift {
    pub fn int(mut self, id: u64, value: i64) -> Self {
        self.head(5, id);
        self.zigzag(value);
        self
    }

    pub fn text(mut self, id: u64, text: &[u8]) -> Self {
        self.head(8, id);
        self.varint(text.len() as u64);
        self.0.extend_from_slice(text);
        self
    }

    pub fn structure(mut self, id: u64, inner: Self) -> Self {
        self.head(12, id);
        self.0.extend(inner.end());
        self
    }

    /// A list that claims `count` structs and has these.
    pub fn list(mut self, id: u64, count: u64, structs: Vec<Self>) -> Self {
        self.head(9, id);
        self.0.push(0xfc);
        self.varint(count);
        self.0.extend(structs.into_iter().flat_map(Self::end));
        self
    }

    pub fn end(mut self) -> Vec<u8> {
        self.0.push(0);
        self.0
    }

    fn head(&mut self, kind: u8, id: u64) {
        self.0.push(kind);
        self.zigzag(id as i64);
    }

    fn zigzag(&mut self, value: i64) {
        self.varint(((value << 1) ^ (value >> 63)) as u64);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// A file of these pages and this footer.
pub fn file(pages: &[u8], footer: Vec<u8>, magic: &[u8; 4]) -> Vec<u8> {
    let length = (footer.len() as u32).to_le_bytes();
    [b"PAR1", pages, &footer, &length, magic].concat()
}

/// A group of the schema.
pub fn group(name: &str, children: i64) -> Thrift {
    Thrift::default()
        .int(3, 0)
        .text(4, name.as_bytes())
        .int(5, children)
}

/// A column of the schema of a physical type, required.
pub fn column(name: &str, physical: i64) -> Thrift {
    Thrift::default()
        .int(1, physical)
        .int(3, 0)
        .text(4, name.as_bytes())
}

/// The metadata of a file with this schema and these row groups.
pub fn footer(schema: Vec<Thrift>, rows: i64, groups: Vec<Thrift>) -> Thrift {
    let (columns, count) = (schema.len() as u64, groups.len() as u64);
    Thrift::default()
        .int(1, 2)
        .list(2, columns, schema)
        .int(3, rows)
        .list(4, count, groups)
}

/// A row group of one column, whose pages begin after the magic number.
pub fn row_group(rows: i64, values: i64, stored: usize) -> Thrift {
    compressed_row_group(rows, values, stored, 0)
}

/// As [`row_group`], compressed by the codec of this number.
pub fn compressed_row_group(rows: i64, values: i64, stored: usize, codec: i64) -> Thrift {
    let column = Thrift::default()
        .int(1, 6)
        .int(4, codec)
        .int(5, values)
        .int(6, stored as i64)
        .int(7, stored as i64)
        .int(9, 4);
    let chunk = Thrift::default().int(2, 4).structure(3, column);
    Thrift::default()
        .list(1, 1, vec![chunk])
        .int(2, 0)
        .int(3, rows)
}

/// A file of some 20 KB whose schema has 2,000 nested groups.
pub fn nested_groups() -> Vec<u8> {
    let mut schema = vec![group("root", 1)];
    schema.extend((0..2000).map(|_| group("g", 1)));
    schema.push(column("x", 6));
    file(&[], footer(schema, 0, vec![]).end(), b"PAR1")
}

/// A file of 389 KB whose footer claims 400 million row groups.
pub fn many_row_groups() -> Vec<u8> {
    let schema = vec![group("root", 1), column("x", 6)];
    let claim = Thrift::default()
        .int(1, 2)
        .list(2, 2, schema)
        .int(3, 0)
        .list(4, 400_000_000, vec![Thrift::default(); 389_000]);
    file(&[], claim.end(), b"PAR1")
}
