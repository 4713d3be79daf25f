//! Organizations: creation and listing.

use crate::ids::OrganizationId;
use crate::roles::Caller;
use crate::store::organizations::{self, Organization};

use super::page::{Listing, PageRequest};
use super::{Service, ServiceError, text};

/// Maximum length of a display name, in characters.
const DISPLAY_NAME_LENGTH: usize = 200;

impl Service {
    /// Creates an organization.
    ///
    /// # Errors
    /// `invalid_name`; `invalid_value`; `name_taken`; when the database fails.
    pub async fn create_organization(
        &self,
        caller: Caller,
        name: &str,
        display_name: Option<&str>,
    ) -> Result<Organization, ServiceError> {
        organizations::check_name(name)?;
        text::check_length("/display_name", display_name, DISPLAY_NAME_LENGTH)?;
        let created = organizations::create(&self.store, Some(caller), name, display_name).await?;
        Ok(created.ok_or_else(|| text::name_taken("an organization"))?)
    }

    /// All organizations, oldest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_organizations(
        &self,
        page: PageRequest,
    ) -> Result<Listing<Organization>, ServiceError> {
        let rows = organizations::list(&self.store, page.after, page.rows_to_query()).await?;
        Ok(Listing::new(rows, page, |organization| organization.id.0))
    }

    /// An organization.
    ///
    /// # Errors
    /// `not_found`; when the database fails.
    pub async fn get_organization(&self, id: OrganizationId) -> Result<Organization, ServiceError> {
        let organization = organizations::find(self.store.pool(), &id.to_string()).await?;
        organization.ok_or_else(ServiceError::not_found)
    }
}
