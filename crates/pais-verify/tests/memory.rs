//! The memory that the adversaries of a report take, beside what is reserved for them. It is the only test
//! here, because the peak is that of the process.

use pais_core::cancellation::Cancellation;
use pais_core::model::Confidence;
use pais_core::schema::Schema;
use pais_core::table::{Column, Form, ReleasedColumn, ReleasedTable};
use pais_test_support::memory::peak_of;
use pais_test_support::split_mix::SplitMix64;
use pais_verify::{
    AdversaryLengths, EquivalenceClasses, LkcRequirement, SensitiveRequirement, SensitiveSet,
    adversary_bytes, measure_adversaries,
};
use serde_json::json;

const ROWS: usize = 400_000;

/// Values of each quasi-identifier.
const VALUES: usize = 12;

/// Rows of random values: `columns` have their names and numbers of values. Two rows each are equal but for the first
/// column, so that their classes are merged without it.
fn table(columns: &[(&str, usize)]) -> ReleasedTable {
    let mut random = SplitMix64(7);
    let mut column = |(at, &(name, values)): (usize, &(&str, usize))| {
        let pairs = (0..ROWS / 2).flat_map(|_| match at {
            0 => {
                let even = 2 * random.below(values / 2) as u32;
                [even, even + 1]
            }
            _ => [random.below(values) as u32; 2],
        });
        ReleasedColumn {
            name: name.into(),
            form: Form::Generalized,
            column: Column {
                dictionary: (0..values).map(|value| value.to_string().into()).collect(),
                codes: pairs.collect(),
            },
            missing: Vec::new(),
        }
    };
    ReleasedTable {
        name: "data".into(),
        rows: ROWS,
        columns: columns.iter().enumerate().map(&mut column).collect(),
    }
}

fn every(column: &str) -> SensitiveRequirement {
    SensitiveRequirement {
        column: column.into(),
        values: SensitiveSet::Every,
    }
}

/// What is measured of random rows.
struct Shape {
    attributes: usize,
    /// Of each of two sensitive columns.
    sensitive_values: usize,
    classes: std::ops::Range<usize>,
}

impl Shape {
    /// The bytes that adversaries take, and those that are reserved for them.
    fn taken_and_reserved(&self) -> [u64; 2] {
        let names: Vec<String> = (0..self.attributes).map(|at| format!("q{at}")).collect();
        let roles = names.iter().map(|name| (name.as_str(), "quasi_identifier"));
        let roles = roles.chain([("s", "sensitive"), ("t", "sensitive")]);
        let columns: Vec<_> = roles
            .map(|(name, role)| json!({"name": name, "role": role}))
            .collect();
        let definition = json!({"name": "t", "columns": columns});
        let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
        let attributes = names.iter().map(|name| (name.as_str(), VALUES));
        let sensitive = ["s", "t"].map(|name| (name, self.sensitive_values));
        let columns: Vec<_> = attributes.chain(sensitive).collect();
        let table = table(&columns);
        let requirement = LkcRequirement {
            l: 2,
            k: 2,
            c: Confidence::UNBOUNDED,
            sensitive: ["s", "t"].map(every).into(),
            missing_sensitive: Default::default(),
        };
        let lengths = AdversaryLengths {
            assumed: 2,
            longest: 2,
        };
        let cancellation = Cancellation::new();
        let classes = EquivalenceClasses::new(&table, &names, None, &cancellation).unwrap();
        let count = classes.sizes().len();
        assert!(self.classes.contains(&count), "{count} classes");

        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let before = peak_of(std::process::id());
        let found = measure_adversaries(&table, &classes, &requirement, lengths, &cancellation);
        let taken = peak_of(std::process::id()) - before;
        assert_eq!(found.unwrap().by_length.len(), 2);
        [taken, adversary_bytes(&schema, ROWS as u64, count as u64)]
    }
}

#[test]
fn what_is_reserved_for_adversaries_covers_them_and_for_unique_rows_is_not_twice_of_it() {
    // The smaller one first: memory that the allocator keeps is not seen as taken again.
    let of_many_rows = Shape {
        attributes: 4,
        sensitive_values: 500,
        classes: 20_000..20_737,
    };
    let [taken, reserved] = of_many_rows.taken_and_reserved();
    assert!(taken <= reserved, "{taken} bytes of {reserved}");
    let unique = Shape {
        attributes: 10,
        sensitive_values: 40,
        classes: ROWS * 9 / 10..ROWS + 1,
    };
    let [taken, reserved] = unique.taken_and_reserved();
    assert!(taken <= reserved, "{taken} bytes of {reserved}");
    assert!(2 * taken > reserved, "{taken} bytes of {reserved}");
}
