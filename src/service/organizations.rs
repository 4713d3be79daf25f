//! Organizations: creation, listing and disabling.

use crate::db::organizations::{self, Organization};
use crate::ids::OrganizationId;
use crate::problem::Code;
use crate::roles::Caller;

use super::{ApiError, App, text};
use crate::api::page::{Listing, PageRequest};

/// Maximum length of a display name, in characters.
const DISPLAY_NAME_LENGTH: usize = 200;

impl App {
    /// Creates an organization.
    ///
    /// # Errors
    /// `invalid_name`; `invalid_value`; `name_taken`; when the database fails.
    pub async fn create_organization(
        &self,
        caller: Caller,
        name: &str,
        display_name: Option<&str>,
    ) -> Result<Organization, ApiError> {
        organizations::check_name(name)?;
        text::check_length("/display_name", display_name, DISPLAY_NAME_LENGTH)?;
        let created = organizations::create(&self.db, Some(caller), name, display_name).await?;
        Ok(created.ok_or_else(|| text::name_taken("an organization"))?)
    }

    /// All organizations, oldest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_organizations(
        &self,
        page: PageRequest,
    ) -> Result<Listing<Organization>, ApiError> {
        let rows = organizations::list(&self.db, page.after, page.rows_to_query()).await?;
        Ok(Listing::new(rows, page, |organization| organization.id.0))
    }

    /// An organization.
    ///
    /// # Errors
    /// `not_found`; when the database fails.
    pub async fn get_organization(&self, id: OrganizationId) -> Result<Organization, ApiError> {
        let organization =
            organizations::find(&mut *self.db.connection().await?, &id.to_string()).await?;
        organization.ok_or_else(ApiError::not_found)
    }

    /// Disables an organization, or enables it again. While it is disabled its tokens, and those of
    /// its people, are refused, and what they have under way ends; its datasets and releases stay,
    /// and its grants take effect again with it.
    ///
    /// # Errors
    /// `not_found`; `conflict` for the caller's own organization; when the database fails.
    pub async fn set_organization_disabled(
        &self,
        caller: Caller,
        id: OrganizationId,
        is_disabled: bool,
    ) -> Result<Organization, ApiError> {
        if id == caller.organization && is_disabled {
            return Err(ApiError::new(
                Code::Conflict,
                "this is your own organization: nobody could enable it again",
            ));
        }
        match organizations::set_disabled(&self.db, caller, id, is_disabled).await? {
            true => self.get_organization(id).await,
            false => Err(ApiError::not_found()),
        }
    }
}
