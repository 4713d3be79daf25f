//! The category of HIPAA that a column probably is, by its values and its name.

use pais_core::definition::{ColumnKind, ColumnRole, GeneratedHierarchy};
use pais_core::name_meaning::NameMeaning;
use pais_core::safe_harbor::SafeHarborCategory;

use super::observed::Observed;
use super::role::is_postal;

/// The category of a column; `None` if it has none. The form of the values takes precedence over the name.
pub(super) fn category(
    name: &str,
    column: &Observed,
    role: ColumnRole,
    kind: ColumnKind,
    made: Option<&GeneratedHierarchy>,
) -> Option<SafeHarborCategory> {
    let codes = &column.codes;
    let forms = [
        (codes.email, SafeHarborCategory::EmailAddresses),
        (codes.ssn, SafeHarborCategory::SocialSecurityNumbers),
        (codes.ip, SafeHarborCategory::IpAddresses),
        (codes.url, SafeHarborCategory::Urls),
    ];
    let of_form = forms.into_iter().find(|(rows, _)| column.is_most(*rows));
    if let Some((_, category)) = of_form {
        return Some(category);
    }
    let named = SafeHarborCategory::of_name(name);
    if column.is_most(codes.phone) && named.is_none() {
        return Some(SafeHarborCategory::TelephoneNumbers);
    }
    if named.is_none() && is_postal(column, NameMeaning::of(name)) {
        return Some(SafeHarborCategory::GeographicSubdivisions);
    }
    // A column without values is dropped, and is not a key.
    if column.rows == 0 {
        return named;
    }
    SafeHarborCategory::of_column(name, role, kind, made)
}
