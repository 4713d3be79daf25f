//! The definitions that a run on files needs: a schema and a job.

use std::collections::HashMap;
use std::sync::Arc;

use clap::Args;
use pais::problem::{Code, Problem};
use pais_core::definition::{
    DatasetDefinition, JobDefinition, TaxonomyId, TaxonomyReference, first_list,
};
use pais_core::schema::{Schema, SchemaErrorKind};
use pais_core::taxonomy::{Tree, TreeLimits};
use pais_io::read::TextParameters;

use super::files::Files;
use super::output::{Failure, in_file};
use super::sources::{DocumentSource, parse_dataset, parse_job, parse_taxonomies};

/// Limits of taxonomies on the command line. They are high, because only the user's own memory is
/// used.
pub(crate) const LIMITS: TreeLimits = TreeLimits {
    leaves: 10_000_000,
    depth: 60,
};

/// Where the schema of a command comes from that can do without.
#[derive(Debug, Args)]
pub(crate) struct OptionalSchemaArgs {
    /// The dataset: the body of `POST /v1/datasets`, or the answer of `GET /v1/datasets/{id}`; a
    /// file, or the address of the dataset in a service, with a token in PAIS_TOKEN.
    #[arg(long, value_name = "S.json")]
    schema: Option<DocumentSource>,
    /// The taxonomies that the schema names by their ids: a file with answers of
    /// `GET /v1/taxonomies/{id}`, or the address of a service. May be repeated. Without it they are
    /// fetched from the service that the schema is from.
    #[arg(long, value_name = "T.json", requires = "schema")]
    taxonomies: Vec<DocumentSource>,
}

impl OptionalSchemaArgs {
    /// The files that are read.
    pub(super) fn files(&self) -> Files {
        let files = Files::default().documents("--schema", &self.schema);
        files.documents("--taxonomies", &self.taxonomies)
    }

    /// Where the schema comes from, if it is given.
    pub(crate) fn given(&self) -> Option<SchemaArgs> {
        Some(SchemaArgs {
            schema: self.schema.clone()?,
            taxonomies: self.taxonomies.clone(),
        })
    }
}

/// Where the schema of a command comes from.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The dataset: the body of `POST /v1/datasets`, or the answer of `GET /v1/datasets/{id}`; a
    /// file, or the address of the dataset in a service, with a token in PAIS_TOKEN.
    #[arg(long, value_name = "S.json")]
    schema: DocumentSource,
    /// The taxonomies that the schema names by their ids: a file with answers of
    /// `GET /v1/taxonomies/{id}`, or the address of a service. May be repeated. Without it they are
    /// fetched from the service that the schema is from.
    #[arg(long, value_name = "T.json")]
    taxonomies: Vec<DocumentSource>,
}

/// A dataset as its definition declares it.
pub(crate) struct DeclaredDataset {
    /// Its columns.
    pub(crate) schema: Schema,
    /// How its raw tables in text are written where flags do not say.
    pub(crate) text: TextParameters,
}

/// How a definition declares that its raw tables in text are written.
///
/// # Errors
/// For parameters that contradict each other.
pub(crate) fn declared_text(
    definition: &DatasetDefinition,
    source: &DocumentSource,
) -> Result<TextParameters, Failure> {
    let text = definition.format.as_ref().map(TextParameters::try_from);
    let text = text.transpose();
    let text = text.map_err(|error| in_file(source, Problem::of_declared_format(&error)))?;
    Ok(text.unwrap_or_default())
}

impl SchemaArgs {
    /// The files that are read.
    pub(super) fn files(&self) -> Files {
        let files = Files::default().documents("--schema", [&self.schema]);
        files.documents("--taxonomies", &self.taxonomies)
    }

    /// Reads and checks the definition.
    ///
    /// # Errors
    /// If a document cannot be read or is not valid.
    pub(crate) fn load(&self) -> Result<DeclaredDataset, Failure> {
        let source = &self.schema;
        let definition = parse_dataset(&source.read()?);
        let definition = definition.map_err(|error| in_file(source, error))?;
        let text = declared_text(&definition, source)?;
        let taxonomies = self.taxonomies(&definition)?;
        let resolved = Schema::resolve(&definition, LIMITS, |id| taxonomies.get(&id).cloned());
        let schema = resolved.map_err(|error| {
            let problem = if error.kind == SchemaErrorKind::UnknownTaxonomy {
                let detail = "a taxonomy is given by an id that no document of --taxonomies has; \
                              name its file, or the address of its service";
                Problem::with(Code::InvalidSchema, detail, error.faults)
            } else {
                error.into()
            };
            in_file(source, problem)
        })?;
        Ok(DeclaredDataset { schema, text })
    }

    /// The taxonomies that a definition names by their ids, as far as they are given.
    fn taxonomies(
        &self,
        definition: &DatasetDefinition,
    ) -> Result<HashMap<TaxonomyId, Arc<Tree>>, Failure> {
        let mut trees = HashMap::new();
        for source in &self.taxonomies {
            if let DocumentSource::File(_) = source {
                read_taxonomies(source, &mut trees)?;
            }
        }
        let mut sources = self.taxonomies.iter().chain([&self.schema]);
        let service = sources.find_map(|source| match source {
            DocumentSource::Service(address) => Some(address),
            DocumentSource::File(_) => None,
        });
        let Some(service) = service else {
            return Ok(trees);
        };
        for column in &definition.columns {
            if let Some(TaxonomyReference::Id(id)) = column.taxonomy
                && !trees.contains_key(&id)
            {
                let source = DocumentSource::Service(service.taxonomy(id.0));
                read_taxonomies(&source, &mut trees)?;
            }
        }
        Ok(trees)
    }
}

/// Reads and checks the taxonomies of a document.
fn read_taxonomies(
    source: &DocumentSource,
    trees: &mut HashMap<TaxonomyId, Arc<Tree>>,
) -> Result<(), Failure> {
    let found = parse_taxonomies(&source.read()?);
    for (id, root) in found.map_err(|error| in_file(source, error))? {
        let tree = Tree::new(&root, LIMITS).map_err(|error| {
            let problem = Problem::new(Code::InvalidTaxonomy, error.to_string());
            in_file(source, problem)
        })?;
        trees.insert(id, Arc::new(tree));
    }
    Ok(())
}

/// The schema under the roles that a job, which was read from `source`, gives the columns.
///
/// # Errors
/// If the roles do not fit the schema.
pub(crate) fn schema_of_job(
    schema: Schema,
    job: &JobDefinition,
    source: &DocumentSource,
) -> Result<Schema, Failure> {
    let schema = schema
        .with_roles(&job.roles.clone().unwrap_or_default())
        .map_err(|error| in_file(source, error))?;
    Ok(schema.into_owned())
}

/// Reads the job of a finished release, whose parameters are single values. The submissions that it
/// names are taken to be those of the raw table.
///
/// # Errors
/// If the document cannot be read or is not a valid job, and if the job gives a list of values for a
/// parameter.
pub(crate) fn job_of_release(source: &DocumentSource) -> Result<JobDefinition, Failure> {
    let (job, _) = read_job(source)?;
    match first_list(&job) {
        None => Ok(job),
        Some(pointer) => {
            let detail = "a release was made under one value of each parameter; give one here";
            let problem = Problem::at(Code::InvalidJob, pointer, detail);
            Err(in_file(source, problem).into())
        }
    }
}

/// Reads a job to run: the body of `POST /v1/jobs`, without the fields that refer to resources of
/// the service (`dataset_id`, `submissions`); or the answer of `GET /v1/jobs/{id}`.
///
/// # Errors
/// If the document cannot be read or is not a valid job.
pub(crate) fn job_to_run(source: &DocumentSource) -> Result<JobDefinition, Failure> {
    let (job, is_of_service) = read_job(source)?;
    let of_definition = job.dataset_id.is_some() && !is_of_service;
    for (given, field) in [
        (of_definition, "dataset_id"),
        (job.submissions.is_some(), "submissions"),
    ] {
        if given {
            let detail = format!(
                "on the command line a job has no `{field}`; remove it, the table is INPUT"
            );
            let problem = Problem::at(Code::InvalidShape, format!("/{field}"), detail);
            return Err(in_file(source, problem).into());
        }
    }
    if !is_of_service
        && job
            .release
            .as_ref()
            .is_some_and(|it| it.location().is_some())
    {
        let detail = "on the command line the release is written to OUT (-o); remove the location";
        let problem = Problem::at(Code::InvalidShape, "/release/location", detail);
        return Err(in_file(source, problem).into());
    }
    Ok(job)
}

fn read_job(source: &DocumentSource) -> Result<(JobDefinition, bool), Failure> {
    let job = parse_job(&source.read()?);
    job.map_err(|error| in_file(source, error).into())
}
