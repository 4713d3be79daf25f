//! A publication of twelve months of public encounters, with persons who come in several of them, to one
//! recipient who has all editions.

use std::sync::Arc;

use anyhow::{Context, ensure};
use pais_anonymize::{AnonymizationRun, Unobserved};
use pais_core::definition::{
    ColumnDefinition, ColumnRole, DatasetDefinition, Job, Objective, SplitRule,
};
use pais_core::model::Lkc;
use pais_core::schema::Schema;
use pais_core::table::Table;
use pais_editions::{DecidedEdition, EarlierEdition, EditionTask, KnownRelease, decide_edition};
use pais_io::read::csv;

use crate::plan::MonthMeasure;

const ENCOUNTERS: &str = include_str!("../../../tests/data/synthea/encounters_2018.csv");

/// The outcome of a month.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Month {
    sent: usize,
    published: usize,
    waiting: usize,
    edition: f64,
    alone: f64,
    together: f64,
}

impl Month {
    pub(crate) fn value(&self, measure: MonthMeasure) -> f64 {
        match measure {
            MonthMeasure::Edition => self.edition,
            MonthMeasure::Alone => self.alone,
            MonthMeasure::Together => self.together,
            MonthMeasure::Sent => self.sent as f64,
            MonthMeasure::Published => self.published as f64,
            MonthMeasure::Waiting => self.waiting as f64,
        }
    }
}

fn schema() -> anyhow::Result<Arc<Schema>> {
    let definition = DatasetDefinition {
        name: "encounters".to_owned(),
        columns: vec![
            ColumnDefinition::new("month", ColumnRole::Identifier),
            ColumnDefinition::new("patient", ColumnRole::Subject),
            ColumnDefinition::quasi_identifier("age").numeric(0.0, 110.0),
            ColumnDefinition::quasi_identifier("gender"),
            ColumnDefinition::quasi_identifier("race"),
            ColumnDefinition::quasi_identifier("marital"),
            ColumnDefinition::sensitive("condition"),
        ],
        ..DatasetDefinition::default()
    };
    Ok(Arc::new(Schema::inline(&definition)?))
}

/// The model of all editions.
fn model() -> anyhow::Result<Lkc> {
    Ok(Lkc::new(2, 5, 0.8)?)
}

/// Publishes month after month. The encounters are ordered by month.
///
/// # Errors
/// If a month is not published.
pub(crate) fn publish() -> anyhow::Result<Vec<Month>> {
    Ok(publish_editions()?.0)
}

/// The months and their editions.
fn publish_editions() -> anyhow::Result<(Vec<Month>, Vec<DecidedEdition>)> {
    let schema = schema()?;
    let mut job = Job::new(model()?);
    job.objective = Some(Objective::Ncp);
    job.split = Some(SplitRule::BestValid);
    let names: Vec<&str> = ENCOUNTERS.lines().skip(1).map(|line| &line[..7]).collect();
    let all = csv::read_table(&schema, ENCOUNTERS.as_bytes())?;
    let mut published: Vec<DecidedEdition> = Vec::new();
    let mut known: Vec<KnownRelease> = Vec::new();
    let (mut months, mut waiting, mut sent) = (Vec::new(), Vec::new(), 0);
    for month in names.chunk_by(|one, other| one == other) {
        let new = sent..sent + month.len() as u32;
        sent = new.end;
        waiting.extend(new);
        let earlier = published.iter().map(|it| EarlierEdition {
            cut: it.verified.cut().cloned(),
            rows: it.verified.source_rows().len() as u64,
            is_base: it.is_base,
        });
        let earlier: Vec<EarlierEdition> = earlier.collect();
        let so_far: Vec<u32> = (0..sent).collect();
        let so_far = all.of_rows(&so_far);
        let task = EditionTask {
            schema: schema.clone(),
            job: job.clone(),
            earlier: &earlier,
            order_key: None,
            views: std::slice::from_ref(&*schema),
            raw: &so_far,
            candidates: waiting.clone(),
            known: &known,
            histories: &[(0..known.len()).collect()],
        };
        let edition = decide_edition(task, &Unobserved::default());
        let edition = edition.with_context(|| format!("{} is not published", month[0]))?;
        let rows = edition.source_rows();
        waiting.retain(|row| !rows.contains(row));
        let report = edition
            .run
            .measure(&edition.found, &edition.verified, &Unobserved::default());
        months.push(Month {
            sent: month.len(),
            published: rows.len(),
            waiting: waiting.len(),
            edition: report?.utility.ncp,
            alone: ncp(&schema, &job, all.of_rows(&rows))?,
            together: ncp(&schema, &job, so_far)?,
        });
        known.push(edition.release(&job)?);
        published.push(edition);
    }
    let released: usize = months.iter().map(|month| month.published).sum();
    ensure!(released + waiting.len() == names.len(), "rows are lost");
    Ok((months, published))
}

/// Mean NCP of the release of some rows.
fn ncp(schema: &Arc<Schema>, job: &Job, rows: Table) -> anyhow::Result<f64> {
    let observer = Unobserved::default();
    let run = AnonymizationRun::new(schema.clone(), job.clone(), rows, &observer)?;
    let release = run.release(&run.search(&observer)?, None, &observer)?;
    Ok(release.report().utility.ncp)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pais_editions::DecidedEdition;
    use pais_test_support::adversary::{Publication, RawRow, ReleasedLabels, interval_covers};

    use super::{ENCOUNTERS, model, publish_editions};

    const KNOWN: [&str; 4] = ["age", "gender", "race", "marital"];

    fn encounters() -> Vec<RawRow> {
        let mut reader = csv::Reader::from_reader(ENCOUNTERS.as_bytes());
        let rows = reader.deserialize::<BTreeMap<String, String>>();
        let rows = rows.map(|row| {
            let row = row.unwrap();
            RawRow {
                person: row["patient"][1..].parse().unwrap(),
                known: KNOWN.map(|column| row[column].clone()).to_vec(),
                sensitive: row["condition"].clone(),
            }
        });
        rows.collect()
    }

    fn labels(edition: &DecidedEdition) -> ReleasedLabels {
        let columns = &edition.verified.tables()[0].columns;
        let columns = KNOWN.map(|name| columns.iter().find(|it| *it.name == *name).unwrap());
        let rows = edition.source_rows().into_iter().enumerate();
        let rows = rows.map(|(row, raw)| {
            let labels = columns.map(|column| column.column.text(row).unwrap().to_owned());
            (raw, labels.to_vec())
        });
        rows.collect()
    }

    fn covers(label: &str, value: &str) -> bool {
        label == "*" || interval_covers(label, value).unwrap_or(label == value)
    }

    #[test]
    fn every_month_is_published_at_little_more_loss_than_alone_and_each_prefix_is_private() {
        let (months, editions) = publish_editions().unwrap();
        assert_eq!(months.len(), 12);
        let last = months[11];
        let published: usize = months.iter().map(|month| month.published).sum();
        assert_eq!(published + last.waiting, ENCOUNTERS.lines().count() - 1);
        assert!(last.edition <= 1.25 * last.alone, "{last:?}");

        let rows = encounters();
        let model = model().unwrap();
        let publication = Publication {
            rows: &rows,
            model: &model,
            covers,
        };
        let editions: Vec<ReleasedLabels> = editions.iter().map(labels).collect();
        for (number, row) in rows.iter().enumerate() {
            let of_row = editions.iter().find_map(|it| it.get(&(number as u32)));
            for (label, value) in of_row.into_iter().flatten().zip(&row.known) {
                assert!(covers(label, value), "{label} is not a label of {value}");
            }
        }
        for first in 1..=editions.len() {
            publication.assert_private(&editions[..first]);
        }
    }
}
