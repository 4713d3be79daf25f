//! The order of released rows, which must not disclose anything.

use pais_core::definition::JobDefinition;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{SeedableRng, TryRng};
use sha2::{Digest, Sha256};

use crate::error::RunError;
use crate::step::StepRecord;

/// The raw rows of a release in the order in which it has them: all that no step up to `step`
/// suppressed, shuffled as by [`shuffled`].
///
/// # Errors
/// As [`shuffled`].
pub(crate) fn released_rows(
    rows: usize,
    steps: &[StepRecord],
    step: u32,
    job: &JobDefinition,
) -> Result<Vec<u32>, RunError> {
    let mut kept = vec![true; rows];
    for record in steps.iter().filter(|record| record.item.step <= step) {
        for &row in &record.suppressed {
            kept[row as usize] = false;
        }
    }
    let order = (0..rows as u32).filter(|&row| kept[row as usize]).collect();
    shuffled(order, job, step)
}

/// Rows in random order. A seed is mixed with the step and the job, so that releases of one step
/// under two privacy models, or of two steps, are in unrelated orders even where their seeds are
/// equal: they cannot be joined row by row.
///
/// # Errors
/// [`RunError::Internal`] when the system has no random bytes: a fixed order would disclose rows.
pub(crate) fn shuffled(
    mut order: Vec<u32>,
    job: &JobDefinition,
    step: u32,
) -> Result<Vec<u32>, RunError> {
    let mut material = [0u8; 32];
    match job.seed {
        Some(seed) => {
            // Which rows are read, and whether the service or the command line runs the job, does
            // not change the order: both give the same bytes.
            let parameters = JobDefinition {
                dataset_id: None,
                submissions: None,
                release: None,
                ..job.clone()
            };
            let parameters = serde_json::to_vec(&parameters).map_err(RunError::internal)?;
            let digest = Sha256::new()
                .chain_update(b"pais: order of released rows")
                .chain_update(seed.to_le_bytes())
                .chain_update(step.to_le_bytes())
                .chain_update(parameters);
            material.copy_from_slice(&digest.finalize());
        }
        None => rand::rngs::SysRng
            .try_fill_bytes(&mut material)
            .map_err(|_| RunError::internal("the system has no random bytes to order rows by"))?,
    }
    order.shuffle(&mut StdRng::from_seed(material));
    Ok(order)
}
