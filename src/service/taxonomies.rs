//! Taxonomies: checks of their trees, creation and listing.

use pais_core::definition::{TaxonomyId, TaxonomyNode};
use pais_core::taxonomy::{Tree, hierarchy};

use crate::db::taxonomies::{self, Taxonomy, TaxonomyDeletion, TaxonomySummary};
use crate::problem::{Code, Problem};
use crate::roles::Caller;

use super::{ApiError, App, text};
use crate::api::page::{Page, PageRequest};

impl App {
    /// Creates a taxonomy from a tree.
    ///
    /// # Errors
    /// `invalid_name`; `invalid_taxonomy` with a pointer below `/root`; `name_taken`; when the
    /// database fails.
    pub async fn create_taxonomy(
        &self,
        caller: Caller,
        name: &str,
        root: &TaxonomyNode,
    ) -> Result<Taxonomy, ApiError> {
        let name = text::name(name)?;
        let tree = Tree::new(root, self.limits.taxonomy).map_err(|error| {
            let pointer = format!("/root{}", error.pointer());
            Problem::at(Code::InvalidTaxonomy, pointer, error.to_string())
        })?;
        self.insert_taxonomy(caller, &name, &tree).await
    }

    /// Creates a taxonomy from hierarchy rows in CSV: `leaf;level1;…;top`, one row for each leaf.
    ///
    /// # Errors
    /// `invalid_name`; `malformed_body` or `invalid_taxonomy` with the row; `name_taken`; when the
    /// database fails.
    pub async fn create_taxonomy_from_rows(
        &self,
        caller: Caller,
        name: &str,
        rows: &[u8],
    ) -> Result<Taxonomy, ApiError> {
        let name = text::name(name)?;
        let limits = self.limits.taxonomy;
        let root = hierarchy::parse(rows, limits)?;
        let tree = Tree::new(&root, limits)
            .map_err(|error| Problem::new(Code::InvalidTaxonomy, error.to_string()))?;
        self.insert_taxonomy(caller, &name, &tree).await
    }

    async fn insert_taxonomy(
        &self,
        caller: Caller,
        name: &str,
        tree: &Tree,
    ) -> Result<Taxonomy, ApiError> {
        let created = taxonomies::create(&self.db, caller, name, tree).await?;
        Ok(created.ok_or_else(|| text::name_taken("a taxonomy"))?)
    }

    /// The taxonomies of the caller's organization without their trees, oldest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_taxonomies(
        &self,
        caller: Caller,
        page: PageRequest,
    ) -> Result<Page<TaxonomySummary>, ApiError> {
        let (organization, limit) = (caller.organization, page.rows_to_query());
        let rows = taxonomies::list(&self.db, organization, page.after, limit).await?;
        Ok(Page::new(rows, page, |taxonomy| taxonomy.id.0))
    }

    /// A taxonomy of the caller's organization, with its tree.
    ///
    /// # Errors
    /// `not_found`; when the database fails.
    pub async fn get_taxonomy(&self, caller: Caller, id: TaxonomyId) -> Result<Taxonomy, ApiError> {
        let taxonomy = taxonomies::find(&self.db, caller.organization, id).await?;
        taxonomy.ok_or_else(ApiError::not_found)
    }

    /// Deletes a taxonomy of the caller's organization.
    ///
    /// # Errors
    /// `not_found`; `taxonomy_in_use` while a dataset names it; when the database fails.
    pub async fn delete_taxonomy(&self, caller: Caller, id: TaxonomyId) -> Result<(), ApiError> {
        match taxonomies::delete(&self.db, caller, id).await? {
            TaxonomyDeletion::Deleted => Ok(()),
            TaxonomyDeletion::NotFound => Err(ApiError::not_found()),
            TaxonomyDeletion::InUse => Err(ApiError::new(
                Code::TaxonomyInUse,
                "a dataset uses this taxonomy; delete the dataset first",
            )),
        }
    }
}
