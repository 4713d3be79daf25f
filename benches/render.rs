//! Rendering a released table only: 1,000,000 rows of 15 columns in memory, in each format, by one
//! thread and by one thread per core. The output is discarded.

use std::io;

use pais_core::table::{Column, Form, NULL_CODE, ReleasedColumn, ReleasedTable};
use pais_test_support::split_mix::SplitMix64;
use rayon::ThreadPoolBuilder;

fn main() {
    divan::main();
}

const ROWS: usize = 1_000_000;

/// Numbers of threads; 0 means one per core.
const THREADS: [usize; 2] = [1, 0];

#[divan::bench(args = THREADS, sample_count = 10)]
fn csv(bencher: divan::Bencher<'_, '_>, threads: usize) {
    bench(bencher, threads, |table| {
        pais_io::write::csv(table, &mut io::sink())
    });
}

#[divan::bench(args = THREADS, sample_count = 10)]
fn ndjson(bencher: divan::Bencher<'_, '_>, threads: usize) {
    bench(bencher, threads, |table| {
        pais_io::write::ndjson(table, &mut io::sink())
    });
}

#[divan::bench(args = THREADS, sample_count = 5)]
fn parquet(bencher: divan::Bencher<'_, '_>, threads: usize) {
    bench(bencher, threads, |table| {
        pais_io::write::parquet(table, io::sink())
    });
}

fn bench(
    bencher: divan::Bencher<'_, '_>,
    threads: usize,
    write: impl Fn(&ReleasedTable) -> io::Result<()> + Sync,
) {
    let table = table();
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.expect("threads");
    let counter = divan::counter::ItemsCount::new(ROWS);
    bencher
        .counter(counter)
        .bench_local(|| pool.install(|| write(&table)).expect("a rendered table"));
}

/// Columns similar to those of a release of Adult: nine of labels with 2 to 40 distinct values, five
/// of numbers, one of which has a distinct value in every fourth row, and one of sets. Some cells
/// are null.
fn table() -> ReleasedTable {
    let label = |distinct: usize| -> Vec<Box<str>> {
        let text = |value| format!("label-{value} of {distinct}").into();
        (0..distinct).map(text).collect()
    };
    let number = |distinct: usize| -> Vec<Box<str>> {
        let text = |value: usize| (value * 37).to_string().into();
        (0..distinct).map(text).collect()
    };
    let set = |distinct: usize| -> Vec<Box<str>> {
        let text = |value| format!("item-{value}|item-{}", value + 1).into();
        (0..distinct).map(text).collect()
    };
    let mut dictionaries: Vec<(Form, Vec<Box<str>>)> = Vec::new();
    for distinct in [2, 3, 5, 6, 7, 9, 15, 16, 40] {
        dictionaries.push((Form::Generalized, label(distinct)));
    }
    for distinct in [16, 74, 96, 120, ROWS / 4] {
        dictionaries.push((Form::Number, number(distinct)));
    }
    dictionaries.push((Form::Set { separator: '|' }, set(100)));
    let columns = dictionaries.into_iter().enumerate();
    ReleasedTable {
        name: "data".into(),
        rows: ROWS,
        columns: columns
            .map(|(index, (form, dictionary))| ReleasedColumn {
                name: format!("column-{index}").into(),
                form,
                column: Column {
                    codes: codes(index as u64, dictionary.len()),
                    dictionary,
                },
                missing: Vec::new(),
            })
            .collect(),
    }
}

/// Pseudorandom dictionary codes, the same in every run; one in a hundred is null.
fn codes(seed: u64, distinct: usize) -> Vec<u32> {
    let mut random = SplitMix64(seed + 1);
    (0..ROWS)
        .map(|_| match random.next_u64() {
            null if null % 100 == 0 => NULL_CODE,
            value => (value / 100 % distinct as u64) as u32,
        })
        .collect()
}
