//! The executors that count the rows of tables that do not fit into memory: the sections `executors` of the
//! settings.
//!
//! Without the feature `scale` there are none, and settings that name one are refused.

use std::collections::BTreeMap;
use std::path::PathBuf;
#[cfg(feature = "scale")]
use std::sync::Arc;

use pais_anonymize::CountedRun;
use pais_core::definition::Job;
use pais_core::rejection::Fault;
use pais_core::schema::Schema;
use serde::Deserialize;

use crate::memory::MemorySize;
use crate::problem::{Code, Problem};

/// Minimum memory of a job, in bytes.
#[cfg(feature = "scale")]
const LEAST_MEMORY: u64 = 64 << 20;

/// Pointer to the executor of a job.
pub(crate) const POINTER: &str = "/executor";

/// A section `executors.<name>`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutorOptions {
    /// `in-process`, or the addresses of executors, separated by commas.
    pub url: String,
    /// Memory that a job takes from that of the process.
    pub memory: MemorySize,
    /// The directory that the service shares with executors at addresses.
    pub spool: Option<PathBuf>,
    /// A file with the key that it shares with them.
    pub key_file: Option<PathBuf>,
    /// The certificate that they are shown, PEM.
    pub tls_certificate: Option<PathBuf>,
    /// The private key of that certificate, PEM.
    pub tls_key: Option<PathBuf>,
    /// The authority of their certificates, PEM.
    pub tls_authority: Option<PathBuf>,
}

/// The executor that counts the rows of a job.
#[derive(Clone, Debug)]
pub(crate) struct NamedExecutor {
    /// Bytes of memory that a job takes from that of the process.
    pub(crate) memory: u64,
    /// The processes that count; `None` for the engine in this process.
    #[cfg(feature = "scale")]
    pub(crate) processes: Option<Arc<pais_scale::Executors>>,
}

/// The executors of a service, by the names that jobs use.
#[derive(Clone, Debug, Default)]
pub struct ExecutorSet {
    by_name: BTreeMap<String, NamedExecutor>,
}

impl ExecutorSet {
    /// The executor of this name.
    ///
    /// # Errors
    /// `invalid_value` if the service has no executor of this name.
    pub(crate) fn find(&self, name: &str) -> Result<&NamedExecutor, Problem> {
        self.by_name.get(name).ok_or_else(|| {
            let detail = if cfg!(feature = "scale") {
                "the service has no executor of this name; leave `executor` out, or have the operator \
                 configure one (`executors`)"
            } else {
                "this service was built without `scale`, so it has no executor but `local`; leave \
                 `executor` out"
            };
            Problem::at(Code::InvalidValue, POINTER, detail)
        })
    }
}

/// Refuses a job that an executor does not take, before any row is read.
///
/// # Errors
/// `invalid_job` with pointers to the executor and to what it does not take.
pub(crate) fn check_job(schema: &Schema, job: &Job) -> Result<(), Problem> {
    CountedRun::check(schema, job).map_err(|error| {
        let mut problem = Problem::from(error);
        let is_named = |fault: &Fault| fault.pointer() == Some(POINTER);
        if !problem.errors.iter().any(is_named) {
            let fault = Fault::at(POINTER, "the executor does not take this job");
            problem.errors.insert(0, fault);
        }
        problem
    })
}

#[cfg(not(feature = "scale"))]
impl ExecutorOptions {
    /// Says that the program has no engine.
    ///
    /// # Errors
    /// Always.
    pub(crate) fn check(&self, _: &str, _: u64) -> Result<(), String> {
        Err(
            "names an executor, but this program was built without `scale`; build it with \
             `cargo build --release --features scale`, or leave the section out"
                .to_owned(),
        )
    }
}

#[cfg(not(feature = "scale"))]
impl ExecutorSet {
    /// No executors.
    ///
    /// # Errors
    /// If one is named.
    pub fn open(sections: &BTreeMap<String, ExecutorOptions>) -> Result<Self, String> {
        for (name, options) in sections {
            options.check(name, u64::MAX)?;
        }
        Ok(Self::default())
    }
}

#[cfg(feature = "scale")]
mod with_engine {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::Arc;

    use pais_scale::{ExecutorKey, ExecutorUrl, Executors, TlsFiles};

    use super::{ExecutorOptions, ExecutorSet, LEAST_MEMORY, NamedExecutor};
    use crate::storage::secret_file::read_one_key;

    /// The name of the engine in this process.
    const IN_PROCESS: &str = "in-process";

    /// The executor that needs no section.
    const LOCAL: &str = "local";

    /// Executors at addresses.
    struct Addresses<'a> {
        urls: Vec<ExecutorUrl>,
        spool: &'a Path,
        key_file: &'a Path,
        tls: Option<TlsFiles>,
    }

    impl ExecutorOptions {
        /// Checks a section without opening its files. A job may take at most `job_bytes` of memory.
        ///
        /// # Errors
        /// What is wrong, as the end of a sentence that begins with the section.
        pub(crate) fn check(&self, name: &str, job_bytes: u64) -> Result<(), String> {
            if name == LOCAL {
                return Err("has the name of the service itself; choose another".to_owned());
            }
            let memory = self.memory.0;
            if memory < LEAST_MEMORY {
                let least = LEAST_MEMORY >> 20;
                return Err(format!("needs a `memory` of at least {least}MiB"));
            }
            if memory > job_bytes {
                return Err(format!(
                    "has a `memory` of more than the {} MiB of memory.job_bytes",
                    job_bytes >> 20
                ));
            }
            self.addresses().map(|_| ())
        }

        /// The executors at addresses; `None` for the engine in this process.
        fn addresses(&self) -> Result<Option<Addresses<'_>>, String> {
            let tls = [&self.tls_certificate, &self.tls_key, &self.tls_authority];
            if self.url == IN_PROCESS {
                let of_addresses = [&self.spool, &self.key_file].into_iter().chain(tls);
                return match of_addresses.flatten().next() {
                    None => Ok(None),
                    Some(_) => Err(
                        "counts in this process: `spool`, `key_file` and `tls_…` are for executors \
                         with an address"
                            .to_owned(),
                    ),
                };
            }
            let urls = self.url.split(',').map(|url| url.trim().parse());
            let (Some(spool), Some(key_file)) = (&self.spool, &self.key_file) else {
                return Err(
                    "has addresses, so it needs `spool`, a directory that its executors see too, and \
                     `key_file`, the key that they have too"
                        .to_owned(),
                );
            };
            let tls = match tls {
                [None, None, None] => None,
                [Some(certificate), Some(key), Some(authority)] => Some(TlsFiles {
                    certificate: certificate.clone(),
                    key: key.clone(),
                    authority: authority.clone(),
                }),
                _ => {
                    return Err(
                        "needs all of `tls_certificate`, `tls_key` and `tls_authority`, or none"
                            .to_owned(),
                    );
                }
            };
            let urls: Vec<ExecutorUrl> = urls.collect::<Result<_, _>>()?;
            if let Some(url) = urls.iter().find(|url| url.is_tls() && tls.is_none()) {
                return Err(format!(
                    "has {url}, which needs a certificate (`tls_certificate`)"
                ));
            }
            Ok(Some(Addresses {
                urls,
                spool,
                key_file,
                tls,
            }))
        }

        /// Opens the key and the certificates of executors at addresses; none of them is called. `None` for the
        /// engine in this process.
        ///
        /// # Errors
        /// What is wrong, as the end of a sentence that begins with the section.
        pub fn processes(&self) -> Result<Option<Arc<Executors>>, String> {
            let Some(addresses) = self.addresses()? else {
                return Ok(None);
            };
            let key = read_one_key(addresses.key_file).map_err(|error| error.to_string())?;
            let (urls, spool, key) = (addresses.urls, addresses.spool, ExecutorKey::new(&key));
            let opened = Executors::new(urls, spool, key, addresses.tls.as_ref());
            opened
                .map(|executors| Some(Arc::new(executors)))
                .map_err(|error| error.to_string())
        }
    }

    impl ExecutorSet {
        /// Opens the keys and certificates of executors. None of them is called.
        ///
        /// # Errors
        /// The section that cannot be used, and what is wrong.
        pub fn open(sections: &BTreeMap<String, ExecutorOptions>) -> Result<Self, String> {
            let opened = sections.iter().map(|(name, options)| {
                let processes = options.processes();
                let processes = processes.map_err(|reason| format!("executors.{name}: {reason}"));
                let executor = NamedExecutor {
                    memory: options.memory.0,
                    processes: processes?,
                };
                Ok((name.clone(), executor))
            });
            Ok(Self {
                by_name: opened.collect::<Result<_, String>>()?,
            })
        }
    }
}
