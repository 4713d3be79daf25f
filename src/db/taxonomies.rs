//! The taxonomies of an organization.

use std::collections::HashMap;

use serde::Serialize;
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ids::OrganizationId;
use crate::roles::Caller;
use pais_core::definition::TaxonomyId;
use pais_core::definition::TaxonomyNode;
use pais_core::taxonomy::Tree;

use super::audit::{self, Action, NewEvent};
use super::{Store, StoreError, token_validity, trees, violates};

/// A taxonomy without its tree.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
pub struct TaxonomySummary {
    /// Its id.
    pub id: TaxonomyId,
    /// Unique in its organization.
    pub name: String,
    /// Number of leaves.
    pub leaves: i32,
    /// Number of nodes, leaves and root included.
    pub nodes: i32,
    /// Number of levels, leaves and root included.
    pub depth: i32,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// A taxonomy with its tree.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
pub struct Taxonomy {
    /// All but the tree.
    #[serde(flatten)]
    #[sqlx(flatten)]
    pub summary: TaxonomySummary,
    /// The tree.
    #[sqlx(json)]
    pub root: TaxonomyNode,
}

/// Creates a taxonomy; returns `None` if the name is taken.
pub async fn create(
    store: &Store,
    by: Caller,
    name: &str,
    tree: &Tree,
) -> Result<Option<Taxonomy>, StoreError> {
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let made = TaxonomySummary {
        id: TaxonomyId::new(),
        name: name.to_owned(),
        leaves: count(tree.leaf_count()),
        nodes: count(tree.nodes().len()),
        depth: count(tree.depth()),
        created_at: store.now(),
    };
    let root = tree.definition();
    let mut transaction = token_validity::begin(store, by).await?;
    trees::lock(&mut transaction, by.organization).await?;
    let stored = trees::insert(&mut transaction, by.organization, &root).await?;
    let inserted = sqlx::query(
        "INSERT INTO taxonomies
             (id, organization_id, name, tree_sha256, leaves, nodes, depth, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(made.id)
    .bind(by.organization)
    .bind(&made.name)
    .bind(stored)
    .bind(made.leaves)
    .bind(made.nodes)
    .bind(made.depth)
    .bind(made.created_at)
    .execute(&mut *transaction)
    .await;
    match inserted {
        Err(error) if violates(&error, "taxonomies_organization_id_name_key") => return Ok(None),
        inserted => inserted?,
    };
    let detail = serde_json::json!({ "name": made.name, "leaves": made.leaves });
    let event = NewEvent::by(by, Action::TaxonomyCreated, made.id.0, detail);
    audit::commit(transaction, made.created_at, event).await?;
    Ok(Some(Taxonomy {
        summary: made,
        root,
    }))
}

/// An organization's taxonomies after `after`, oldest first, at most `limit`.
pub async fn list(
    store: &Store,
    organization: OrganizationId,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<TaxonomySummary>, StoreError> {
    Ok(sqlx::query_as(
        "SELECT id, name, leaves, nodes, depth, created_at FROM taxonomies
         WHERE organization_id = $1 AND ($2::uuid IS NULL OR id > $2) ORDER BY id LIMIT $3",
    )
    .bind(organization)
    .bind(after)
    .bind(limit)
    .fetch_all(&mut *store.connection().await?)
    .await?)
}

/// A taxonomy of an organization; `None` if there is none.
pub async fn find(
    store: &Store,
    organization: OrganizationId,
    id: TaxonomyId,
) -> Result<Option<Taxonomy>, StoreError> {
    Ok(sqlx::query_as(
        "SELECT id, name, root, leaves, nodes, depth, created_at
         FROM taxonomies t JOIN trees ON (trees.organization_id, trees.sha256)
                                       = (t.organization_id, t.tree_sha256)
         WHERE t.organization_id = $1 AND id = $2",
    )
    .bind(organization)
    .bind(id)
    .fetch_optional(&mut *store.connection().await?)
    .await?)
}

/// The result of [`delete`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaxonomyDeletion {
    /// It is deleted.
    Deleted,
    /// The organization has no such taxonomy.
    NotFound,
    /// A dataset of the organization names it.
    InUse,
}

/// Deletes a taxonomy of the caller's organization unless a dataset that is not deleted names it.
pub async fn delete(
    store: &Store,
    by: Caller,
    id: TaxonomyId,
) -> Result<TaxonomyDeletion, StoreError> {
    let mut transaction = token_validity::begin(store, by).await?;
    // No dataset begins to use it until the end of the transaction.
    trees::lock(&mut transaction, by.organization).await?;
    let found: Option<(String, trees::TreeKey, bool)> = sqlx::query_as(
        "SELECT t.name, t.tree_sha256,
                EXISTS (SELECT FROM datasets d,
                               jsonb_array_elements(d.definition -> 'columns') AS c
                        WHERE d.organization_id = t.organization_id AND d.deleted_at IS NULL
                          AND c ->> 'taxonomy' = t.id::text) AS in_use
         FROM taxonomies t WHERE t.organization_id = $1 AND t.id = $2",
    )
    .bind(by.organization)
    .bind(id)
    .fetch_optional(&mut *transaction)
    .await?;
    let Some((name, tree, in_use)) = found else {
        return Ok(TaxonomyDeletion::NotFound);
    };
    if in_use {
        return Ok(TaxonomyDeletion::InUse);
    }
    sqlx::query("DELETE FROM taxonomies WHERE id = $1")
        .bind(id)
        .execute(&mut *transaction)
        .await?;
    trees::remove_unused(&mut transaction, by.organization, &[tree]).await?;
    let detail = serde_json::json!({ "name": name });
    let event = NewEvent::by(by, Action::TaxonomyDeleted, id.0, detail);
    audit::commit(transaction, store.now(), event).await?;
    Ok(TaxonomyDeletion::Deleted)
}

/// Whether the organization still has all these taxonomies. The caller has the [`trees::lock`].
pub(super) async fn still_exist(
    connection: &mut PgConnection,
    organization: OrganizationId,
    ids: &[TaxonomyId],
) -> Result<bool, StoreError> {
    let found: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM taxonomies WHERE organization_id = $1 AND id = ANY($2)",
    )
    .bind(organization)
    .bind(ids)
    .fetch_one(connection)
    .await?;
    Ok(found == ids.len() as i64)
}

/// The trees of the taxonomies in `ids` that belong to the organization.
pub(crate) async fn roots(
    store: &Store,
    organization: OrganizationId,
    ids: &[TaxonomyId],
) -> Result<HashMap<TaxonomyId, TaxonomyNode>, StoreError> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let roots: Vec<(TaxonomyId, Json<TaxonomyNode>)> = sqlx::query_as(
        "SELECT id, root
         FROM taxonomies t JOIN trees ON (trees.organization_id, trees.sha256)
                                       = (t.organization_id, t.tree_sha256)
         WHERE t.organization_id = $1 AND id = ANY($2)",
    )
    .bind(organization)
    .bind(ids)
    .fetch_all(&mut *store.connection().await?)
    .await?;
    Ok(roots
        .into_iter()
        .map(|(id, Json(root))| (id, root))
        .collect())
}
