//! Group-based methods in memory: a cancer registry like that of the paper on several sensitive
//! attributes (Gal, Chen, Gangopadhyay 2008: 72,194 rows, four quasi-identifiers, seven sensitive
//! columns; K = 50, L = 10), the baseline of the paper, and Adult with local recoding.
//!
//! `cargo bench --bench groups -- 1000000` adds a registry with this number of rows.

use pais_test_support::{adult, summary_file};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use pais_anonymize::{AnonymizationRun, Unobserved, VerifiedRelease};
use pais_core::definition::{DatasetDefinition, JobDefinition};
use pais_core::schema::Schema;
use pais_core::table::Table;
use pais_core::taxonomy::TreeLimits;
use pais_io::chunk::Assembler;
use pais_io::read::{ReadLimits, csv};
use pais_sample::Sample;
use serde_json::{Value, json};

/// The seed of the registry.
const SEED: u64 = 1;

/// Sensitive columns of the registry, in order.
const SENSITIVE: usize = 7;

const K: usize = 50;
const L: u32 = 10;

fn main() -> anyhow::Result<()> {
    let mut runs = Vec::new();
    let paper = Sample::Registry.default_rows();
    let registry = registry(paper)?;
    println!("registry, {paper} rows, K = {K}, L = {L}");
    for columns in [1, 2, 3, 5, SENSITIVE] {
        let report = run(&with_sensitive(columns), &registry, &diverse(json!({})))?;
        runs.push(print_result(&format!("{columns} sensitive"), &report));
    }
    for limit in [0, 2, 4, 6, 8, 10] {
        let limits = json!({ "recurrence": limit });
        let report = run(&with_sensitive(3), &registry, &diverse(limits))?;
        runs.push(print_result(
            &format!("3 sensitive, recurrence {limit}"),
            &report,
        ));
    }
    let mut generalized = diverse(json!({}));
    generalized["output"] = "generalized".into();
    runs.push(print_result(
        "3 sensitive, generalized",
        &run(&with_sensitive(3), &registry, &generalized)?,
    ));
    for columns in [1, 3] {
        let size = exponential(&registry, columns);
        println!(
            "{:<28} {size:>10.1} rows around a record",
            format!("exponential-l, {columns}")
        );
    }

    println!("Adult, 45,222 rows, ARX's nine quasi-identifiers, k-anonymity, generalized");
    let (columns, rows) = adult_nine_columns()?;
    for k in [2, 5, 10, 50] {
        let job = json!({"privacy": {"model": "k_anonymity", "k": k}, "recoding": "local"});
        runs.push(print_result(
            &format!("k = {k}"),
            &run(&columns, &rows, &job)?,
        ));
    }

    for rows in std::env::args()
        .skip(1)
        .filter_map(|argument| argument.parse().ok())
    {
        println!("registry, {rows} rows, {SENSITIVE} sensitive");
        let registry = self::registry(rows)?;
        let report = run(&with_sensitive(SENSITIVE), &registry, &diverse(json!({})))?;
        runs.push(print_result("anatomized", &report));
        let mut job = json!({"privacy": {"model": "k_anonymity", "k": 5}, "recoding": "local"});
        runs.push(print_result(
            "5-anonymous, generalized",
            &run(&with_sensitive(SENSITIVE), &registry, &job)?,
        ));
        job["output"] = "anatomized".into();
        runs.push(print_result(
            "5-anonymous, anatomized",
            &run(&with_sensitive(SENSITIVE), &registry, &job)?,
        ));
    }
    summary_file::put(&summary_file::folder()?, "groups", runs.into())
}

fn registry(rows: u64) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    Sample::Registry.write_csv(rows, SEED, &mut text)?;
    Ok(text)
}

/// The schema of the registry with only the first few sensitive columns.
fn with_sensitive(columns: usize) -> Value {
    let mut schema = Sample::Registry.schema();
    let mut seen = 0;
    for column in schema["columns"].as_array_mut().into_iter().flatten() {
        if column["role"] == "sensitive" {
            seen += 1;
            if seen > columns {
                column["role"] = "identifier".into();
            }
        }
    }
    schema
}

fn diverse(limits: Value) -> Value {
    json!({"privacy": {"model": "l_diversity", "k": K, "l": L, "column_limits": limits}})
}

/// Adult with age, eight categorical columns and ARX's hierarchies.
fn adult_nine_columns() -> anyhow::Result<(Value, Vec<u8>)> {
    let mut columns = Vec::new();
    for name in adult::COLUMNS {
        let mut column = json!({"name": name, "role": "quasi_identifier"});
        match name {
            "age" => column["kind"] = "numeric".into(),
            "income" => {}
            "sex" | "race" | "marital-status" | "education" | "native-country" | "workclass"
            | "occupation" => column["taxonomy"] = arx(name)?,
            _ => column["role"] = "identifier".into(),
        }
        columns.push(column);
    }
    Ok((json!({"name": "adult", "columns": columns}), adult::csv()?))
}

/// ARX's hierarchy of a column, as a tree.
fn arx(column: &str) -> anyhow::Result<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/adult/taxonomies/arx");
    let file = File::open(folder.join(format!("{column}.json")))?;
    let tree: Value = serde_json::from_reader(file)?;
    Ok(tree["root"].clone())
}

/// Seconds of the search and of search and release together, and the release.
struct GroupsRun {
    search: f64,
    release: VerifiedRelease,
    with_release: f64,
}

fn run(columns: &Value, rows: &[u8], job: &Value) -> anyhow::Result<GroupsRun> {
    const LIMITS: TreeLimits = TreeLimits {
        leaves: 1_000_000,
        depth: 20,
    };
    let definition: DatasetDefinition = serde_json::from_value(columns.clone())?;
    let schema = Arc::new(Schema::resolve(&definition, LIMITS, |_| None)?);
    let job: JobDefinition = serde_json::from_value(job.clone())?;
    let job = job.parse()?;
    let table = read(&schema, rows)?;
    let prepared = AnonymizationRun::new(schema, job, table, &Unobserved::default())?;
    let began = Instant::now();
    let steps = prepared.search(&Unobserved::default())?;
    let search = began.elapsed().as_secs_f64();
    let release = prepared.release(&steps, None, &Unobserved::default())?;
    Ok(GroupsRun {
        search,
        with_release: began.elapsed().as_secs_f64(),
        release,
    })
}

fn read(schema: &Schema, rows: &[u8]) -> anyhow::Result<Table> {
    let mut assembler = Assembler::default();
    csv::read(schema, rows, ReadLimits::default(), |chunk| {
        assembler.push(chunk)
    })
    .map_err(|error| anyhow::anyhow!("{error:?}"))?;
    Ok(assembler.finish())
}

/// Prints a line of results; returns them as JSON.
fn print_result(name: &str, measured: &GroupsRun) -> Value {
    let utility = &json!(measured.release.report())["utility"];
    let number = |field: &str| utility[field].as_f64().unwrap_or(f64::NAN);
    let error = |field: &str| match utility["query_error"][field].as_f64() {
        Some(error) => format!("{:.1} %", error * 100.0),
        None => "-".to_owned(),
    };
    println!(
        "{name:<28} {:>7.3} s search {:>7.3} s with release  {:>7.0} groups {:>9.1} rows around a \
         record  NCP {:.5}  queries {:>7} (<1 % {}, from 1 % {})  peak {} MB",
        measured.search,
        measured.with_release,
        number("groups"),
        number("average_group_per_record"),
        number("ncp"),
        error("all"),
        error("below_one_percent"),
        error("from_one_percent"),
        peak() / 1024,
    );
    json!({
        "run": name,
        "seconds": { "search": measured.search, "with_release": measured.with_release },
        "peak_bytes": peak() * 1024,
        "utility": {
            "groups": utility["groups"],
            "average_group_per_record": utility["average_group_per_record"],
            "ncp": utility["ncp"],
            "query_error": utility["query_error"],
        },
    })
}

/// `VmHWM` of this process in KiB; 0 if the system does not have it.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}

/// *Exponential-L* (Machanavajjhala et al., ICDE 2006, as measured by Gal et al. 2008): the k-d
/// split in which each sensitive column has at least *L* values among the records that agree on all
/// other sensitive columns. Returns the average size of the group of a record.
fn exponential(registry: &[u8], columns: usize) -> f64 {
    let text = String::from_utf8_lossy(registry);
    let mut known: Vec<HashMap<&str, u32>> = vec![HashMap::new(); columns];
    let mut rows: Vec<([f64; 4], Vec<u32>)> = Vec::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let race = cells[3].bytes().map(f64::from).sum::<f64>();
        let number = |cell: &str| cell.parse().unwrap_or(0.0);
        let gender = f64::from(u8::from(cells[2] == "F"));
        let values = known.iter_mut().zip(&cells[5..]).map(|(known, cell)| {
            let fresh = known.len() as u32;
            *known.entry(cell).or_insert(fresh)
        });
        let values = values.collect();
        rows.push(([number(cells[1]), gender, race, number(cells[4])], values));
    }
    let total = rows.len() as f64;
    let deviations = [0, 1, 2, 3].map(|dimension| {
        let values = || rows.iter().map(move |(place, _)| place[dimension]);
        let mean = values().sum::<f64>() / total;
        let squares = values().map(|value| (value - mean).powi(2)).sum::<f64>();
        (squares / total).sqrt().max(f64::MIN_POSITIVE)
    });
    let mut squares = 0.0;
    let mut open = vec![rows];
    while let Some(group) = open.pop() {
        match halves(&group, deviations) {
            Some((below, above)) => open.extend([below, above]),
            None => squares += (group.len() as f64).powi(2),
        }
    }
    squares / total
}

type Group = Vec<([f64; 4], Vec<u32>)>;

fn halves(group: &Group, deviations: [f64; 4]) -> Option<(Group, Group)> {
    let mut dimensions: Vec<(f64, usize)> = (0..4)
        .map(|dimension| {
            let values = group.iter().map(|(place, _)| place[dimension]);
            let (least, most) = values.fold((f64::MAX, f64::MIN), |(least, most), value| {
                (least.min(value), most.max(value))
            });
            ((most - least) / deviations[dimension], dimension)
        })
        .collect();
    dimensions.sort_by(|one, other| other.0.total_cmp(&one.0));
    for (_, dimension) in dimensions {
        let mut values: Vec<f64> = group.iter().map(|(place, _)| place[dimension]).collect();
        values.sort_by(f64::total_cmp);
        let median = *values.get((values.len().max(1) - 1) / 2)?;
        let (below, above): (Group, Group) = group
            .iter()
            .cloned()
            .partition(|(place, _)| place[dimension] <= median);
        if [&below, &above]
            .iter()
            .all(|half| half.len() >= K && is_diverse(half))
        {
            return Some((below, above));
        }
    }
    None
}

fn is_diverse(group: &Group) -> bool {
    let columns = group.first().map_or(0, |(_, values)| values.len());
    (0..columns).all(|column| {
        let mut values: HashMap<Vec<u32>, HashSet<u32>> = HashMap::new();
        for (_, record) in group {
            let key = [&record[..column], &record[column + 1..]].concat();
            values.entry(key).or_default().insert(record[column]);
        }
        values.values().all(|values| values.len() >= L as usize)
    })
}
