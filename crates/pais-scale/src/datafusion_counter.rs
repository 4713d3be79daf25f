//! Counts rows with Apache DataFusion in this process.

use std::sync::Arc;
use std::time::Duration;

use datafusion::error::Result;
use futures_util::StreamExt;
use pais_anonymize::{ColumnParts, CountError, Observer, PartCounts, RowCounter};
use pais_core::cancellation::Cancellation;
use tokio::runtime::Runtime;

use crate::codes::CodeFile;
use crate::engine::RowEngine;
use crate::error::ScaleError;
use crate::keys::{Answer, KeyCounts, Keys};
use crate::sealed::Sealer;

/// Maximum delay of a request to stop.
pub(crate) const PATIENCE: Duration = Duration::from_millis(20);

/// Rows of codes in a sealed file, counted by DataFusion.
pub(crate) struct DataFusionCounter {
    rows: Arc<CodeFile>,
    runtime: Runtime,
    engine: RowEngine,
}

impl DataFusionCounter {
    /// Counts with at most `memory` bytes; what does not fit is spilled into sealed files.
    ///
    /// # Errors
    /// When the engine cannot be started.
    pub(crate) fn new(
        rows: Arc<CodeFile>,
        memory: usize,
        sealer: Sealer,
    ) -> std::result::Result<Self, ScaleError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_time()
            .build();
        let engine = RowEngine::new(memory, sealer);
        Ok(Self {
            rows,
            runtime: runtime.map_err(|error| ScaleError::Engine(error.to_string()))?,
            engine: engine.map_err(|error| ScaleError::Engine(error.to_string()))?,
        })
    }

    async fn run(
        &self,
        keys: &Arc<Keys>,
        most: Option<usize>,
        cancellation: &Cancellation,
    ) -> Result<Answer> {
        let blocks = 0..self.rows.blocks();
        let mut batches = self
            .engine
            .count(&self.rows, keys, blocks, cancellation)
            .await?;
        let mut answer = Answer::Counts(KeyCounts::new(keys.count()));
        while let Answer::Counts(counts) = &mut answer {
            // The statement ends with its stream.
            let batch = tokio::time::timeout(PATIENCE, batches.next()).await;
            if cancellation.is_cancelled() {
                return Ok(Answer::Cancelled);
            }
            match batch {
                Err(_) => {}
                Ok(None) => break,
                Ok(Some(batch)) => {
                    counts.push(&batch?)?;
                    if most.is_some_and(|most| counts.rows.len() > most) {
                        answer = Answer::MoreThan;
                    }
                }
            }
        }
        Ok(answer)
    }
}

impl RowCounter for DataFusionCounter {
    fn expected_combinations(
        &self,
        columns: &[ColumnParts],
        observer: &dyn Observer,
    ) -> Result<u64, CountError> {
        Keys::new(columns).expected_combinations(&self.rows, observer)
    }

    fn count(
        &self,
        columns: &[ColumnParts],
        most: Option<usize>,
        observer: &dyn Observer,
    ) -> std::result::Result<PartCounts, CountError> {
        let keys = Arc::new(Keys::new(columns));
        let run = self.run(&keys, most, observer.cancellation());
        match self.runtime.block_on(run) {
            Ok(Answer::Counts(counts)) => Ok(keys.part_counts(counts, columns.len())),
            Ok(Answer::MoreThan) => Err(CountError::MoreThan),
            Ok(Answer::Cancelled) => Err(CountError::Cancelled),
            Err(_) if observer.must_stop() => Err(CountError::Cancelled),
            // At most, it quotes numbers of combinations.
            Err(error) => Err(CountError::Failed(format!("the engine failed: {error}"))),
        }
    }
}
