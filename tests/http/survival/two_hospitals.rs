//! The real program with the adult table in datasets of several organizations.

use std::path::Path;
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};

use crate::process::{ServiceProcess, call};
use pais_test_support::adult;
use pais_test_support::poll::poll_async;

/// An organization with a dataset.
pub(super) struct Tenant {
    pub(super) token: String,
    pub(super) dataset: String,
}

/// The service and a client.
pub(super) struct Hub {
    pub(super) service: ServiceProcess,
    pub(super) client: Client,
}

impl Hub {
    pub(super) async fn start(data: &Path, settings: &[(&str, &str)]) -> Self {
        Self {
            service: ServiceProcess::start(data, settings).await,
            client: Client::new(),
        }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.service.base)
    }

    /// An organization with a dataset that has the adult table `copies` times.
    pub(super) async fn tenant(&self, organization: &str, copies: usize) -> Tenant {
        let rows = adult::csv().unwrap();
        self.tenant_with(organization, &vec![rows; copies]).await
    }

    /// An organization with a dataset that has these rows of the adult table, as CSV.
    pub(super) async fn tenant_with(&self, organization: &str, submissions: &[Vec<u8>]) -> Tenant {
        let token = self.service.token(organization, "holder");
        let mut definition = adult::dataset("adult").unwrap();
        for column in definition["columns"].as_array_mut().unwrap() {
            column.as_object_mut().unwrap().remove("taxonomy");
        }
        let made = self.client.post(self.url("/v1/datasets")).json(&definition);
        let dataset = call(made, &token).await["id"].as_str().unwrap().to_owned();
        for rows in submissions {
            let path = format!("/v1/datasets/{dataset}/submissions?allow_duplicate=true");
            let request = self.client.post(self.url(&path));
            let request = request.header("content-type", "text/csv");
            call(request.body(rows.clone()), &token).await;
        }
        Tenant { token, dataset }
    }

    /// The id of a new job.
    pub(super) async fn job(&self, tenant: &Tenant, privacy: &Value) -> String {
        let job = json!({ "dataset_id": tenant.dataset, "privacy": privacy });
        let request = self.client.post(self.url("/v1/jobs")).json(&job);
        let made = call(request, &tenant.token).await;
        made["id"].as_str().unwrap().to_owned()
    }

    /// The job as it is now.
    pub(super) async fn see(&self, tenant: &Tenant, job: &str) -> Value {
        let request = self.client.get(self.url(&format!("/v1/jobs/{job}")));
        call(request, &tenant.token).await
    }

    /// The job, when the condition is met.
    pub(super) async fn wait(
        &self,
        tenant: &Tenant,
        job: &str,
        longest: Duration,
        met: impl Fn(&Value) -> bool,
    ) -> Value {
        let last = std::cell::RefCell::new(Value::Null);
        let met = poll_async(longest, async || {
            let seen = self.see(tenant, job).await;
            last.replace(seen.clone());
            met(&seen).then_some(seen)
        });
        let met = met.await;
        met.unwrap_or_else(|| panic!("the job does not reach the state: {}", last.borrow()))
    }
}

/// Models that together take long to search.
pub(super) fn slow() -> Value {
    json!({ "model": "lkc", "l": [3, 4], "k": [10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32], "c": 1.0 })
}

/// A model that takes the shortest time.
pub(super) fn quick() -> Value {
    json!({ "model": "k_anonymity", "k": 20000 })
}

/// Whether a job has ended.
pub(super) fn has_ended(job: &Value) -> bool {
    !job["ended_at"].is_null()
}
