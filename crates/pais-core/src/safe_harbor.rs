//! The 18 categories of identifiers of HIPAA Safe Harbor, 45 CFR 164.514(b)(2)(i), and the category of
//! a column.

use serde::{Deserialize, Serialize};

use crate::definition::ColumnKind;

/// A category of identifiers, (A) to (R) of 45 CFR 164.514(b)(2)(i).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SafeHarborCategory {
    /// (A) Names.
    Name,
    /// (B) Geographic subdivisions smaller than a state.
    Geography,
    /// (C) Elements of dates, except the year, and ages over 89.
    Date,
    /// (D) Telephone numbers.
    Telephone,
    /// (E) Fax numbers.
    Fax,
    /// (F) Email addresses.
    Email,
    /// (G) Social security numbers.
    SocialSecurity,
    /// (H) Medical record numbers.
    MedicalRecord,
    /// (I) Health plan beneficiary numbers.
    HealthPlan,
    /// (J) Account numbers.
    Account,
    /// (K) Certificate and license numbers.
    License,
    /// (L) Vehicle identifiers and serial numbers, including license plates.
    Vehicle,
    /// (M) Device identifiers and serial numbers.
    Device,
    /// (N) Web addresses.
    Url,
    /// (O) IP addresses.
    IpAddress,
    /// (P) Biometric identifiers, including finger and voice prints.
    Biometric,
    /// (Q) Full-face photographs and comparable images.
    Photograph,
    /// (R) Any other unique identifying number, characteristic or code.
    OtherUnique,
}

impl SafeHarborCategory {
    /// All categories, (A) to (R).
    pub const ALL: [Self; 18] = [
        Self::Name,
        Self::Geography,
        Self::Date,
        Self::Telephone,
        Self::Fax,
        Self::Email,
        Self::SocialSecurity,
        Self::MedicalRecord,
        Self::HealthPlan,
        Self::Account,
        Self::License,
        Self::Vehicle,
        Self::Device,
        Self::Url,
        Self::IpAddress,
        Self::Biometric,
        Self::Photograph,
        Self::OtherUnique,
    ];

    /// The category of a column, by its name and kind alone; `None` where they tell none.
    pub fn of_column(name: &str, kind: ColumnKind) -> Option<Self> {
        let words = words(name);
        let has = |any: &[&str]| any.iter().any(|word| words.iter().any(|it| it == word));
        let is_number = has(&["number", "no", "nr", "num", "id", "code"]);
        let found = [
            (Self::Email, has(&["email", "mail"])),
            (Self::Fax, has(&["fax"])),
            (Self::Telephone, has(&["phone", "telephone", "tel", "mobile"])),
            (Self::SocialSecurity, has(&["ssn", "nino"]) || (has(&["social"]) && has(&["security"]))),
            (Self::MedicalRecord, has(&["mrn"]) || (has(&["record", "patient"]) && is_number)),
            (Self::HealthPlan, has(&["beneficiary", "insurance", "policy"]) && (is_number || has(&["beneficiary"]))),
            (Self::Account, has(&["account", "iban"])),
            (Self::License, has(&["license", "licence", "certificate", "passport"])),
            (Self::Vehicle, has(&["vin", "plate", "vehicle"])),
            (Self::Device, has(&["device", "serial", "imei"])),
            (Self::Url, has(&["url", "website"])),
            (Self::IpAddress, has(&["ip"])),
            (Self::Biometric, has(&["fingerprint", "biometric", "voiceprint", "retina"])),
            (Self::Photograph, has(&["photo", "photograph", "image", "picture"])),
            (Self::Geography, has(&[
                "zip", "zipcode", "postcode", "postal", "city", "town", "county", "street", "address",
                "district", "precinct", "ward", "latitude", "longitude", "lat", "lon",
            ])),
            (Self::Date, kind.is_of_dates() || has(&[
                "age", "date", "dob", "birth", "birthdate", "birthday", "year", "admission", "discharge", "death",
            ])),
            (Self::Name, has(&["name", "surname", "firstname", "lastname", "forename"])),
        ];
        found.into_iter().find_map(|(category, is)| is.then_some(category))
    }
}

/// The words of a column's name, in lower case: `admissionDate` and `admission_date` have two.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for character in name.chars() {
        let starts = character.is_uppercase() && was_lower;
        if starts || !character.is_alphanumeric() {
            words.push(String::new());
        }
        if character.is_alphanumeric() {
            words.extend(words.pop().map(|word| word + &character.to_lowercase().to_string()));
        }
        was_lower = character.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}
