//! Every figure on the page of a recipient, calculated again from the released file: the page of each kind
//! of release has no other figures.
//!
//! With `PAIS_PAGES` the pages are also written into that directory, to be looked at.

mod sweep;
mod table;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use pais::roles::Role;
use pais_report::percent;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::app::{Answer, send, text as string};
use crate::hospital::{Hospital, id};
use pais_test_support::hex::hex;
use table::{Table, bucket, ends, subsets};
use text::PageText;

const RAW_ROWS: usize = 61;

/// What is on every page, whatever is released.
const WORDS: [&str; 23] = [
    "choose lkc with c below 1",
    "Article 29 Working Party",
    "1 column",
    "0 % is exact, 100 % says nothing",
    "count as 100 %",
    "opinion 05/2014 (WP216)",
    "EMA Policy 0070 (EMA/90915/2016, chapter 3)",
    "A group of 11 has a risk of 9.1 %, a group of 12 one of 8.3 %",
    "at most 9\u{a0}%",
    "11 or more",
    "no cell of 1 to 10",
    "The 18 identifiers of HIPAA Safe Harbor",
    "45 CFR 164.514(b)(2)(i)",
    "(164.514(b)(2)(ii))",
    "put all ages over 89 into one group, 90 or older",
    "elements of dates but the year, and ages over 89",
    "check that no year tells an age over 89",
    "1 / smallest group",
    "1 - ncp",
    "SHA-256",
    "above 5 %",
    "above 10 %",
    "above 20 %",
];

/// A table of stays, a job on it, and what it makes.
struct Case {
    name: &'static str,
    columns: Value,
    rows: String,
    job: Value,
}

fn jobs() -> Value {
    json!({"label": "any", "children": [
        {"label": "Manual", "children": [{"label": "Farmer"}, {"label": "Miner"}]},
        {"label": "Office", "children": [{"label": "Clerk"}, {"label": "Teacher"}]},
    ]})
}

/// 60 stays, and one of a person of a third sex.
fn stays(name: &'static str, job: Value) -> Case {
    let columns = json!([
        {"name": "name", "role": "identifier"},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 120]},
        {"name": "work", "role": "quasi_identifier", "taxonomy": jobs()},
        {"name": "sex", "role": "quasi_identifier"},
        {"name": "note", "role": "insensitive"},
        {"name": "illness", "role": "sensitive"},
    ]);
    let row = |row: usize| {
        let work = ["Farmer", "Miner", "Clerk", "Teacher"][row * 7 / 3 % 4];
        let sex = if row == 60 {
            "x"
        } else {
            ["f", "m"][row / 3 % 2]
        };
        let illness = ["flu", "cold", "cough", "gout"][row * 5 / 2 % 4];
        format!(
            "P{row},{},{work},{sex},{},{illness}\n",
            row * 17 % 91,
            ["a", "b", "c"][row % 3]
        )
    };
    let rows: String = (0..RAW_ROWS).map(row).collect();
    let rows = format!("name,age,work,sex,note,illness\n{rows}");
    Case {
        name,
        columns,
        rows,
        job,
    }
}

/// A page, and the tables that it is about.
struct Made {
    declared: Vec<String>,
    page: PageText,
    tables: BTreeMap<String, Table>,
}

impl Case {
    /// The job on the submitted rows, when it has ended.
    async fn ended(&self, mut job: Value) -> (Hospital, Value) {
        let hospital = Hospital::new().await;
        let definition = json!({"name": "stays", "columns": self.columns});
        let dataset = hospital.post("/v1/datasets", &definition).await.json(201);
        let dataset = format!("/v1/datasets/{}", string(&dataset["id"]));
        hospital.submit(&dataset, self.rows.clone()).await.json(201);
        job["dataset_id"] = json!(id(&dataset));
        let job = hospital.post("/v1/jobs", &job).await.json(202);
        let workers = hospital.work();
        let ended = hospital
            .ended(&format!("/v1/jobs/{}", string(&job["id"])))
            .await;
        workers.stop().await;
        assert_eq!(ended["status"], "succeeded", "{ended}");
        (hospital, ended)
    }

    /// The recipient's page of the release.
    async fn made(&self) -> Made {
        let mut job = self.job.clone();
        job["release"] = json!(true);
        let (hospital, ended) = self.ended(job).await;
        let release = format!("/v1/releases/{}", string(&ended["release_id"]));
        let recipient = hospital.app.token("bts", Role::Recipient).await;
        let grant = json!({"recipient": "bts", "purpose": "Planning the supply"});
        hospital
            .post(&format!("{release}/grants"), &grant)
            .await
            .json(201);

        let shown = page(&hospital, &recipient, &release).await.text;
        let own = page(&hospital, &hospital.token, &release).await.text;
        for page in [&shown, &own] {
            assert!(!page.contains(": not known") && !page.contains("and not known"));
        }
        if let Ok(directory) = std::env::var("PAIS_PAGES") {
            std::fs::write(format!("{directory}/{}.html", self.name), &own).unwrap();
            std::fs::write(format!("{directory}/{} recipient.html", self.name), &shown).unwrap();
        }
        let mut page = PageText::new(&shown);
        let document = hospital.get(&release).await.json(200);
        let mut tables = BTreeMap::new();
        for table in document["tables"].as_array().unwrap() {
            let name = string(&table["name"]);
            let csv = hospital.get(&format!("{release}/tables/{name}")).await;
            assert_eq!(csv.status, 200);
            let rows = csv.text.lines().count() - 1;
            page.take_row(&[name, &rows.to_string(), &hex(&Sha256::digest(&csv.bytes))]);
            tables.insert(name.to_owned(), Table::read(&csv.text));
        }
        page.take_row(&["Granted to", "bts"]);
        page.take_row(&["Purpose", "Planning the supply"]);
        page.take(id(&release));
        page.take_time();
        let columns = self.columns.as_array().unwrap().iter();
        Made {
            declared: columns
                .map(|column| string(&column["name"]).to_owned())
                .collect(),
            page,
            tables,
        }
    }
}

async fn page(hospital: &Hospital, token: &str, release: &str) -> Answer {
    let request = hospital
        .app
        .request(Method::GET, &format!("{release}/report"));
    let answer = send(request.header("accept", "text/html").bearer_auth(token)).await;
    assert_eq!(answer.status, 200);
    answer
}

/// `1 record`, `2 records`.
fn counted(number: usize, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

/// What the groups of equal quasi-identifiers say, in records or persons.
struct Groups {
    sizes: Vec<usize>,
}

impl Groups {
    fn all(&self) -> usize {
        self.sizes.iter().sum()
    }

    fn smallest(&self) -> usize {
        self.sizes.iter().copied().min().unwrap()
    }

    fn highest(&self) -> f64 {
        1.0 / self.smallest() as f64
    }

    fn average(&self) -> f64 {
        self.sizes.len() as f64 / self.all() as f64
    }

    fn at_highest(&self) -> usize {
        let smallest = self.smallest();
        smallest * self.sizes.iter().filter(|&&size| size == smallest).count()
    }

    fn share(&self, is_meant: impl Fn(usize) -> bool) -> f64 {
        let meant: usize = self
            .sizes
            .iter()
            .copied()
            .filter(|&size| is_meant(size))
            .sum();
        meant as f64 / self.all() as f64
    }
}

fn close(text: &str, expected: f64) {
    let found: f64 = text.replace(',', "").parse().unwrap();
    let scale = expected.abs().max(1.0);
    assert!(
        (found - expected).abs() <= 1e-6 * scale,
        "{text} is not {expected}"
    );
}

/// The part of the domain that a label leaves open.
fn ncp(column: &str, label: &str) -> f64 {
    let of_item = |label: &str| match label {
        "any" => 1.0,
        "Manual" | "Office" => 0.5,
        _ => 0.0,
    };
    match (column, label) {
        ("age", label) => {
            let (lo, hi) = ends(label);
            (hi - lo) / 120.0
        }
        ("sex" | "ward", label) => f64::from(u8::from(label == "*")),
        ("work", label) => of_item(label),
        // Nothing of an empty set is released.
        (_, "") => 1.0,
        (_, items) => {
            let items: Vec<f64> = items.split('|').map(of_item_of_set).collect();
            items.iter().sum::<f64>() / items.len() as f64
        }
    }
}

/// The set `drugs` has no taxonomy, so that items are exact or hidden.
fn of_item_of_set(item: &str) -> f64 {
    f64::from(u8::from(item == "*"))
}

/// Loss of detail of each quasi-identifier, suppressed rows counting 1.
fn losses(table: &Table, known: &[&'static str], suppressed: usize) -> BTreeMap<&'static str, f64> {
    let all = (table.rows.len() + suppressed) as f64;
    let loss = |&column: &&'static str| {
        let labels = table.column(column).into_iter();
        let sum: f64 = labels.map(|label| ncp(column, label)).sum();
        (column, (sum + suppressed as f64) / all)
    };
    known.iter().map(loss).collect()
}

const KNOWN: [&str; 3] = ["age", "work", "sex"];

impl Made {
    fn data(&self) -> &Table {
        &self.tables["data"]
    }

    /// The figures that every release of one generalized table has: rows, losses, groups, risk.
    fn take_of_generalized(&mut self, known: &[&'static str], groups: &Groups, unit: &str) {
        let rows = self.data().rows.len();
        let suppressed = RAW_ROWS - rows;
        let losses = losses(self.data(), known, suppressed);
        let mean = losses.values().sum::<f64>() / losses.len() as f64;
        let row_groups = Groups {
            sizes: self.data().groups(known).iter().map(Vec::len).collect(),
        };
        let left_out = match suppressed {
            0 => "no record was left out.".to_owned(),
            number => format!("{number} of {RAW_ROWS} records were left out."),
        };
        let page = &mut self.page;
        page.take(&format!("\n{}", counted(rows, "record")));
        page.take(&format!(
            "{} of the detail of the quasi-identifiers was given up for this on average, and {left_out}",
            percent(mean)
        ));
        let average = rows as f64 / row_groups.sizes.len() as f64;
        page.take(&format!(
            "{rows} records are released, {suppressed} were left out. They form {} of records that look alike \
             in all quasi-identifiers, {} records on average.",
            counted(row_groups.sizes.len(), "group"),
            (average * 10.0).round() / 10.0,
        ));
        for (column, loss) in &losses {
            let labels = self.tables["data"].labels(column).len();
            let happened = [
                format!("{labels} intervals"),
                format!("{labels} labels"),
                "one label for all, which says nothing".to_owned(),
                "released exactly".to_owned(),
                "generalized in each group by itself".to_owned(),
                "items hidden or generalized".to_owned(),
            ];
            let loss = percent(*loss);
            let row = |fate: &str| format!("\n{column}\n\n{fate}\n\n{loss}\n");
            let found = happened.iter().find(|fate| page.says(&row(fate)));
            let fate = found.unwrap_or_else(|| panic!("{column} lost {loss}\n{}", page.all()));
            page.take(&row(fate));
        }
        self.take_risk(groups, unit);
        self.take_buckets(&row_groups);
        let page = &mut self.page;
        let squares: usize = row_groups.sizes.iter().map(|size| size * size).sum();
        close(&page.take_field("average_group"), average);
        close(
            &page.take_field("average_group_per_record"),
            squares as f64 / rows as f64,
        );
        close(&page.take_field("discernibility"), squares as f64);
        close(
            &page.take_field("dr"),
            squares as f64 / (rows * rows) as f64,
        );
        close(&page.take_field("groups"), row_groups.sizes.len() as f64);
        close(&page.take_field("ncp"), mean);
        close(&page.take_field("information_remain"), 1.0 - mean);
        close(&page.take_field("smallest_group"), groups.smallest() as f64);
        self.take_of_risk(groups);
    }

    /// The figures of an anatomized release: its rows are exact, and `sizes` are those of its groups.
    fn take_of_anatomy(&mut self, groups: &Groups, sizes: &Groups) {
        let page = &mut self.page;
        page.take(&format!("\n{RAW_ROWS} records\n"));
        let average = sizes.all() as f64 / sizes.sizes.len() as f64;
        page.take(&format!(
            "{RAW_ROWS} records are released, 0 were left out. They form {}, {} records on average.",
            counted(sizes.sizes.len(), "group"),
            (average * 10.0).round() / 10.0,
        ));
        for column in KNOWN {
            page.take_row(&[column, "released exactly", "0 %"]);
        }
        self.take_risk(groups, "record");
        self.take_above(groups);
        self.take_buckets(sizes);
        let page = &mut self.page;
        let squares: usize = sizes.sizes.iter().map(|size| size * size).sum();
        close(&page.take_field("average_group"), average);
        close(
            &page.take_field("average_group_per_record"),
            squares as f64 / RAW_ROWS as f64,
        );
        close(&page.take_field("discernibility"), squares as f64);
        close(
            &page.take_field("dr"),
            squares as f64 / (RAW_ROWS * RAW_ROWS) as f64,
        );
        close(&page.take_field("groups"), sizes.sizes.len() as f64);
        close(&page.take_field("ncp"), 0.0);
        close(&page.take_field("information_remain"), 1.0);
        close(&page.take_field("smallest_group"), sizes.smallest() as f64);
        self.take_of_risk(groups);
    }

    /// The fields of risk in the annex.
    fn take_of_risk(&mut self, groups: &Groups) {
        let page = &mut self.page;
        for name in ["highest", "prosecutor", "journalist"] {
            close(&page.take_field(name), groups.highest());
        }
        for name in ["average", "marketer"] {
            let average: f64 = page.take_field(name).parse().unwrap();
            assert!((average - groups.average()).abs() <= 0.005, "{average}");
        }
        close(
            &page.take_field("records_at_highest"),
            groups.at_highest() as f64,
        );
    }

    /// The chance to pick a record by all quasi-identifiers: in the summary, in the section on risk and
    /// beside the thresholds.
    fn take_risk(&mut self, groups: &Groups, unit: &str) {
        let (highest, average) = (percent(groups.highest()), percent(groups.average()));
        let page = &mut self.page;
        let worst = if groups.smallest() == 1 {
            format!("with certainty for the most exposed {unit}s.")
        } else {
            format!("with a chance of {highest} for the most exposed {unit}.")
        };
        page.take(&format!(
            "would pick the right {unit} with a chance of {average} on average, {worst}"
        ));
        page.take(&format!(
            "picks the right {unit} with a chance of {average} on average and of {highest} where the risk is \
             highest, which is so for {}.",
            counted(groups.at_highest(), unit)
        ));
        for (attacker, who, chance) in [
            (
                "prosecutor",
                "who looks for one patient known to be in the table",
                &highest,
            ),
            ("journalist", "who looks for anybody in the table", &highest),
            (
                "marketer",
                "who wants to find as many patients as possible, on average",
                &average,
            ),
        ] {
            page.take_row(&[attacker, who, chance]);
        }
        let is_within = |is_within| {
            if is_within {
                "not above it"
            } else {
                "above it"
            }
        };
        page.take(&format!(
            "{highest}, {}",
            is_within(groups.highest() <= 0.09)
        ));
        page.take(&format!(
            "{average}, {}",
            is_within(groups.average() <= 0.09)
        ));
    }

    /// Sizes of groups, by record.
    fn take_buckets(&mut self, groups: &Groups) {
        let mut buckets: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for &size in &groups.sizes {
            buckets.entry(bucket(size)).or_default().push(size);
        }
        for ((from, to), sizes) in buckets {
            let name = if from == to {
                counted(from, "record")
            } else {
                format!("{from} to {to}")
            };
            let share = percent(sizes.iter().sum::<usize>() as f64 / groups.all() as f64);
            self.page.take_row(&[
                &name,
                &format!("{share} in {}", counted(sizes.len(), "group")),
            ]);
        }
    }

    /// Share of the records with a risk above thresholds.
    fn take_above(&mut self, groups: &Groups) {
        for threshold in [0.05, 0.1, 0.2, 0.33, 0.5] {
            let share = groups.share(|size| 1.0 / size as f64 > threshold);
            self.page
                .take_row(&[&format!("above {}", percent(threshold)), &percent(share)]);
        }
    }

    /// What adversaries find who know one to `longest` quasi-identifiers, and the sizes of what those
    /// find who know up to `assumed`.
    fn take_lengths(&mut self, known: &[&str], lengths: Lengths) {
        let table = &self.tables["data"];
        let all = table.rows.len();
        for length in 1..=lengths.longest.min(known.len()) {
            let groups: Vec<_> = subsets(known, length)
                .iter()
                .flat_map(|columns| table.groups(columns))
                .collect();
            let smallest = groups.iter().map(Vec::len).min().unwrap();
            let mut is_below = vec![false; all];
            for &row in groups
                .iter()
                .filter(|group| group.len() < lengths.k)
                .flatten()
            {
                is_below[row] = true;
            }
            let below = is_below.iter().filter(|is| **is).count() as f64 / all as f64;
            let confidences = groups
                .iter()
                .map(|group| table.greatest_share(group, "illness", lengths.values));
            let protected = if length <= lengths.assumed {
                lengths.protects
            } else {
                "no: beyond what was asked"
            };
            self.page.take_row(&[
                &length.to_string(),
                &smallest.to_string(),
                &percent(below),
                &percent(confidences.fold(0.0, f64::max)),
                protected,
            ]);
        }
        // A column with one label for all rows adds nothing.
        let varied = known
            .iter()
            .copied()
            .filter(|column| table.labels(column).len() > 1);
        let assumed = subsets(&varied.collect::<Vec<_>>(), lengths.assumed);
        let sizes = assumed.iter().flat_map(|columns| table.groups(columns));
        let mut buckets: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for group in sizes {
            *buckets.entry(bucket(group.len())).or_default() += 1;
        }
        let all: usize = buckets.values().sum();
        for ((from, to), count) in buckets {
            let name = if from == to {
                from.to_string()
            } else {
                format!("{from} to {to}")
            };
            self.page
                .take_row(&[&name, &percent(count as f64 / all as f64)]);
        }
    }

    /// What the columns say that are released unchanged: in the summary and in the section on risk.
    fn take_unchanged(&mut self, columns: &[&str]) {
        let table = self.main();
        let share = table.unique_share(columns);
        let which = match columns {
            [one] => format!("{one}, which is"),
            [one, other] => format!("{one} and {other}, which are"),
            others => format!("values in the {} columns that are", others.len()),
        };
        let alone = columns
            .iter()
            .map(|column| (*column, table.unique_share(&[column])));
        let alone: Vec<_> = alone.filter(|(_, share)| *share > 0.0).collect();
        assert!(alone.is_empty(), "{alone:?}");
        let share_text = percent(share);
        if share > 0.09 {
            self.page.take(&format!(
                "but what is released unchanged singles out {share_text} of its records."
            ));
        }
        let all = if columns.len() == 1 {
            "it"
        } else {
            "all of them"
        };
        let found = if share == 0.0 {
            format!("no record by that: each has the same values in {all} as another one.")
        } else {
            format!("{share_text} of the records: no other record has the same values in {all}")
        };
        for _ in 0..2 {
            self.page.take(&format!(
                "The privacy model assumes that nobody knows a patient's {which} released unchanged. Somebody who does \
                 finds {found}"
            ));
        }
    }

    fn main(&self) -> &Table {
        self.tables.get("data").or(self.tables.get("qit")).unwrap()
    }

    /// What the verifier found, in the annex, and the greatest share of one illness in the section on risk.
    fn take_of_verification(&mut self, found: &Verified) {
        let rows = self.main().rows.len();
        let page = &mut self.page;
        page.take(&format!(
            "at most {} have the same sensitive value; the greatest share is of a value of illness.",
            at_most(found.confidence)
        ));
        close(
            &page.take_field("smallest_known_group"),
            found.smallest as f64,
        );
        for _ in 0..2 {
            close(&page.take_field("greatest_confidence"), found.confidence);
        }
        close(&page.take_field("groups"), found.groups as f64);
        close(&page.take_field("rows"), rows as f64);
        close(&page.take_field("smallest_group"), found.smallest as f64);
        close(
            &page.take_field("smallest_equivalence_class"),
            found.class as f64,
        );
        close(&page.take_field("violations"), 0.0);
        assert_eq!(page.take_field("holds"), "yes");
        if let Some((bound, value)) = found.bound {
            close(
                &page.take_field("greatest_bounded_confidence"),
                found.confidence,
            );
            page.take(&format!(
                "The bound on the share of a {value} is {}; the greatest share found is {}.",
                exact(bound),
                exact(found.confidence)
            ));
        }
        if let Some(subsets) = found.subsets {
            close(&page.take_field("subsets"), subsets as f64);
            page.take(&format!("for {} of ", counted(subsets, "combination")));
        }
    }

    /// The labels of the cut, on screen and on paper.
    fn take_labels(&mut self, known: &[&str]) {
        for column in known {
            let labels = self.tables["data"]
                .labels(column)
                .into_iter()
                .map(str::to_owned);
            let mut labels: Vec<String> = labels.collect();
            labels.sort_by_key(|label| std::cmp::Reverse(label.len()));
            let count = counted(labels.len(), "label");
            self.page.take_words(&[&format!("\n{column}{count}\n")]);
            for label in labels.iter().filter(|label| label.starts_with('[')) {
                self.page.take_words(&[label]);
            }
        }
    }

    /// The three questions of the opinion and the cells.
    fn take_guidelines(&mut self, found: &Guideline) {
        let table = self.main();
        let names = || {
            table
                .names
                .iter()
                .map(String::as_str)
                .filter(|name| *name != "group_id")
        };
        let others: Vec<&str> = names().filter(|name| *name != "illness").collect();
        let all: Vec<&str> = names().collect();
        let shares =
            [found.known, &others, &all].map(|columns| percent(table.unique_share(columns)));
        let rows = table.groups(found.known);
        let below: usize = rows.iter().map(Vec::len).filter(|&size| size < 11).sum();
        let below = percent(below as f64 / table.rows.len() as f64);
        let page = &mut self.page;
        // Shares of persons are for the holder.
        if found.unit == "record" {
            page.take(&format!(
                "{} of the records are unique by their quasi-identifiers, {} by all columns that are not \
                 sensitive, and {} by all columns.",
                shares[0], shares[1], shares[2],
            ));
        }
        page.take(&format!(
            "{} at least {}.",
            found.who,
            counted(found.smallest_known, found.unit)
        ));
        page.take(&format!(
            "links a record to at least {}.",
            counted(found.smallest, found.unit)
        ));
        page.take(&format!(
            "The greatest confidence in a sensitive value is {}",
            percent(found.confidence)
        ));
        let within = if found.smallest >= 11 {
            "not below it"
        } else {
            "below it"
        };
        if found.unit == "record" {
            page.take(&format!(
                "{}, {within}; {below} of the records are in smaller groups",
                found.smallest
            ));
        } else {
            page.take(&format!("{}, {within}", found.smallest));
        }
    }

    fn end(mut self) {
        let unrecognized = ["work", "sex", "note", "drugs", "illness"];
        let declared = |column: &&&str| self.declared.iter().any(|it| it == *column);
        let unrecognized = unrecognized.iter().filter(declared).count();
        self.page.take(&format!(
            "\n{} not recognized as any category",
            match unrecognized {
                1 => "1 column was".to_owned(),
                many => format!("{many} columns were"),
            }
        ));
        self.page.take_words(&WORDS);
        self.page.take_words(&["above 33 %", "above 50 %"]);
        self.page.assert_no_figure_is_left();
    }
}

/// What adversaries of a model know, at most.
struct Lengths {
    assumed: usize,
    longest: usize,
    k: usize,
    values: Option<&'static [&'static str]>,
    /// Of which figures the model says something.
    protects: &'static str,
}

/// What a verifier has to find.
struct Verified {
    groups: usize,
    /// Fewest records, or persons, that an adversary of the model finds.
    smallest: usize,
    /// Fewest records, or persons, that are equal in all quasi-identifiers.
    class: usize,
    confidence: f64,
    /// The bound on it, where the model has one, and what it is a bound of.
    bound: Option<(f64, &'static str)>,
    /// Number of combinations, where they are counted.
    subsets: Option<usize>,
}

/// What the answers to guidelines are calculated from.
struct Guideline<'a> {
    known: &'a [&'a str],
    /// Who finds the fewest records.
    who: &'a str,
    unit: &'a str,
    smallest: usize,
    smallest_known: usize,
    confidence: f64,
}

/// Sizes of the groups of equal quasi-identifiers, in records.
fn record_groups(table: &Table, known: &[&str]) -> Groups {
    Groups {
        sizes: table.groups(known).iter().map(Vec::len).collect(),
    }
}

/// The greatest share of a listed illness, and the fewest records, over groups of at most `most` columns.
fn adversary(table: &Table, known: &[&str], most: usize, values: Option<&[&str]>) -> (f64, usize) {
    let groups: Vec<_> = subsets(known, most)
        .iter()
        .flat_map(|columns| table.groups(columns))
        .collect();
    let shares = groups
        .iter()
        .map(|group| table.greatest_share(group, "illness", values));
    let smallest = groups.iter().map(Vec::len).min().unwrap();
    (shares.fold(0.0, f64::max), smallest)
}

/// LKC-privacy by one cut: what somebody finds who knows up to two attributes.
#[tokio::test(flavor = "multi_thread")]
async fn global() {
    let privacy =
        json!({"model": "lkc", "l": 2, "k": 4, "c": 0.5, "sensitive_values": {"illness": ["flu"]}});
    let case = stays("global", json!({"privacy": privacy}));
    let mut made = case.made().await;
    let groups = record_groups(made.data(), &KNOWN);
    let (confidence, smallest) = adversary(made.data(), &KNOWN, 2, Some(&["flu"]));
    made.page.take("L = 2 attributes");
    made.page.take("K = 4 records");
    made.page.take("C = 50 %");
    made.page
        .take("Somebody who knows more than 2 attributes of a patient: see what risk remains.");
    made.take_of_generalized(&KNOWN, &groups, "record");
    made.take_above(&groups);
    made.take_lengths(
        &KNOWN,
        Lengths {
            assumed: 2,
            longest: 4,
            k: 4,
            values: Some(&["flu"]),
            protects: "yes, with the listed values",
        },
    );
    made.page.take(&format!(
        "With up to 2 known attributes it is at most {}.",
        at_most(1.0 / smallest as f64)
    ));
    let varied = KNOWN
        .iter()
        .filter(|column| made.data().labels(column).len() > 1)
        .count();
    made.take_of_verification(&Verified {
        groups: groups.sizes.len(),
        smallest,
        class: groups.smallest(),
        confidence,
        bound: Some((0.5, "listed sensitive value")),
        subsets: Some([1, 1, 1, 3][varied]),
    });
    made.page
        .take("Only values that the job lists are compared: others may have a greater share.");
    made.take_unchanged(&["note", "illness"]);
    made.take_labels(&KNOWN);
    for _ in 0..2 {
        made.page.take(&format!(
            "Who knows up to 2 facts about a patient finds at least {smallest} records that fit, and no listed value \
             of illness is shared by more than {} of them.",
            at_most(confidence)
        ));
    }
    made.take_guidelines(&Guideline {
        known: &KNOWN,
        who: "Whoever knows 2 attributes of a patient finds",
        unit: "record",
        smallest: groups.smallest(),
        smallest_known: smallest,
        confidence,
    });
    made.end();
}

/// (α,k)-anonymity by groups of neighbours, whose labels overlap.
#[tokio::test(flavor = "multi_thread")]
async fn local() {
    let privacy = json!({"model": "alpha_k", "k": 5, "alpha": 0.6});
    let case = stays("local", json!({"privacy": privacy, "recoding": "local"}));
    let mut made = case.made().await;
    let groups = record_groups(made.data(), &KNOWN);
    let (confidence, smallest) = adversary(made.data(), &KNOWN, 3, None);
    made.page.take("at least k = 5 records");
    made.page.take("at most α = 60 % of them");
    made.take_of_generalized(&KNOWN, &groups, "record");
    made.take_above(&groups);
    made.take_lengths(
        &KNOWN,
        Lengths {
            assumed: 3,
            longest: 3,
            k: 5,
            values: None,
            protects: "yes",
        },
    );
    made.take_of_verification(&Verified {
        groups: groups.sizes.len(),
        smallest,
        class: smallest,
        confidence,
        bound: Some((0.6, "sensitive value")),
        subsets: Some(1),
    });
    made.take_unchanged(&["note", "illness"]);
    made.take_labels(&KNOWN);
    for _ in 0..2 {
        made.page.take(&format!(
            "Who knows all quasi-identifiers of a patient finds at least {smallest} records that fit, and no value of \
             illness is shared by more than {} of them.",
            at_most(confidence)
        ));
    }
    made.take_guidelines(&Guideline {
        known: &KNOWN,
        who: "Whoever knows all quasi-identifiers of a patient finds",
        unit: "record",
        smallest: groups.smallest(),
        smallest_known: smallest,
        confidence,
    });
    made.end();
}

/// k-anonymity with rows that are left out.
#[tokio::test(flavor = "multi_thread")]
async fn with_suppression() {
    let job = json!({"privacy": {"model": "k_anonymity", "k": 4}, "suppression_limit": 0.05});
    let mut made = stays("with suppression", job).made().await;
    assert!(
        made.data().rows.len() < RAW_ROWS,
        "the third sex is left out"
    );
    let groups = record_groups(made.data(), &KNOWN);
    let (confidence, smallest) = adversary(made.data(), &KNOWN, 3, None);
    made.page.take("at least k = 4 records");
    made.take_of_generalized(&KNOWN, &groups, "record");
    made.take_above(&groups);
    made.take_lengths(
        &KNOWN,
        Lengths {
            assumed: 3,
            longest: 3,
            k: 4,
            values: None,
            protects: "the number that fits, not the confidence",
        },
    );
    made.take_of_verification(&Verified {
        groups: groups.sizes.len(),
        smallest,
        class: smallest,
        confidence,
        bound: None,
        subsets: Some(1),
    });
    made.take_unchanged(&["note", "illness"]);
    made.take_labels(&KNOWN);
    for _ in 0..2 {
        let sentence = format!(
            "Who knows all quasi-identifiers of a patient finds at least {smallest} records that fit. Up \
             to {} of the records that fit have the same value of illness.",
            at_most(confidence)
        );
        made.page.take(&sentence);
    }
    made.take_guidelines(&Guideline {
        known: &KNOWN,
        who: "Whoever knows all quasi-identifiers of a patient finds",
        unit: "record",
        smallest,
        smallest_known: smallest,
        confidence,
    });
    made.end();
}

/// Stays of persons of whom each has two: persons are counted. Which rows are of one person is not in the
/// release; the test knows it, because the rows of a person are equal but for their illness.
#[tokio::test(flavor = "multi_thread")]
async fn with_persons() {
    let job = json!({"privacy": {"model": "k_anonymity", "k": 3}});
    let Case { columns, job, .. } = stays("with persons", job);
    let mut columns = columns;
    columns[0] = json!({"name": "name", "role": "subject"});
    let row = |row: usize| {
        let person = row / 2;
        let work = ["Farmer", "Miner", "Clerk", "Teacher"][person % 4];
        let illness = ["flu", "cold", "cough"][row % 3];
        format!(
            "P{person},{},{work},{},a,{illness}\n",
            person * 17 % 91,
            ["f", "m"][person / 4 % 2]
        )
    };
    let rows: String = (0..RAW_ROWS).map(row).collect();
    let rows = format!("name,age,work,sex,note,illness\n{rows}");
    let case = Case {
        name: "with persons",
        columns,
        rows,
        job,
    };
    let mut made = case.made().await;
    // Two rows are of one person, but for the last.
    let by_label = made.data().groups(&KNOWN);
    let sizes = by_label.iter().map(|group| group.len().div_ceil(2));
    let groups = Groups {
        sizes: sizes.collect(),
    };
    let persons = RAW_ROWS.div_ceil(2);
    assert_eq!(groups.all(), persons, "the last person has one row");
    let (confidence, _) = adversary(made.data(), &KNOWN, 3, None);
    made.page.take(&format!("of {persons} patients"));
    made.page.take("at least k = 3 patients");
    made.take_of_generalized(&KNOWN, &groups, "patient");
    let smallest = groups.smallest();
    made.take_of_verification(&Verified {
        groups: groups.sizes.len(),
        smallest,
        class: smallest,
        confidence,
        bound: None,
        subsets: Some(1),
    });
    // What columns say of persons is for the holder.
    made.take_labels(&KNOWN);
    for _ in 0..2 {
        let sentence = format!(
            "Who knows all quasi-identifiers of a patient finds at least {smallest} patients that fit. Up \
             to {} of the records that fit have the same value of illness.",
            at_most(confidence)
        );
        made.page.take(&sentence);
    }
    made.take_guidelines(&Guideline {
        known: &KNOWN,
        who: "Whoever knows all quasi-identifiers of a patient finds",
        unit: "patient",
        smallest: groups.smallest(),
        smallest_known: groups.smallest(),
        confidence,
    });
    made.end();
}

/// Stays with the drugs of each patient, of which the rarer ones cannot stay.
fn with_drugs(name: &'static str, job: Value) -> Case {
    let columns = json!([
        {"name": "sex", "role": "quasi_identifier"},
        {"name": "drugs", "role": "quasi_identifier", "kind": "set"},
        {"name": "illness", "role": "sensitive"},
    ]);
    let row = |row: usize| {
        let drugs = ["a|b", "a", "a|b|c", "b", "a|b|d", "a|c"][row * 5 / 3 % 6];
        format!(
            "{},{drugs},{}\n",
            ["f", "m"][row % 2],
            ["flu", "cold", "cough"][row % 3]
        )
    };
    let rows: String = (0..RAW_ROWS).map(row).collect();
    let rows = format!("sex,drugs,illness\n{rows}");
    Case {
        name,
        columns,
        rows,
        job,
    }
}

const WITH_DRUGS: [&str; 2] = ["sex", "drugs"];

#[tokio::test(flavor = "multi_thread")]
async fn sets() {
    let mut made = with_drugs("sets", json!({"privacy": {"model": "k_anonymity", "k": 5}}))
        .made()
        .await;
    let groups = record_groups(made.data(), &WITH_DRUGS);
    let (confidence, smallest) = adversary(made.data(), &WITH_DRUGS, 2, None);
    made.page.take("at least k = 5 records");
    made.take_of_generalized(&WITH_DRUGS, &groups, "record");
    made.take_above(&groups);
    made.take_of_verification(&Verified {
        groups: groups.sizes.len(),
        smallest,
        class: smallest,
        confidence,
        bound: None,
        subsets: Some(1),
    });
    made.take_labels(&["sex"]);
    made.take_unchanged(&["illness"]);
    for _ in 0..2 {
        let sentence = format!(
            "Who knows all quasi-identifiers of a patient finds at least {smallest} records that fit. Up \
             to {} of the records that fit have the same value of illness.",
            at_most(confidence)
        );
        made.page.take(&sentence);
    }
    made.take_guidelines(&Guideline {
        known: &WITH_DRUGS,
        who: "Whoever knows all quasi-identifiers of a patient finds",
        unit: "record",
        smallest,
        smallest_known: smallest,
        confidence,
    });
    made.end();
}

/// The facts of a row: values of columns that are not sets, and items.
fn facts(table: &Table, row: &[String]) -> Vec<String> {
    let items = table
        .cell(row, "drugs")
        .split('|')
        .filter(|item| !item.is_empty());
    let items = items.map(|item| format!("drugs {item}"));
    std::iter::once(format!("sex {}", table.cell(row, "sex")))
        .chain(items)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn lkc_with_sets() {
    let privacy = json!({"model": "lkc", "l": 2, "k": 5, "c": 0.7});
    let mut made = with_drugs("lkc with sets", json!({"privacy": privacy}))
        .made()
        .await;
    let groups = record_groups(made.data(), &WITH_DRUGS);
    let table = made.data();
    // The rows that have up to two facts, for every such combination that occurs.
    let facts: Vec<Vec<String>> = table.rows.iter().map(|row| facts(table, row)).collect();
    let mut known: Vec<Vec<usize>> = Vec::new();
    for one in facts.iter().flatten() {
        for other in facts.iter().flatten() {
            let rows = (0..facts.len())
                .filter(|&row| facts[row].contains(one) && facts[row].contains(other));
            known.push(rows.collect());
        }
    }
    known.retain(|rows| !rows.is_empty());
    let distinct: BTreeSet<&String> = facts.iter().flatten().collect();
    // Of one or two facts.
    let combinations = distinct.len() * (distinct.len() + 1) / 2;
    let smallest = known.iter().map(Vec::len).min().unwrap();
    let shares = known
        .iter()
        .map(|rows| table.greatest_share(rows, "illness", None));
    let confidence = shares.fold(0.0, f64::max);
    made.page.take("L = 2 attributes");
    made.page.take("K = 5 records");
    made.page.take("C = 70 %");
    made.page
        .take("Somebody who knows more than 2 attributes of a patient: see what risk remains.");
    made.take_of_generalized(&WITH_DRUGS, &groups, "record");
    made.take_above(&groups);
    made.page.take(&format!(
        "With up to 2 known attributes it is at most {}.",
        at_most(1.0 / smallest as f64)
    ));
    made.take_of_verification(&Verified {
        groups: groups.sizes.len(),
        smallest,
        class: groups.smallest(),
        confidence,
        bound: Some((0.7, "sensitive value")),
        subsets: Some(combinations),
    });
    made.take_labels(&["sex"]);
    made.take_unchanged(&["illness"]);
    for _ in 0..2 {
        made.page.take(&format!(
            "Who knows up to 2 facts about a patient finds at least {smallest} records that fit, and no value of \
             illness is shared by more than {} of them.",
            at_most(confidence)
        ));
    }
    made.take_guidelines(&Guideline {
        known: &WITH_DRUGS,
        who: "Whoever knows 2 attributes and items of a patient finds",
        unit: "record",
        smallest: groups.smallest(),
        smallest_known: smallest,
        confidence,
    });
    made.end();
}

/// Exact quasi-identifiers beside the illnesses of groups.
#[tokio::test(flavor = "multi_thread")]
async fn anatomized() {
    let privacy = json!({"model": "l_diversity", "k": 6, "l": 2});
    let mut made = stays("anatomized", json!({"privacy": privacy}))
        .made()
        .await;
    let qit = &made.tables["qit"];
    assert_eq!(qit.rows.len(), RAW_ROWS);
    let groups = record_groups(qit, &KNOWN);
    let sizes = record_groups(qit, &["group_id"]);
    // The counts of the illnesses of each group.
    let st = &made.tables["st_illness"];
    let counts = st
        .column("count")
        .into_iter()
        .map(|count| count.parse::<f64>().unwrap());
    let of: Vec<(&str, f64)> = st.column("group_id").into_iter().zip(counts).collect();
    let all = |group: &str| {
        of.iter()
            .filter(|(it, _)| *it == group)
            .map(|(_, count)| count)
            .sum::<f64>()
    };
    let shares = of.iter().map(|(group, count)| count / all(group));
    let confidence = shares.fold(0.0, f64::max);
    let smallest = sizes.smallest();
    made.page.take("at least k = 6 records");
    made.page.take("(l = 2)");
    made.take_of_anatomy(&groups, &sizes);
    made.page.take(&format!(
        "At most {} of a group have the same value of illness.",
        at_most(confidence)
    ));
    made.page.take(&format!(
        "At most {} of a group have the same value of illness.",
        at_most(confidence)
    ));
    made.take_of_verification(&Verified {
        groups: sizes.sizes.len(),
        smallest,
        class: smallest,
        confidence,
        bound: None,
        subsets: None,
    });
    // Two illnesses have to be struck out of each group, at least.
    made.page.take("a diversity of 2, in");
    close(&made.page.take_field("diversity"), 2.0);
    made.take_unchanged(&["note"]);
    for _ in 0..2 {
        made.page.take(&format!(
            "finds a group of at least {smallest} records with it, and cannot see which sensitive value of the \
             group is the patient's."
        ));
    }
    made.take_guidelines(&Guideline {
        known: &KNOWN,
        who: "Each is in a group of",
        unit: "record",
        smallest: groups.smallest(),
        smallest_known: smallest,
        confidence,
    });
    made.end();
}

/// A share beside a bound: a percentage of up to four digits after the point.
fn exact(share: f64) -> String {
    let text = format!("{:.4}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A share as a bound: a percentage of two digits that is not below it.
fn at_most(share: f64) -> String {
    let unit = if share >= 0.0995 { 100.0 } else { 1_000.0 };
    percent((share * unit - 1e-9).ceil() / unit)
}
