//! Whether the numbers of a column ascend in the order of its rows, as those of a counter do.

use pais_core::table::{Column, NULL_CODE};
use pais_core::taxonomy::interval::number;

/// Rows by how their number compares with that of the previous row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FileOrder {
    last: Option<f64>,
    ascending: u64,
    others: u64,
}

impl FileOrder {
    /// Adds the rows of a chunk. Cells that are not plain numbers are skipped.
    pub(super) fn add(&mut self, column: &Column) {
        let numbers: Vec<Option<f64>> = column.dictionary.iter().map(|it| number(it)).collect();
        for &code in column.codes.iter().filter(|&&code| code != NULL_CODE) {
            let Some(value) = numbers.get(code as usize).copied().flatten() else {
                continue;
            };
            if let Some(last) = self.last {
                if value > last {
                    self.ascending += 1;
                } else {
                    self.others += 1;
                }
            }
            self.last = Some(value);
        }
    }

    /// Whether nearly every number is greater than the one before.
    pub(super) fn is_ascending(self) -> bool {
        let rows = self.ascending + self.others;
        rows >= 9 && self.ascending as f64 >= 0.95 * rows as f64
    }
}

#[cfg(test)]
mod tests {
    use pais_core::table::Column;

    use super::FileOrder;

    fn is_ascending(values: &[&str]) -> bool {
        let mut order = FileOrder::default();
        order.add(&Column {
            dictionary: values.iter().map(|value| Box::from(*value)).collect(),
            codes: (0..values.len() as u32).collect(),
        });
        order.is_ascending()
    }

    #[test]
    fn counters_ascend_and_measures_do_not() {
        let counter: Vec<String> = (0..40).map(|row| (7 + 3 * row).to_string()).collect();
        let counter: Vec<&str> = counter.iter().map(String::as_str).collect();
        assert!(is_ascending(&counter));
        let measure: Vec<String> = (0..40).map(|row| (row * 7 % 40).to_string()).collect();
        let measure: Vec<&str> = measure.iter().map(String::as_str).collect();
        assert!(!is_ascending(&measure));
        assert!(!is_ascending(&["1", "2", "3"]));
    }
}
