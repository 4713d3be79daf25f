//! Trees of Quinlan's book, and what holds for every tree.

use pais_core::cancellation::Cancellation;
use pais_core::table::codes::Codes;
use proptest::prelude::*;

use super::choice::LEAST;
use super::examples::{Domain, Examples, RowExamples};
use super::features::{Encoding, Feature};
use super::gain::Logs;
use super::holdout::{Thirds, held_out_error, two_thirds};
use super::rows::ClassifiedRows;
use super::tree::{self, Split, Tree, pessimistic_errors};

impl Tree {
    /// Number of nodes, including leaves.
    fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Maximum number of tests between the root and a leaf.
    fn depth(&self) -> usize {
        let mut depths = vec![0usize; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            let children = node.split.iter().flat_map(Split::children);
            for child in children {
                depths[child] = depths[at] + 1;
            }
        }
        depths.into_iter().max().unwrap_or(0)
    }
}

/// An attribute of some rows.
#[derive(Clone)]
pub(crate) struct Attribute {
    domain: Domain,
    pub(crate) codes: Vec<u32>,
}

impl Attribute {
    /// An attribute of `values` values without an order.
    pub(crate) fn nominal(values: u32, codes: Vec<u32>) -> Self {
        Self {
            domain: Domain::Nominal(values),
            codes,
        }
    }

    /// An attribute whose codes are ranks of ascending values; `values.len()` means missing.
    pub(crate) fn ordered(values: Vec<f64>, codes: Vec<u32>) -> Self {
        Self {
            domain: Domain::Ordered(values.into()),
            codes,
        }
    }
}

pub(crate) fn of(attributes: Vec<Attribute>, classes: Vec<u32>, class_count: u32) -> Examples {
    let columns = attributes.into_iter();
    let columns = columns.map(|it| (it.domain, it.codes.into_iter()));
    Examples::new(columns, classes, class_count)
}

impl Examples {
    /// The codes of an attribute.
    pub(crate) fn codes(&self, position: usize) -> Vec<u32> {
        let examples = 0..self.len() as u32;
        examples
            .map(|example| self.code(position, example))
            .collect()
    }
}

/// Rows with these codes, one for each example.
pub(crate) fn rows_of(examples: &Examples) -> RowExamples {
    let positions = 0..examples.attributes.len();
    let columns: Vec<Vec<u32>> = positions.map(|at| examples.codes(at)).collect();
    let features = columns.iter().zip(&examples.attributes);
    let rows = ClassifiedRows {
        features: features
            .map(|(cells, attribute)| Feature {
                cells: Codes::Four(cells.into()),
                encodings: vec![Encoding::identity(attribute.domain.clone())],
            })
            .collect(),
        class_cells: Codes::Four((&examples.classes).into()),
        classes: Encoding::identity(Domain::Nominal(examples.class_count)),
    };
    let all: Vec<u32> = (0..examples.len() as u32).collect();
    rows.examples(&all, |_| true)
}

/// The weights of examples that are one row each.
fn ones(examples: &Examples) -> Vec<u32> {
    vec![1; examples.len()]
}

/// The tree of examples that are not all of weight 0.
fn learn_weighted(examples: &Examples, weights: &[u32]) -> Tree {
    Tree::learn(examples, weights, &logs(weights), &Cancellation::new()).unwrap()
}

fn learn(examples: &Examples) -> Tree {
    learn_weighted(examples, &ones(examples))
}

fn grow_weighted(examples: &Examples, weights: &[u32]) -> Tree {
    tree::grow(examples, weights, &logs(weights), &Cancellation::new()).unwrap()
}

pub(crate) fn grow(examples: &Examples) -> Tree {
    grow_weighted(examples, &ones(examples))
}

/// Those that a tree of examples with these weights needs.
fn logs(weights: &[u32]) -> Logs {
    Logs::new(weights.iter().copied().map(u64::from).sum())
}

fn wrong(tree: &Tree, examples: &Examples) -> u64 {
    tree.wrong(examples, &ones(examples))
}

/// An ordered attribute with these values; `None` is missing.
fn ordered(cells: &[Option<f64>]) -> Attribute {
    let mut values: Vec<f64> = cells.iter().copied().flatten().collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let code = |cell: &Option<f64>| match cell {
        Some(number) => values.partition_point(|value| value < number) as u32,
        None => values.len() as u32,
    };
    let codes = cells.iter().map(code).collect();
    Attribute::ordered(values, codes)
}

fn known(cells: &[u32]) -> Attribute {
    let cells: Vec<Option<f64>> = cells.iter().map(|&cell| Some(f64::from(cell))).collect();
    ordered(&cells)
}

/// The 14 days of Quinlan's book, Section 2.2: outlook (sunny, overcast, rain), temperature,
/// humidity, windy; class 0 is to play.
fn days() -> Examples {
    let attributes = vec![
        Attribute::nominal(3, vec![0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2]),
        known(&[75, 80, 85, 72, 69, 72, 83, 64, 81, 71, 65, 75, 68, 70]),
        known(&[70, 90, 85, 95, 70, 90, 78, 65, 75, 80, 70, 80, 80, 96]),
        Attribute::nominal(2, vec![1, 1, 0, 0, 0, 1, 0, 1, 0, 1, 1, 0, 0, 0]),
    ];
    let classes = vec![0, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0];
    of(attributes, classes, 2)
}

#[test]
fn the_tree_of_fourteen_days_is_that_of_quinlan() {
    let examples = days();
    let tree = learn(&examples);
    // The outlook, then the humidity where it is sunny and the wind where it rains.
    assert_eq!((tree.node_count(), tree.depth()), (8, 2));
    assert_eq!(wrong(&tree, &examples), 0);
    // Humidities in ascending order: 65, 70, 75, 78, 80, 85, ...; the middle of 70 and 85 is 77.5.
    let sunny = |humidity: u32| tree.class(|attribute| [0, 0, humidity, 0][attribute]);
    assert_eq!([0, 1, 2, 3, 4].map(sunny), [0, 0, 0, 1, 1]);
    let rain = |windy: u32| tree.class(|attribute| [2, 0, 0, windy][attribute]);
    assert_eq!([0, 1].map(rain), [0, 1]);
}

#[test]
fn a_value_that_no_example_had_is_given_the_class_of_the_node() {
    let examples = days();
    let tree = learn(&examples);
    assert_eq!(tree.class(|_| 7), 0, "to play is more frequent");
    let examples = of(Vec::new(), examples.classes, 2);
    let majority = learn(&examples);
    assert_eq!((majority.node_count(), wrong(&majority, &examples)), (1, 5));
}

/// An attribute that numbers the examples gains most and is useless.
#[test]
fn the_gain_ratio_prefers_few_branches() {
    let classes: Vec<u32> = (0..32).map(|row| u32::from(row >= 16)).collect();
    // Fours of examples: gain 1 bit, split information 3 bits. Halves but for two examples: gain
    // 0.67 bits, split information 0.99 bits; the average gain is 0.83 bits.
    let fours = Attribute::nominal(8, (0..32).map(|row| row / 4).collect());
    let halves = Attribute::nominal(2, (0..32).map(|row| u32::from(row >= 14)).collect());
    let same = Attribute::nominal(2, classes.clone());
    let learnable = |attributes: Vec<Attribute>| of(attributes, classes.clone(), 2);
    assert_eq!(grow(&learnable(vec![fours.clone(), same])).node_count(), 3);
    // Fewer than average: the fours are left.
    assert_eq!(grow(&learnable(vec![fours, halves])).node_count(), 9);
}

#[test]
fn limits_of_errors_are_those_of_quinlan() {
    for (errors, cases, expected) in [(0, 6, 0.206), (0, 9, 0.143), (0, 1, 0.750), (1, 16, 0.157)] {
        let limit = pessimistic_errors(errors, cases) / cases as f64;
        assert!(
            (limit - expected).abs() < 5e-4,
            "{errors} of {cases}: {limit}"
        );
    }
    assert_eq!(pessimistic_errors(0, 0), 0.0);
    assert_eq!(pessimistic_errors(3, 3), 3.0);
}

/// Quinlan's book, Section 4.2: leaves of 6, 9 and 1 cases expect 3.273 errors, one leaf of the 16
/// expects 2.512.
#[test]
fn a_subtree_that_expects_more_errors_than_a_leaf_is_replaced() {
    let values = (0..16).map(|row| u32::from(row >= 6) + u32::from(row >= 15));
    let attribute = Attribute::nominal(3, values.collect());
    let classes = (0..16).map(|row| u32::from(row == 15)).collect();
    // Each example twice, because a node with one error is not divided.
    let examples = of(vec![attribute], classes, 2);
    let twice = [2; 16];
    let grown = grow_weighted(&examples, &twice);
    assert_eq!((grown.node_count(), wrong(&grown, &examples)), (4, 0));
    let learnt = learn(&examples);
    assert_eq!((learnt.node_count(), wrong(&learnt, &examples)), (1, 1));
}

/// A subtree without the one error of a node has a leaf for it, beside two with the least examples.
#[test]
fn no_subtree_is_worth_one_error() {
    let subtree = pessimistic_errors(0, 1) + 2.0 * pessimistic_errors(0, LEAST);
    for cases in 1..1_000_000 {
        assert!(pessimistic_errors(1, cases) < subtree, "{cases} cases");
    }
}

#[test]
fn missing_is_a_branch_of_its_own() {
    let cells: Vec<Option<f64>> = (0..30)
        .map(|row| (row >= 10).then_some(f64::from(row)))
        .collect();
    let classes = (0..30).map(|row| u32::from(row >= 20)).collect();
    let examples = of(vec![ordered(&cells)], classes, 2);
    let tree = learn(&examples);
    assert_eq!((tree.node_count(), wrong(&tree, &examples)), (4, 0));
    // Where only being missing tells the class, there is no threshold.
    let classes = (0..30).map(|row| u32::from(row >= 10)).collect();
    let examples = of(vec![ordered(&cells)], classes, 2);
    let tree = learn(&examples);
    assert_eq!((tree.node_count(), wrong(&tree, &examples)), (3, 0));
}

#[test]
fn a_threshold_without_a_pattern_is_not_worth_its_name() {
    // The best of 28 thresholds gains a little by chance, less than log2(28) bits.
    let cells: Vec<u32> = (0..32).collect();
    let classes = (0..32u32).map(|row| row.count_ones() % 2).collect();
    let examples = of(vec![known(&cells)], classes, 2);
    assert_eq!(grow(&examples).node_count(), 1);
}

#[test]
fn a_stopped_tree_is_none() {
    let logs = Logs::new(14);
    let cancellation = Cancellation::new();
    cancellation.cancel();
    let stopped = Tree::learn(&days(), &ones(&days()), &logs, &cancellation);
    assert_eq!(stopped, None);
    let nothing = of(Vec::new(), vec![], 1);
    assert_eq!(
        Tree::learn(&nothing, &[], &logs, &Cancellation::new()),
        None
    );
}

/// Each threshold splits off the two least values: the worst shape that a tree can have.
#[test]
fn a_tree_of_unlimited_depth_ends() {
    let rows = 4_000u32;
    let cells: Vec<u32> = (0..rows).map(|row| row / 25).collect();
    let classes = (0..rows).map(|row| row / 25 % 2).collect();
    let noise = (0..rows).map(|row| row % 7).collect();
    let attributes = vec![known(&cells), Attribute::nominal(7, noise)];
    let examples = of(attributes, classes, 2);
    assert!(grow(&examples).depth() <= 128);
}

#[test]
fn two_thirds_are_drawn_by_a_seed() {
    for count in [0, 1, 2, 3, 100, 45_222] {
        let Thirds { learning, testing } = two_thirds(count, 5);
        assert_eq!(learning.len(), count as usize * 2 / 3);
        let mut all = [learning.clone(), testing].concat();
        all.sort_unstable();
        assert_eq!(all, (0..count).collect::<Vec<_>>());
        assert_eq!(two_thirds(count, 5).learning, learning);
    }
    assert_ne!(two_thirds(100, 5), two_thirds(100, 6));
}

/// Random examples: a nominal and two ordered attributes, one of which can be missing, and three
/// classes that depend on them now and then.
pub(crate) fn examples() -> impl Strategy<Value = Examples> {
    let row = (0u32..4, 0u32..9, proptest::option::of(0u32..20), 0u32..6);
    proptest::collection::vec(row, 1..120).prop_map(|rows| {
        let class = |(nominal, number, _, noise): &(u32, u32, Option<u32>, u32)| match noise {
            0..3 => *noise,
            _ => (nominal + number / 3) % 3,
        };
        let classes = rows.iter().map(class).collect();
        let numbers: Vec<u32> = rows.iter().map(|row| row.1).collect();
        let holes: Vec<Option<f64>> = rows.iter().map(|row| row.2.map(f64::from)).collect();
        let attributes = vec![
            Attribute::nominal(4, rows.iter().map(|row| row.0).collect()),
            known(&numbers),
            ordered(&holes),
        ];
        of(attributes, classes, 3)
    })
}

proptest! {
    #[test]
    fn a_weight_is_a_number_of_equal_rows(
        examples in examples(),
        picked in proptest::collection::vec(any::<prop::sample::Index>(), 1..200),
    ) {
        let rows: Vec<u32> =
            picked.iter().map(|index| index.index(examples.len()) as u32).collect();
        let of_rows = rows_of(&examples);
        let weights = of_rows.weights(&rows);
        prop_assert_eq!(weights.iter().sum::<u32>() as usize, rows.len());
        let of_column = |codes: &[u32]| rows.iter().map(|&row| codes[row as usize]).collect();
        let attributes = (0..).zip(&examples.attributes).map(|(position, it)| Attribute {
            domain: it.domain.clone(),
            codes: of_column(&examples.codes(position)),
        });
        let repeated = of(attributes.collect(), of_column(&examples.classes), examples.class_count);
        let distinct = &of_rows.distinct;
        let one = learn_weighted(distinct, &weights);
        let other = learn(&repeated);
        prop_assert_eq!(one.wrong(distinct, &weights), wrong(&other, &repeated));
        prop_assert_eq!(one, other);
    }

    /// An attribute with more than 256 codes, with that of missing, is counted by itself: by places at the
    /// root of 400 rows, sorted below.
    #[test]
    fn unused_values_do_not_change_a_tree(rows in proptest::collection::vec((0u32..20, 0u32..6, 0u32..3), 400)) {
        let class = |&(one, _, noise): &(u32, u32, u32)| if noise == 0 { one % 2 } else { one / 7 % 2 };
        let classes: Vec<u32> = rows.iter().map(class).collect();
        let with_unused = |unused: u32| {
            let values = (0..20 + unused).map(f64::from).collect();
            let ordered = Attribute::ordered(values, rows.iter().map(|row| row.0).collect());
            let nominal = Attribute::nominal(6, rows.iter().map(|row| row.1).collect());
            of(vec![ordered, nominal], classes.clone(), 2)
        };
        let class_of = |tree: &Tree, examples: &Examples, row: u32| {
            tree.class(|position| examples.code(position, row))
        };
        let all_used = with_unused(0);
        let one = grow(&all_used);
        for (unused, narrow) in [(234, 2), (235, 2), (236, 1), (300, 1)] {
            let examples = with_unused(unused);
            prop_assert_eq!(examples.starts.len(), narrow, "{} unused", unused);
            let other = grow(&examples);
            prop_assert_eq!(one.node_count(), other.node_count());
            // In the order of the ordered attribute, which is not sorted then.
            let rows_of_it = rows_of(&examples);
            let all: Vec<u32> = (0..400).collect();
            prop_assert_eq!(rows_of_it.distinct.ascending, Some(0));
            let weights = rows_of_it.weights(&all);
            prop_assert_eq!(&other, &grow_weighted(&rows_of_it.distinct, &weights));
            for row in 0..400 {
                prop_assert_eq!(class_of(&one, &all_used, row), class_of(&other, &examples, row));
            }
        }
    }

    /// Of two classes, thresholds that cannot be better are not looked at; with a third class that no example
    /// has, all are.
    #[test]
    fn an_unused_class_does_not_change_the_root(
        rows in proptest::collection::vec((0u32..500, 0u32..100, 0u32..4), 800..1200),
        bounds in proptest::collection::vec(0u32..500, 1..4),
        steps in 1u32..200,
    ) {
        let class = |&(code, _, noise): &(u32, u32, u32)| match noise {
            0 => code % 2,
            _ => bounds.iter().filter(|bound| code >= **bound).count() as u32 % 2,
        };
        let classes: Vec<u32> = rows.iter().map(class).collect();
        let codes = rows.iter().map(|row| row.0 / steps * steps);
        let noise = rows.iter().map(|row| row.1);
        let attributes = [codes.collect::<Vec<u32>>(), noise.collect()].map(|codes| known(&codes));
        let examples = |class_count| {
            let attributes = attributes.iter().map(|it| (it.domain.clone(), it.codes.iter().copied()));
            Examples::new(attributes, classes.clone(), class_count)
        };
        let (two, three) = (grow(&examples(2)), grow(&examples(3)));
        prop_assert_eq!(
            two.nodes[0].split.as_ref().map(|it| it.test),
            three.nodes[0].split.as_ref().map(|it| it.test)
        );
    }

    /// Attributes for which the array of weights has no place are counted by themselves.
    #[test]
    fn unused_classes_do_not_change_a_tree_of_values(
        rows in proptest::collection::vec((0u32..9, 0u32..9, 0u32..9, 0u32..3), 300),
    ) {
        let column = |code: fn(&(u32, u32, u32, u32)) -> u32| {
            Attribute::nominal(100, rows.iter().map(code).collect())
        };
        let of_classes = |class_count| {
            let attributes = vec![column(|row| row.0), column(|row| row.1), column(|row| row.2)];
            let class = |row: &(u32, u32, u32, u32)| if row.3 == 0 { row.0 % 3 } else { row.3 };
            of(attributes, rows.iter().map(class).collect(), class_count)
        };
        let (few, many) = (of_classes(3), of_classes(256));
        prop_assert_eq!((few.starts.len(), many.starts.len()), (3, 2));
        prop_assert_eq!(grow(&few), grow(&many));
    }

    /// Also where it is counted as what others leave of its parent.
    #[test]
    fn a_node_is_divided_as_its_examples_are_by_themselves(examples in examples()) {
        let tree = grow(&examples);
        let mut reached = vec![vec![0; examples.len()]; tree.nodes.len()];
        for row in 0..examples.len() as u32 {
            let mut at = Some(0);
            while let Some(node) = at {
                reached[node as usize][row as usize] = 1;
                let split = tree.nodes[node as usize].split.as_ref();
                at = split.and_then(|it| it.branch(examples.code(it.test.position, row)));
            }
        }
        // Of fewer examples, the four values of an attribute are many.
        let nodes = tree.nodes.iter().zip(&reached).filter(|(node, _)| node.weight >= 14);
        for (node, weights) in nodes {
            let alone = grow_weighted(&examples, weights);
            let test = |node: &tree::Node| node.split.as_ref().map(|it| it.test);
            prop_assert_eq!(test(node), test(&alone.nodes[0]));
        }
    }

    /// Codes far apart and many classes: the classes of a node are counted by the branches that occur.
    #[test]
    fn a_node_has_the_classes_of_the_examples_that_reach_it(
        rows in proptest::collection::vec((0u32..40, 0u32..3, 0u32..200), 200),
    ) {
        let wide = Attribute::nominal(1000, rows.iter().map(|row| row.0 * 25).collect());
        let narrow = Attribute::nominal(3, rows.iter().map(|row| row.1).collect());
        let class = |&(wide, _, noise): &(u32, u32, u32)| if noise < 100 { wide * 5 } else { noise };
        let classes: Vec<u32> = rows.iter().map(class).collect();
        let examples = of(vec![wide, narrow], classes.clone(), 200);
        let tree = grow(&examples);
        let mut reached = vec![[0u64; 200]; tree.nodes.len()];
        for (row, class) in (0..).zip(classes) {
            let mut at = 0;
            loop {
                reached[at][class as usize] += 1;
                let Some(split) = &tree.nodes[at].split else { break };
                let code = examples.code(split.test.position, row);
                at = split.branch(code).unwrap() as usize;
            }
        }
        for (node, classes) in tree.nodes.iter().zip(reached) {
            let most = classes.into_iter().max().unwrap_or(0);
            prop_assert_eq!(node.weight, classes.iter().sum::<u64>());
            prop_assert_eq!((classes[node.class as usize], node.errors), (most, node.weight - most));
        }
    }

    #[test]
    fn a_tree_errs_no_more_on_what_it_learnt_than_the_majority(examples in examples()) {
        let mut counts = [0u64; 3];
        examples.classes.iter().for_each(|&class| counts[class as usize] += 1);
        let majority = examples.len() as u64 - counts.into_iter().max().unwrap();
        let (grown, learnt) = (grow(&examples), learn(&examples));
        prop_assert!(wrong(&grown, &examples) <= wrong(&learnt, &examples));
        prop_assert!(wrong(&learnt, &examples) <= majority);
        prop_assert!(learnt.node_count() <= grown.node_count());
        prop_assert!(learnt.depth() <= grown.depth());
    }

    #[test]
    fn a_held_out_error_is_the_share_of_wrong_rows(examples in examples(), seed in any::<u64>()) {
        let thirds = two_thirds(examples.len() as u32, seed);
        let rows = rows_of(&examples);
        let error = held_out_error(&rows, &thirds, &Logs::new(examples.len() as u64), &Cancellation::new());
        let weights = |rows: &[u32]| {
            let mut weights = vec![0; examples.len()];
            rows.iter().for_each(|&row| weights[row as usize] = 1);
            weights
        };
        let expected = (!thirds.learning.is_empty()).then(|| {
            let tree = learn_weighted(&examples, &weights(&thirds.learning));
            tree.wrong(&examples, &weights(&thirds.testing)) as f64 / thirds.testing.len() as f64
        });
        prop_assert_eq!(error, expected);
    }
}
