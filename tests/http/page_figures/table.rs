//! A released table as its CSV file says, and small calculations on it that share no code with the
//! service.

use std::collections::{BTreeMap, BTreeSet};

/// A table of text.
pub(super) struct Table {
    pub(super) names: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    /// Reads CSV without line breaks in cells.
    pub(super) fn read(csv: &str) -> Self {
        let mut lines = csv.lines().map(cells);
        let names = lines.next().unwrap();
        Self {
            names,
            rows: lines.collect(),
        }
    }

    pub(super) fn cell<'t>(&'t self, row: &'t [String], column: &str) -> &'t str {
        let place = self.names.iter().position(|name| name == column);
        &row[place.unwrap_or_else(|| panic!("no column {column}"))]
    }

    pub(super) fn column(&self, column: &str) -> Vec<&str> {
        let cells = self.rows.iter().map(|row| self.cell(row, column));
        cells.collect()
    }

    pub(super) fn labels(&self, column: &str) -> BTreeSet<&str> {
        self.column(column).into_iter().collect()
    }

    /// The numbers of the rows that are equal in all of these columns.
    pub(super) fn groups(&self, columns: &[&str]) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<Vec<&str>, Vec<usize>> = BTreeMap::new();
        for (number, row) in self.rows.iter().enumerate() {
            let key = columns.iter().map(|column| self.cell(row, column));
            groups.entry(key.collect()).or_default().push(number);
        }
        groups.into_values().collect()
    }

    /// Share of the rows that no other row is equal to in these columns.
    pub(super) fn unique_share(&self, columns: &[&str]) -> f64 {
        let groups = self.groups(columns);
        let unique = groups.iter().filter(|group| group.len() == 1).count();
        unique as f64 / self.rows.len() as f64
    }

    /// Greatest share of one value of a column among the rows of a group.
    pub(super) fn greatest_share(
        &self,
        group: &[usize],
        column: &str,
        values: Option<&[&str]>,
    ) -> f64 {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for &row in group {
            *counts
                .entry(self.cell(&self.rows[row], column))
                .or_default() += 1;
        }
        let counts = counts.into_iter();
        let counts = counts.filter(|(value, _)| values.is_none_or(|values| values.contains(value)));
        let most = counts.map(|(_, count)| count).max().unwrap_or(0);
        most as f64 / group.len() as f64
    }
}

fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    for character in line.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            other => cells.last_mut().unwrap().push(other),
        }
    }
    cells
}

/// All sets of at least one and at most `most` of these columns.
pub(super) fn subsets<'c>(columns: &[&'c str], most: usize) -> Vec<Vec<&'c str>> {
    let all = (1u32..1 << columns.len()).map(|bits| {
        let chosen = (0..columns.len()).filter(|column| bits >> column & 1 == 1);
        chosen.map(|column| columns[column]).collect::<Vec<_>>()
    });
    all.filter(|columns| columns.len() <= most).collect()
}

/// The ends of `[lo,hi)`, `[lo,hi]` or a number.
pub(super) fn ends(label: &str) -> (f64, f64) {
    match label.strip_prefix('[') {
        Some(rest) => {
            let (lo, hi) = rest[..rest.len() - 1].split_once(',').unwrap();
            (lo.parse().unwrap(), hi.parse().unwrap())
        }
        None => (label.parse().unwrap(), label.parse().unwrap()),
    }
}

/// The range of sizes that a size is shown in: 1, 2 to 4, 5 to 9, 10 to 19, 20 to 49, ...
pub(super) fn bucket(size: usize) -> (usize, usize) {
    let mut from = 1usize;
    for factor in [2, 5, 10].into_iter().cycle() {
        let power = 10usize.pow(from.ilog10());
        let next = factor * power;
        if next <= from {
            continue;
        }
        if size < next {
            return (from, next - 1);
        }
        from = next;
    }
    unreachable!("the factors repeat")
}
