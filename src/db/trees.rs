//! Trees of taxonomies and of columns. A tree is stored once for each organization, under the
//! SHA-256 of its text, and removed with the last dataset or taxonomy that uses it.

use std::collections::HashMap;

use pais_core::definition::{
    DatasetDefinition, DatasetId, TaxonomyId, TaxonomyNode, TaxonomyReference,
};
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection};

use crate::ids::OrganizationId;

use super::StoreError;

/// The key of a tree among those of its organization.
pub(super) type TreeKey = Vec<u8>;

/// Locks the set of an organization's trees until the transaction ends, so that a tree is not removed
/// while something begins to use it. The first statement of a transaction that adds or removes a use.
pub(super) async fn lock(
    connection: &mut PgConnection,
    organization: OrganizationId,
) -> Result<(), StoreError> {
    // Not a lock of the organization's row, which a claim of a job takes after that of the job: a deletion
    // takes them the other way around.
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1::text, 16))")
        .bind(organization)
        .execute(connection)
        .await?;
    Ok(())
}

/// Stores a tree, unless it is stored already. The caller has the [`lock`].
pub(super) async fn insert(
    connection: &mut PgConnection,
    organization: OrganizationId,
    root: &TaxonomyNode,
) -> Result<TreeKey, StoreError> {
    Ok(sqlx::query_scalar(
        "WITH given AS (SELECT sha256(convert_to($2::jsonb::text, 'UTF8')) AS sha256),
              added AS (INSERT INTO trees (organization_id, sha256, root)
                        SELECT $1, sha256, $2 FROM given ON CONFLICT DO NOTHING)
         SELECT sha256 FROM given",
    )
    .bind(organization)
    .bind(Json(root))
    .fetch_one(connection)
    .await?)
}

/// Removes the uses of trees by a dataset, and the trees that nothing else uses. The caller has the
/// [`lock`].
pub(super) async fn unlink(
    connection: &mut PgConnection,
    organization: OrganizationId,
    dataset: DatasetId,
) -> Result<(), StoreError> {
    let used: Vec<TreeKey> =
        sqlx::query_scalar("DELETE FROM dataset_trees WHERE dataset_id = $1 RETURNING sha256")
            .bind(dataset)
            .fetch_all(&mut *connection)
            .await?;
    // A separate statement, so that it sees that the uses are gone.
    remove_unused(connection, organization, &used).await
}

/// Removes those of some trees that nothing uses any more. The caller has the [`lock`].
pub(super) async fn remove_unused(
    connection: &mut PgConnection,
    organization: OrganizationId,
    trees: &[TreeKey],
) -> Result<(), StoreError> {
    sqlx::query(
        "DELETE FROM trees t WHERE t.organization_id = $1 AND t.sha256 = ANY($2)
           AND NOT EXISTS (SELECT FROM dataset_trees u
                           WHERE (u.organization_id, u.sha256) = (t.organization_id, t.sha256))
           AND NOT EXISTS (SELECT FROM taxonomies u
                           WHERE (u.organization_id, u.tree_sha256) = (t.organization_id, t.sha256))",
    )
    .bind(organization)
    .bind(trees)
    .execute(connection)
    .await?;
    Ok(())
}

/// A tree, and the positions of the columns of a dataset that use it.
#[derive(FromRow)]
pub(super) struct UsedTree {
    /// Positions in the definition, from 0.
    pub(super) positions: Vec<i32>,
    #[sqlx(json)]
    pub(super) root: TaxonomyNode,
}

/// The trees of a dataset.
pub(super) async fn of_dataset(
    connection: &mut PgConnection,
    dataset: DatasetId,
) -> Result<Vec<UsedTree>, StoreError> {
    Ok(sqlx::query_as(
        "SELECT u.positions, t.root
         FROM (SELECT organization_id, sha256, array_agg(position) AS positions
               FROM dataset_trees WHERE dataset_id = $1 GROUP BY organization_id, sha256) u
         JOIN trees t ON (t.organization_id, t.sha256) = (u.organization_id, u.sha256)",
    )
    .bind(dataset)
    .fetch_all(connection)
    .await?)
}

/// The definition as it is stored: without inline trees, which are stored by themselves.
pub(super) fn without_trees(definition: &DatasetDefinition) -> DatasetDefinition {
    let mut stored = definition.clone();
    for column in &mut stored.columns {
        column
            .taxonomy
            .take_if(|taxonomy| matches!(taxonomy, TaxonomyReference::Inline(_)));
    }
    stored
}

/// Stores the trees of the columns. `by_id` has those that are given by id.
pub(super) async fn link_all(
    connection: &mut PgConnection,
    organization: OrganizationId,
    dataset: DatasetId,
    definition: &DatasetDefinition,
    by_id: &HashMap<TaxonomyId, TaxonomyNode>,
) -> Result<(), StoreError> {
    for (position, column) in definition.columns.iter().enumerate() {
        let root = match &column.taxonomy {
            Some(TaxonomyReference::Id(id)) => by_id.get(id),
            Some(TaxonomyReference::Inline(root)) => Some(root),
            Some(TaxonomyReference::Generated(_)) | None => None,
        };
        if let Some(root) = root {
            let tree = insert(&mut *connection, organization, root).await?;
            sqlx::query(
                "INSERT INTO dataset_trees (dataset_id, position, organization_id, sha256)
                 VALUES ($1, $2, $3, $4)",
            )
            .bind(dataset)
            .bind(i32::try_from(position).unwrap_or(i32::MAX))
            .bind(organization)
            .bind(tree)
            .execute(&mut *connection)
            .await?;
        }
    }
    Ok(())
}

/// A stored definition as it was declared, with its inline trees.
pub(super) fn declared(mut stored: DatasetDefinition, trees: &[UsedTree]) -> DatasetDefinition {
    for tree in trees {
        let inline = || TaxonomyReference::Inline(tree.root.clone());
        for &position in &tree.positions {
            if let Some(column) = stored.columns.get_mut(position.cast_unsigned() as usize) {
                column.taxonomy.get_or_insert_with(inline);
            }
        }
    }
    stored
}
