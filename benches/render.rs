//! The rendering of a released table alone: 1,000,000 rows of 15 columns in memory, to nowhere, in
//! each format, by one thread and by as many as there are cores.

use std::io;

use pais::table::{Column, Form, NULL_CODE, ReleasedColumn, ReleasedTable};
use rayon::ThreadPoolBuilder;

fn main() {
    divan::main();
}

const ROWS: usize = 1_000_000;

/// Threads: one, and the default number, which is 0.
const THREADS: [usize; 2] = [1, 0];

#[divan::bench(args = THREADS, sample_count = 10)]
fn csv(bencher: divan::Bencher<'_, '_>, threads: usize) {
    bench(bencher, threads, |table| table.write_csv(&mut io::sink()));
}

#[divan::bench(args = THREADS, sample_count = 10)]
fn ndjson(bencher: divan::Bencher<'_, '_>, threads: usize) {
    bench(bencher, threads, |table| {
        table.write_ndjson(&mut io::sink())
    });
}

#[divan::bench(args = THREADS, sample_count = 5)]
fn parquet(bencher: divan::Bencher<'_, '_>, threads: usize) {
    bench(bencher, threads, |table| table.write_parquet(io::sink()));
}

/// What goes nowhere does not fail.
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

/// Columns as Adult's release has them: nine of labels, of two to forty distinct values; five of
/// numbers, one of them with a value of its own in every fourth row; one set; some cells null.
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

/// Codes in no order, the same in every run; one in a hundred is null.
fn codes(seed: u64, distinct: usize) -> Vec<u32> {
    let mut state = seed + 1;
    let mut next = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    (0..ROWS)
        .map(|_| match next() {
            null if null % 100 == 0 => NULL_CODE,
            value => (value / 100 % distinct as u64) as u32,
        })
        .collect()
}
