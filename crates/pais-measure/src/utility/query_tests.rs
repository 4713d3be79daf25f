//! The answers of queries against plain counts, group by group.

use pais_core::cancellation::Cancellation;
use pais_core::table::codes::CodeRange;
use proptest::prelude::*;

use super::query_answers::{QueryAnswer, answers, answers_in_parts, met_labels, share_met};
use super::query_blocks::GroupBlock;
use super::query_table::{GroupLabels, QUERIES, Query, QueryDimension, QuerySensitive, QueryTable};

/// Labels of a group each.
fn labels(of_groups: &[CodeRange]) -> GroupLabels {
    let labels: Vec<Option<CodeRange>> = of_groups.iter().copied().map(Some).collect();
    let groups: Vec<u32> = (0..labels.len() as u32).collect();
    GroupLabels::new(&labels, &groups).unwrap()
}

/// Figure 3's group: ages 41, 42, 43, 49 as codes 0 to 3 in the order of Figure 1; of the
/// treatments in sorted order IV is 0, medicine 1, surgery 2.
fn figure_3(label: Option<CodeRange>) -> QueryTable {
    let ages = QueryDimension {
        codes: vec![1, 0, 3, 2],
        count: 4,
        labels: label.map(|label| labels(&[label])),
    };
    let treatments = QuerySensitive {
        ranks: vec![1, 2, 0, 0],
        count: 3,
    };
    QueryTable::new(vec![4], vec![ages], vec![treatments])
}

/// A condition on the age of records with the first sensitive value.
fn query(first: u32, last: u32) -> Query {
    Query {
        sensitive: (0, CodeRange::new(0, 0)),
        known: vec![(0, CodeRange::new(first, last))],
    }
}

fn answer(table: &QueryTable, query: Query) -> (u64, f64) {
    let answer = answers(table, &[query], &Cancellation::new()).unwrap()[0];
    (answer.exact, answer.estimate)
}

/// Treatment = IV and Age from 40 to 45 on Figure 3: exactly 1 patient; the estimate is 1.5.
#[test]
fn the_worked_query_is_estimated_at_one_and_a_half() {
    assert_eq!(answer(&figure_3(None), query(0, 2)), (1, 1.5));
    // Generalized to [41,49]: three of its four ages.
    assert_eq!(
        answer(&figure_3(Some(CodeRange::new(0, 3))), query(0, 2)),
        (1, 1.5)
    );
    assert_eq!(answer(&figure_3(None), query(3, 3)), (1, 0.5));
}

/// Without a sensitive column each query has a condition on a quasi-identifier. Exact codes have no
/// error, and a label that covers all four ages makes each age as probable as the others.
#[test]
fn without_a_sensitive_column_records_are_counted_by_quasi_identifiers() {
    let ages = |labels| QueryDimension {
        codes: vec![0, 0, 0, 3],
        count: 4,
        labels,
    };
    let table = |sizes, labels| QueryTable::new(sizes, vec![ages(labels)], Vec::new());
    assert_eq!(
        table(vec![1; 4], None)
            .error(&Cancellation::new())
            .unwrap()
            .all,
        0.0
    );
    let generalized = table(vec![4], Some(labels(&[CodeRange::new(0, 3)])));
    assert_eq!(answer(&generalized, query(0, 0)), (3, 1.0));
    assert!(
        generalized
            .draw()
            .iter()
            .all(|query| query.known.len() == 1)
    );
    assert!(generalized.error(&Cancellation::new()).unwrap().all > 0.0);
}

#[test]
fn errors_are_repeatable_and_zero_for_groups_of_one_record() {
    let table = figure_3(None);
    let error = table.error(&Cancellation::new()).unwrap();
    assert_eq!(Some(error), table.error(&Cancellation::new()));
    assert_eq!(error.queries, QUERIES);
    // One record is a quarter of this table.
    assert_eq!(error.queries_from_one_percent, error.queries);
    assert!(error.all > 0.0 && error.below_one_percent == 0.0);
    let mut exact = table;
    exact.sizes = vec![1; 4];
    assert_eq!(exact.error(&Cancellation::new()).unwrap().all, 0.0);
    exact.sensitive[0].ranks = vec![u32::MAX; 4];
    assert!(exact.error(&Cancellation::new()).is_none());
}

#[test]
fn stopped_queries_have_no_error() {
    let cancellation = Cancellation::new();
    cancellation.cancel();
    assert!(figure_3(None).error(&cancellation).is_none());
}

/// The exact count and the estimate of a query, row by row in each group.
fn plain_answer(table: &QueryTable, query: &Query) -> QueryAnswer {
    let meets = |code: u32, range: CodeRange| (range.first..=range.last).contains(&code);
    let is_held = |row: usize| {
        let (column, range) = query.sensitive;
        meets(table.sensitive[column].ranks[row], range)
    };
    let is_known = |row: usize| {
        let mut known = query.known.iter();
        known.all(|&(column, range)| meets(table.dimensions[column].codes[row], range))
    };
    let exact = (0..table.sensitive[0].ranks.len()).filter(|&row| is_held(row) && is_known(row));
    let mut estimate = 0.0;
    for block in GroupBlock::all(table) {
        let mut start = block.rows.start;
        let mut in_block = 0.0;
        for group in block.groups {
            let size = table.sizes[group] as usize;
            let rows = start..start + size;
            start += size;
            let held = rows.clone().filter(|&row| is_held(row)).count() as f64;
            let labels = |column: usize| table.dimensions[column].labels.as_ref();
            let share = if table.has_exact_codes() {
                rows.filter(|&row| is_known(row)).count() as f64 / size as f64
            } else {
                let shares = query.known.iter().map(|&(column, range)| {
                    labels(column).map_or(1.0, |labels| {
                        let CodeRange { first, last } = labels.of(group);
                        let met = (first..=last).filter(|&code| meets(code, range)).count();
                        met as f64 / f64::from(last - first + 1)
                    })
                });
                shares.product()
            };
            in_block += share * held;
        }
        estimate += in_block;
    }
    QueryAnswer {
        exact: exact.count() as u64,
        estimate,
    }
}

/// What the labels of [`tables`] are; those of `Cut` have this many codes each.
#[derive(Clone, Copy, Debug)]
enum Labels {
    Exact,
    Overlapping,
    Cut(u32),
}

/// Groups of random sizes, some with more rows than a part of a block, with codes that are near
/// each other in a group, so that some groups and blocks cannot meet a query.
fn tables() -> impl Strategy<Value = QueryTable> {
    let group = prop_oneof![4 => 1..6u32, 2 => 6..40u32, 1 => 100..350u32];
    let sizes = prop::collection::vec((group, 0..9u32), 1..40);
    (
        sizes,
        1..4usize,
        1..3usize,
        prop_oneof![
            Just(Labels::Exact),
            Just(Labels::Overlapping),
            (1..40u32).prop_map(Labels::Cut),
        ],
        1..50u32,
        any::<u64>(),
    )
        .prop_map(|(groups, known, sensitive, kind, count, seed)| {
            let mut state = seed | 1;
            let mut random = |below: u32| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 33) as u32 % below
            };
            let mut dimension = |column: usize| {
                let (mut codes, mut of_groups) = (Vec::new(), Vec::new());
                for &(size, base) in &groups {
                    let base = base * 10 / (column as u32 + 1);
                    let of_group: Vec<u32> = (0..size).map(|_| base + random(12)).collect();
                    let least = of_group.iter().min().copied().unwrap_or(0);
                    let most = of_group.iter().max().copied().unwrap_or(0);
                    let first = least.saturating_sub(random(3));
                    let around = CodeRange::new(first, (most + random(3)).min(101));
                    of_groups.push(match kind {
                        Labels::Cut(width) => {
                            let first = least / width * width;
                            CodeRange::new(first, first + width - 1)
                        }
                        Labels::Exact | Labels::Overlapping => around,
                    });
                    codes.extend(of_group);
                }
                let labels = (!matches!(kind, Labels::Exact)).then(|| labels(&of_groups));
                QueryDimension {
                    codes,
                    count: 102,
                    labels,
                }
            };
            let dimensions: Vec<_> = (0..known).map(&mut dimension).collect();
            let rows: u32 = groups.iter().map(|(size, _)| size).sum();
            let mut column = |_| {
                let rank = |_| match random(10) {
                    0 => u32::MAX,
                    _ => random(count),
                };
                QuerySensitive {
                    ranks: (0..rows).map(rank).collect(),
                    count,
                }
            };
            let sizes = groups.iter().map(|(size, _)| *size).collect();
            let sensitive = (0..sensitive).map(&mut column).collect();
            QueryTable::new(sizes, dimensions, sensitive)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn answers_are_those_of_plain_counts(
        table in tables(),
        repeated in 1..6usize,
        part in prop_oneof![Just(100), Just(1_000), Just(8_192)],
    ) {
        // Repeated tables have several blocks.
        let mut table = table;
        let once = table.clone();
        for _ in 1..repeated {
            table.sizes.extend(&once.sizes);
            for (all, one) in table.dimensions.iter_mut().zip(&once.dimensions) {
                all.codes.extend(&one.codes);
                if let (Some(all), Some(one)) = (&mut all.labels, &one.labels) {
                    all.of_group.extend(&one.of_group);
                }
            }
            for (all, one) in table.sensitive.iter_mut().zip(&once.sensitive) {
                all.ranks.extend(&one.ranks);
            }
        }
        let queries: Vec<Query> = table.draw().into_iter().step_by(97).collect();
        // Some groups have rows in several parts.
        let found = answers_in_parts(&table, &queries, part, &Cancellation::new()).unwrap();
        prop_assert_eq!(found.len(), queries.len());
        for (query, found) in queries.iter().zip(found) {
            let expected = plain_answer(&table, query);
            prop_assert_eq!(found.exact, expected.exact);
            // Both add up the groups, in another order.
            let difference = (found.estimate - expected.estimate).abs();
            prop_assert!(difference <= 1e-9 * expected.estimate.max(1.0));
        }
    }
}

proptest! {
    #[test]
    fn labels_of_a_cut_are_met_in_three_ranges_at_most(
        labels in prop::collection::vec((0..3u32, 1..5u32), 1..12),
        lo in 0..40u32,
        more in 0..30u32,
    ) {
        // Codes between two labels are in none, as those that no row has.
        let ranges = labels.iter().scan(0, |end, (gap, codes)| {
            let first = *end + gap;
            *end = first + codes;
            Some(CodeRange::new(first, *end - 1))
        });
        let ranges: Vec<CodeRange> = ranges.collect();
        let cut = GroupLabels { ranges: ranges.clone(), of_group: Vec::new() };
        let codes = CodeRange::new(lo, lo + more);
        let found = met_labels(&cut, codes);
        prop_assert!(found.len() <= 3);
        let found = found.into_iter().flat_map(|(numbers, share)| {
            (numbers.first..=numbers.last).map(move |number| (number, share))
        });
        let expected = (0..).zip(ranges).map(|(number, label)| (number, share_met(codes, label)));
        let expected = expected.filter(|(_, share)| *share > 0.0);
        prop_assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
}

#[test]
fn a_sample_is_asked_fewer_queries() {
    let error = figure_3(None)
        .sampled()
        .error(&Cancellation::new())
        .unwrap();
    assert_eq!(error.queries, 1_000);
    // The error of a mean falls with the root of the number of queries.
    let whole = figure_3(None).error(&Cancellation::new()).unwrap();
    let ratio = error.standard_error / whole.standard_error;
    assert!((2.5..3.5).contains(&ratio), "{ratio}");
}
