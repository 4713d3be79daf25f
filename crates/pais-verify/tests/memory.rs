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
const ATTRIBUTES: usize = 10;
const VALUES: usize = 12;

/// Rows of which nearly each is a class.
fn table(columns: &[(&str, usize)]) -> ReleasedTable {
    let mut random = SplitMix64(7);
    let mut column = |&(name, values): &(&str, usize)| ReleasedColumn {
        name: name.into(),
        form: Form::Generalized,
        column: Column {
            dictionary: (0..values).map(|value| value.to_string().into()).collect(),
            codes: (0..ROWS).map(|_| random.below(values) as u32).collect(),
        },
        missing: Vec::new(),
    };
    ReleasedTable {
        name: "data".into(),
        rows: ROWS,
        columns: columns.iter().map(&mut column).collect(),
    }
}

fn every(column: &str) -> SensitiveRequirement {
    SensitiveRequirement {
        column: column.into(),
        values: SensitiveSet::Every,
    }
}

#[test]
fn what_is_reserved_for_unique_rows_covers_their_adversaries_and_is_not_twice_of_it() {
    let names: Vec<String> = (0..ATTRIBUTES).map(|at| format!("q{at}")).collect();
    let roles = names.iter().map(|name| (name.as_str(), "quasi_identifier"));
    let roles = roles.chain([("s", "sensitive"), ("t", "sensitive")]);
    let columns: Vec<_> = roles
        .map(|(name, role)| json!({"name": name, "role": role}))
        .collect();
    let definition = json!({"name": "t", "columns": columns});
    let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
    let attributes = names.iter().map(|name| (name.as_str(), VALUES));
    let columns: Vec<_> = attributes.chain([("s", 40), ("t", 40)]).collect();
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
    let count = classes.sizes().len() as u64;
    assert!(count > ROWS as u64 * 9 / 10, "{count} classes");

    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = peak_of(std::process::id());
    let found = measure_adversaries(&table, &classes, &requirement, lengths, &cancellation);
    let taken = peak_of(std::process::id()) - before;
    assert_eq!(found.unwrap().by_length.len(), 2);
    let reserved = adversary_bytes(&schema, ROWS as u64, count);
    assert!(taken <= reserved, "{taken} bytes of {reserved}");
    assert!(2 * taken > reserved, "{taken} bytes of {reserved}");
}
