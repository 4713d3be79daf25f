//! Enlarged Adult in Parquet files: rounds, seconds and peak memory of a run by the engine.
//!
//! `PAIS_SCALE_ROWS` (1,000,000), `PAIS_SCALE_K` (20), `PAIS_SCALE_L` (4), `PAIS_SCALE_MIB` (256).
//! `PAIS_SCALE_COMPARE=1` compares the steps with those in memory. `PAIS_SCALE_EXECUTORS` has addresses of
//! executors with commas between them, `PAIS_SCALE_SPOOL` their directory, and `PAIS_SCALE_KEY` the file of
//! their key, raw.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use std::sync::Arc;

use pais_anonymize::{AnonymizationRun, Unobserved};
use pais_core::definition::JobDefinition;
use pais_core::schema::Schema;
use pais_core::table::Table;
use pais_io::chunk::Assembler;
use pais_io::read::{ReadLimits, csv, parquet};
use pais_scale::{ExecutorKey, Executors, ScaleTask, anonymize};
use pais_test_support::{adult, enlarged, raw_rows};

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let setting = |name: &str, default: u64| -> Result<u64, Failed> {
        match std::env::var(name) {
            Ok(text) => Ok(text.parse()?),
            Err(_) => Ok(default),
        }
    };
    let rows = setting("PAIS_SCALE_ROWS", 1_000_000)?;
    let l = setting("PAIS_SCALE_L", 4)?;
    let mib = setting("PAIS_SCALE_MIB", 256)?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench");
    std::fs::create_dir_all(&folder)?;
    let schema = Arc::new(Schema::inline(&serde_json::from_value(adult::dataset(
        "adult",
    )?)?)?);
    let input = folder.join(format!("adult-{rows}.parquet.d"));
    if !input.exists() {
        to_parquet(
            &schema,
            &enlarged::file(&folder, &adult::csv()?, rows as usize)?,
            &input,
        )?;
    }
    let mut job = adult::job(l as u32);
    job["privacy"]["k"] = setting("PAIS_SCALE_K", 20)?.into();
    let job: JobDefinition = serde_json::from_value(job)?;
    let job = job.parse()?;
    let output = tempfile::tempdir_in(&folder)?;
    let task = ScaleTask {
        input: input.clone(),
        output: output.path().join("release"),
        schema: Arc::clone(&schema),
        job: job.clone(),
        memory: mib << 20,
        executors: executors()?,
    };
    // The peak from here on.
    std::fs::write("/proc/self/clear_refs", "5")?;
    let start = Instant::now();
    let release = anonymize(&task, &Unobserved::default())?;
    println!(
        "{rows} rows, L = {l}, {mib} MiB: {:.1} s, {} statements, submitted again {}, {} steps, {} groups, \
         peak {}",
        start.elapsed().as_secs_f64(),
        release.statements,
        release.resubmissions,
        release.steps.len() - 1,
        release.steps.last().map_or(0, |step| step.groups),
        peak()?,
    );
    if std::env::var_os("PAIS_SCALE_COMPARE").is_some() {
        std::fs::write("/proc/self/clear_refs", "5")?;
        let start = Instant::now();
        let mut assembler = Assembler::default();
        let mut files: Vec<_> = std::fs::read_dir(&input)?.collect::<Result<_, _>>()?;
        files.sort_by_key(|file| file.file_name());
        for file in files {
            let chunk = |chunk: Table| assembler.push(chunk);
            let read = parquet::read(
                &schema,
                File::open(file.path())?,
                ReadLimits::default(),
                chunk,
            );
            read.map_err(|_| "the table cannot be read")?;
        }
        let observer = Unobserved::default();
        let run = AnonymizationRun::new(schema, job, assembler.finish(), &observer)?;
        let found = run.search(&observer)?;
        let steps = found.steps().iter().map(|step| &step.item);
        let is_same = steps.eq(&release.steps);
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "in memory, search alone: {seconds:.1} s, peak {}; same steps: {is_same}",
            peak()?
        );
    }
    Ok(())
}

/// The executors that are named.
fn executors() -> Result<Option<Arc<Executors>>, Failed> {
    let Ok(urls) = std::env::var("PAIS_SCALE_EXECUTORS") else {
        return Ok(None);
    };
    let urls = urls.split(',').map(str::parse);
    let urls = urls.collect::<Result<_, _>>()?;
    let key = <[u8; 32]>::try_from(std::fs::read(std::env::var("PAIS_SCALE_KEY")?)?);
    let key = ExecutorKey::new(&key.map_err(|_| "the key has not 32 bytes")?.into());
    let spool = std::env::var("PAIS_SCALE_SPOOL")?;
    let executors = Executors::new(urls, Path::new(&spool), key, None)?;
    Ok(Some(Arc::new(executors)))
}

/// The greatest resident memory so far.
fn peak() -> Result<String, Failed> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    Ok(line.unwrap_or("unknown").trim().to_owned())
}

/// A file for each million rows or so.
fn to_parquet(schema: &Schema, text: &Path, folder: &Path) -> Result<(), Failed> {
    let unfinished = folder.with_extension("unfinished");
    std::fs::create_dir_all(&unfinished)?;
    let (mut assembler, mut rows, mut files) = (Assembler::default(), 0, 0);
    let mut write = |table: Table| -> Result<(), Failed> {
        let table = raw_rows::as_released(schema, table);
        let file = File::create(unfinished.join(format!("part-{files:03}.parquet")))?;
        files += 1;
        Ok(pais_io::write::parquet(&table, file)?)
    };
    let chunk = |chunk: Table| -> Result<(), Failed> {
        rows += chunk.rows;
        assembler.push(chunk)?;
        if rows >= 1 << 20 {
            rows = 0;
            write(std::mem::take(&mut assembler).finish())?;
        }
        Ok(())
    };
    let read = csv::read(schema, File::open(text)?, ReadLimits::default(), chunk);
    read.map_err(|_| "the table cannot be read")?;
    if rows > 0 {
        write(assembler.finish())?;
    }
    std::fs::rename(unfinished, folder)?;
    Ok(())
}
