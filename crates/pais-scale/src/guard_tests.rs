//! An engine that loses, doubles, replaces or moves one of a million rows has no step accepted.

use std::sync::{Arc, Mutex};

use pais_anonymize::{
    ColumnParts, CountError, Observer, PartCounts, RowCounter, RunError, Unobserved,
};
use pais_core::definition::JobDefinition;
use pais_core::schema::Schema;
use pais_core::table::Table;
use pais_io::read::csv;
use pais_test_support::split_mix::SplitMix64;
use pais_test_support::{adult, enlarged};

use crate::datafusion_counter::DataFusionCounter;
use crate::encoded_run::{EncodedRun, Engine, ScaledJob};
use crate::error::ScaleError;
use crate::values::RowSource;

const ROWS: u64 = 1_000_000;

/// Adult with a million rows.
struct EnlargedAdult {
    schema: Arc<Schema>,
    file: std::fs::File,
}

impl RowSource for EnlargedAdult {
    type Error = ScaleError;

    fn rows(&self) -> Result<u64, ScaleError> {
        Ok(ROWS)
    }

    fn read(
        self,
        found: &mut dyn FnMut(Table) -> Result<(), ScaleError>,
    ) -> Result<(), ScaleError> {
        let read = csv::read(&self.schema, self.file, Default::default(), found);
        assert_eq!(read.ok(), Some(ROWS));
        Ok(())
    }
}

/// The spooled rows, and the directory of temporary files.
fn million_rows() -> (EncodedRun, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let text = adult::csv().unwrap();
    let file = enlarged::file(folder.path(), &text, ROWS as usize).unwrap();
    let dataset = serde_json::from_value(adult::dataset("adult").unwrap()).unwrap();
    let schema = Arc::new(Schema::inline(&dataset).unwrap());
    let job: JobDefinition = serde_json::from_value(adult::job(4)).unwrap();
    let job = ScaledJob {
        schema: Arc::clone(&schema),
        job: job.parse().unwrap(),
        memory: 128 << 20,
        executors: None,
        spool: folder.path().to_owned(),
    };
    let file = std::fs::File::open(file).unwrap();
    let source = EnlargedAdult { schema, file };
    let run = job.encode(source, &Unobserved::default()).unwrap();
    (run, folder)
}

/// What happens to one row of a table while it is counted.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Lost,
    Doubled,
    /// Lost, and another row of the same combination is counted twice.
    Replaced,
    /// Counted with another combination.
    Moved,
}

impl Fault {
    const ALL: [Self; 4] = [Self::Lost, Self::Doubled, Self::Replaced, Self::Moved];

    fn befalls(self, counts: &mut PartCounts, random: &mut SplitMix64) {
        let records = counts.rows.len();
        let several = (0..records).filter(|&record| counts.rows[record] > 1);
        let several: Vec<usize> = several.collect();
        let from = several[random.below(several.len())];
        let number = counts.number_sums[from] / counts.rows[from];
        match self {
            Self::Lost => {
                counts.rows[from] -= 1;
                counts.number_sums[from] -= number;
            }
            Self::Doubled => {
                counts.rows[from] += 1;
                counts.number_sums[from] += number;
            }
            Self::Replaced => counts.number_sums[from] += 1 + random.below(1_000) as u64,
            Self::Moved => {
                let to = (from + 1 + random.below(records - 1)) % records;
                counts.rows[from] -= 1;
                counts.number_sums[from] -= number;
                counts.rows[to] += 1;
                counts.number_sums[to] += number;
            }
        }
    }
}

/// What the rows are counted by, and what is found.
struct Statement {
    columns: Vec<ColumnParts>,
    most: Option<usize>,
    found: Result<PartCounts, CountError>,
}

/// The engine's answers, so that 300 searches take as long as one.
#[derive(Default)]
struct Answers {
    statements: Vec<Statement>,
    expected: Vec<(Vec<ColumnParts>, u64)>,
}

/// Answers each statement as the engine did once, except one statement and its repetitions.
struct FaultyCounter<'a> {
    answers: &'a Mutex<Answers>,
    engine: DataFusionCounter,
    fault: Option<(usize, Fault)>,
    random: Mutex<SplitMix64>,
    /// How often the fault has happened.
    faults: &'a Mutex<usize>,
}

impl RowCounter for FaultyCounter<'_> {
    fn expected_combinations(
        &self,
        columns: &[ColumnParts],
        observer: &dyn Observer,
    ) -> Result<u64, CountError> {
        let mut answers = self.answers.lock().unwrap();
        let mut known = answers.expected.iter();
        if let Some((_, expected)) = known.find(|(asked, _)| asked == columns) {
            return Ok(*expected);
        }
        let expected = self.engine.expected_combinations(columns, observer)?;
        answers.expected.push((columns.to_vec(), expected));
        Ok(expected)
    }

    fn count(
        &self,
        columns: &[ColumnParts],
        most: Option<usize>,
        observer: &dyn Observer,
    ) -> Result<PartCounts, CountError> {
        let statements = &mut self.answers.lock().unwrap().statements;
        let mut known = statements.iter();
        let known = known.position(|it| it.columns == columns && it.most == most);
        let number = known.unwrap_or_else(|| {
            let columns = columns.to_vec();
            let found = self.engine.count(&columns, most, observer);
            statements.push(Statement {
                columns,
                most,
                found,
            });
            statements.len() - 1
        });
        let mut counts = statements[number].found.clone()?;
        if let Some((_, fault)) = self.fault.filter(|(faulty, _)| *faulty == number) {
            *self.faults.lock().unwrap() += 1;
            fault.befalls(&mut counts, &mut self.random.lock().unwrap());
        }
        Ok(counts)
    }
}

#[test]
fn one_wrong_row_of_a_million_is_refused_three_hundred_times_of_three_hundred() {
    let (run, _folder) = million_rows();
    let answers = Mutex::default();
    let seed: u64 = std::process::id().into();
    let search = |fault: Option<(usize, Fault)>, case: u64| {
        let faults = Mutex::new(0);
        let engine = Engine {
            counter: Some(&|rows, memory, sealer| {
                Ok(Box::new(FaultyCounter {
                    answers: &answers,
                    engine: DataFusionCounter::new(rows, memory, sealer)?,
                    fault,
                    random: Mutex::new(SplitMix64(seed * 1_000 + case)),
                    faults: &faults,
                }))
            }),
            budget: Some(20_000),
        };
        let found = run.search_by(&engine, &Unobserved::default());
        (found, faults.into_inner().unwrap())
    };
    let (honest, _) = search(None, 0);
    let steps = honest.unwrap().outcome.steps().len();
    let answered: Vec<usize> = {
        let statements = &answers.lock().unwrap().statements;
        let answered = |&number: &usize| statements[number].found.is_ok();
        (0..statements.len()).filter(answered).collect()
    };
    // A histogram by class of each attribute, and several rounds.
    assert!(
        steps > 5 && answered.len() >= 13 + 3,
        "{} statements",
        answered.len()
    );
    for case in 0..300 {
        let number = answered[case % answered.len()];
        let fault = Fault::ALL[(case / answered.len()) % 4];
        let (found, faults) = search(Some((number, fault)), case as u64);
        let case = format!("{fault:?} in statement {number}, seed {seed}, case {case}");
        let is_refused = matches!(found, Err(ScaleError::Run(RunError::NotCounted { .. })));
        assert!(is_refused, "accepted: {case}");
        assert_eq!(faults, 3, "{case}");
    }
}
