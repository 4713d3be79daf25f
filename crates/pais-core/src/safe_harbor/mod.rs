//! The categories of identifiers of the Safe Harbor method of HIPAA: 45 CFR 164.514(b)(2)(i), letters
//! A to R.
//!
//! A category is a proposal based on the name and the declaration of a column. The rule concerns the individual
//! and her relatives, employers and household members, so numbers and names of hospitals and physicians have no
//! category.

mod requirement;

use serde::{Deserialize, Serialize};

use crate::column_name::{is_in, words};
use crate::definition::{ColumnKind, ColumnRole, GeneratedHierarchy};
use crate::schema::SchemaColumn;

pub use requirement::{SafeHarborAdvice, SafeHarborLabels, SafeHarborRequirement};

/// A category of 45 CFR 164.514(b)(2)(i), in the order of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SafeHarborCategory {
    /// (A) Names.
    Names,
    /// (B) Geographic subdivisions smaller than a state.
    GeographicSubdivisions,
    /// (C) Elements of dates but the year, and ages over 89.
    Dates,
    /// (D) Telephone numbers.
    TelephoneNumbers,
    /// (E) Fax numbers.
    FaxNumbers,
    /// (F) Addresses of electronic mail.
    EmailAddresses,
    /// (G) Social security numbers.
    SocialSecurityNumbers,
    /// (H) Medical record numbers.
    MedicalRecordNumbers,
    /// (I) Health plan beneficiary numbers.
    HealthPlanBeneficiaryNumbers,
    /// (J) Account numbers.
    AccountNumbers,
    /// (K) Certificate and license numbers.
    CertificateNumbers,
    /// (L) Vehicle identifiers and license plates.
    VehicleIdentifiers,
    /// (M) Device identifiers and serial numbers.
    DeviceIdentifiers,
    /// (N) Web addresses.
    Urls,
    /// (O) Addresses of the Internet Protocol.
    IpAddresses,
    /// (P) Biometric identifiers, such as finger and voice prints.
    BiometricIdentifiers,
    /// (Q) Photographs of the full face and comparable images.
    Photographs,
    /// (R) Any other unique identifying number, characteristic or code.
    OtherIdentifiers,
}

impl SafeHarborCategory {
    /// All categories, in the order of the rule.
    pub const ALL: [Self; 18] = [
        Self::Names,
        Self::GeographicSubdivisions,
        Self::Dates,
        Self::TelephoneNumbers,
        Self::FaxNumbers,
        Self::EmailAddresses,
        Self::SocialSecurityNumbers,
        Self::MedicalRecordNumbers,
        Self::HealthPlanBeneficiaryNumbers,
        Self::AccountNumbers,
        Self::CertificateNumbers,
        Self::VehicleIdentifiers,
        Self::DeviceIdentifiers,
        Self::Urls,
        Self::IpAddresses,
        Self::BiometricIdentifiers,
        Self::Photographs,
        Self::OtherIdentifiers,
    ];

    /// The letter in the rule, from `A` to `R`.
    pub fn letter(self) -> char {
        char::from(b'A' + self as u8)
    }

    /// A short title of what the rule lists.
    pub fn title(self) -> &'static str {
        match self {
            Self::Names => "names",
            Self::GeographicSubdivisions => "geographic subdivisions smaller than a state",
            Self::Dates => "elements of dates but the year, and ages over 89",
            Self::TelephoneNumbers => "telephone numbers",
            Self::FaxNumbers => "fax numbers",
            Self::EmailAddresses => "e-mail addresses",
            Self::SocialSecurityNumbers => "social security numbers",
            Self::MedicalRecordNumbers => "medical record numbers",
            Self::HealthPlanBeneficiaryNumbers => "health plan beneficiary numbers",
            Self::AccountNumbers => "account numbers",
            Self::CertificateNumbers => "certificate and license numbers",
            Self::VehicleIdentifiers => "vehicle identifiers and license plates",
            Self::DeviceIdentifiers => "device identifiers and serial numbers",
            Self::Urls => "web addresses (URLs)",
            Self::IpAddresses => "IP addresses",
            Self::BiometricIdentifiers => "biometric identifiers",
            Self::Photographs => "full-face photographs",
            Self::OtherIdentifiers => "other unique identifying numbers and codes",
        }
    }

    /// The category that follows from the column name alone; `None` for other names.
    ///
    /// ```
    /// use pais_core::safe_harbor::SafeHarborCategory;
    ///
    /// let of = SafeHarborCategory::of_name;
    /// assert_eq!(of("home_phone"), Some(SafeHarborCategory::TelephoneNumbers));
    /// assert_eq!(of("hospital name"), None);
    /// ```
    pub fn of_name(name: &str) -> Option<Self> {
        let words = words(name);
        let has = |list| words.iter().any(|word| is_in(list, word));
        if has(TIME_SPANS) {
            return None;
        }
        // `ip` alone is often an inpatient stay.
        let is_ip = words.iter().all(|word| is_in("ip addr address", word)) && has("ip");
        if is_ip {
            return Some(Self::IpAddresses);
        }
        let found = NAMED.iter().find(|(_, list)| has(list));
        let is_of_others = has(OTHERS);
        if let Some((category, _)) = found {
            // The place of a hospital indicates where its patients live.
            let is_place = *category == Self::GeographicSubdivisions;
            return (!is_of_others || is_place).then_some(*category);
        }
        let is_name = |word: &String| matches!(word.as_str(), "name" | "names");
        let is_of_person = words
            .iter()
            .all(|word| is_name(word) || is_in(WITH_NAME, word));
        if words.iter().any(is_name) && is_of_person {
            return Some(Self::Names);
        }
        let is_key = has(KEY) || words.last().is_some_and(|word| is_in(NUMBER, word));
        if !is_key || is_of_others {
            return None;
        }
        if has(RECORD) {
            return Some(Self::MedicalRecordNumbers);
        }
        if has(BENEFICIARY) {
            return Some(Self::HealthPlanBeneficiaryNumbers);
        }
        has(ACCOUNT).then_some(Self::AccountNumbers)
    }

    /// The category of a column as declared; `None` if it has none.
    ///
    /// An identifier or a subject whose name says nothing is [`Self::OtherIdentifiers`], and a column
    /// of dates is [`Self::Dates`], whatever its name is.
    pub fn of_column(
        name: &str,
        role: ColumnRole,
        kind: ColumnKind,
        made: Option<&GeneratedHierarchy>,
    ) -> Option<Self> {
        if let Some(category) = Self::of_name(name) {
            return Some(category);
        }
        let is_of_dates = matches!(
            made,
            Some(GeneratedHierarchy::Calendar { .. } | GeneratedHierarchy::Age { .. })
        );
        if kind.is_of_dates() || is_of_dates {
            return Some(Self::Dates);
        }
        let is_key = matches!(role, ColumnRole::Identifier | ColumnRole::Subject);
        is_key.then_some(Self::OtherIdentifiers)
    }
}

impl SchemaColumn {
    /// The category of Safe Harbor that the column probably is; see [`SafeHarborCategory::of_column`].
    pub fn safe_harbor(&self) -> Option<SafeHarborCategory> {
        SafeHarborCategory::of_column(&self.name, self.role, self.kind, self.made.as_ref())
    }

    /// Whether the name of the column means ages, or its ages are computed from dates.
    pub fn is_of_ages(&self) -> bool {
        let is_made = matches!(self.made, Some(GeneratedHierarchy::Age { .. }));
        is_made || words(&self.name).iter().any(|word| is_in(AGE, word))
    }

    /// Whether the name of the column means postal codes.
    pub fn is_of_postal_codes(&self) -> bool {
        words(&self.name)
            .iter()
            .any(|word| is_in(POSTAL_CODE, word))
    }
}

/// Words that determine a category by themselves. The first such word of a name decides: an e-mail address is
/// not a street address.
const NAMED: [(SafeHarborCategory, &str); 14] = [
    (
        SafeHarborCategory::EmailAddresses,
        "email mail emailaddress",
    ),
    (SafeHarborCategory::IpAddresses, "ipaddress ipv4 ipv6"),
    (SafeHarborCategory::Urls, "url uri website homepage weblink"),
    (SafeHarborCategory::FaxNumbers, "fax faxnumber telefax"),
    (
        SafeHarborCategory::TelephoneNumbers,
        "phone telephone tel mobile handy telefon phonenumber cellphone",
    ),
    (
        SafeHarborCategory::SocialSecurityNumbers,
        "ssn socialsecurity ahv nino sozialversicherungsnummer",
    ),
    (
        SafeHarborCategory::VehicleIdentifiers,
        "vin plate licenseplate kennzeichen vehicle",
    ),
    (
        SafeHarborCategory::CertificateNumbers,
        "license licence driver drivers passport certificate iban steuernummer",
    ),
    (
        SafeHarborCategory::BiometricIdentifiers,
        "fingerprint voiceprint iris biometric",
    ),
    (SafeHarborCategory::Photographs, "photo photograph portrait"),
    (
        SafeHarborCategory::DeviceIdentifiers,
        "udi serial serialnumber deviceid imei",
    ),
    (
        SafeHarborCategory::Names,
        "surname lastname firstname forename givenname familyname middlename maidenname nachname \
         vorname fullname maiden signature username login",
    ),
    (
        SafeHarborCategory::GeographicSubdivisions,
        "address adresse anschrift street strasse city town village ort wohnort county zip zipcode \
         postal postcode postleitzahl plz lat lon lng latitude longitude fips tract geocode \
         birthplace municipality gemeinde landkreis parish borough district precinct puma \
         neighborhood neighbourhood zcta",
    ),
    (
        SafeHarborCategory::Dates,
        "date datum dob birth birthday birthdate born geburtsdatum geburtsjahr geburtsmonat \
         geburtstag geb gebdat gebdatum gebjahr gebmonat gebtag yob age ages alter agegroup timestamp",
    ),
];

/// Words of time spans and of measures of newborns, in which a word of a date means no date.
const TIME_SPANS: &str = "weight length rate order rank outcome outcomes defect interval duration";

/// The words of dates that mean an age.
const AGE: &str = "age ages alter agegroup";

/// The words of places that mean a postal code.
const POSTAL_CODE: &str = "zip zipcode postal postcode postleitzahl plz zcta";

/// Words next to `name` that make it a person's name.
const WITH_NAME: &str = "\
    first last full given family middle maiden patient person sur member customer user subject \
    contact own birth the fake";

/// Words of keys.
const KEY: &str = "\
    id ids mrn pid key uuid guid nhs identifier pseudonym patid patnr patientid personid subjectid \
    patientennummer patientennr fallnummer fallnr kvnr versnr versichertennummer versichertennr \
    versicherungsnummer";

/// Words with which the name of a number ends.
const NUMBER: &str = "nr nbr no num number nummer";

/// Words that make a key that of a medical record.
const RECORD: &str = "\
    patient patienten mrn pid patid patnr nhs patientid patientennummer patientennr subject subjectid person personid \
    record medical chart case";

/// Words that make a key that of a health plan.
const BENEFICIARY: &str = "\
    beneficiary bene member enrollee policy insurance plan kvnr vers versnr versicherten \
    versichertennummer versichertennr versicherungsnummer medicaid medicare";

/// Words that make a key that of an account.
const ACCOUNT: &str = "account konto billing invoice encounter visit admission claim stay hadm fall fallnummer fallnr";

/// Words of names and numbers that are not a patient's.
const OTHERS: &str = "\
    hospital provider prvdr physician physn doctor clinic facility drug medication payer payor \
    company organization file column test study product procedure disease diagnosis npi upin lanr code";

#[cfg(test)]
mod tests {
    use super::SafeHarborCategory as Category;
    use crate::definition::{ColumnDefinition, ColumnKind, ColumnRole, GeneratedHierarchy};
    use crate::schema::Schema;

    #[test]
    fn names_of_columns_say_categories() {
        for (name, category) in [
            ("LastName", Some(Category::Names)),
            ("patient name", Some(Category::Names)),
            ("MAIDEN", Some(Category::Names)),
            ("hospital name", None),
            ("drug_name", None),
            ("ZIP", Some(Category::GeographicSubdivisions)),
            ("Hospital County", Some(Category::GeographicSubdivisions)),
            ("e-mail", Some(Category::EmailAddresses)),
            ("email address", Some(Category::EmailAddresses)),
            ("IP address", Some(Category::IpAddresses)),
            ("BENE_IP_DDCTBL_AMT", None),
            ("state", None),
            ("BIRTHDATE", Some(Category::Dates)),
            ("Age", Some(Category::Dates)),
            ("birth weight", None),
            ("home_phone", Some(Category::TelephoneNumbers)),
            ("FAX", Some(Category::FaxNumbers)),
            ("SSN", Some(Category::SocialSecurityNumbers)),
            ("patient_nbr", Some(Category::MedicalRecordNumbers)),
            ("MRN", Some(Category::MedicalRecordNumbers)),
            ("member_id", Some(Category::HealthPlanBeneficiaryNumbers)),
            ("encounter_id", Some(Category::AccountNumbers)),
            ("KVNR", Some(Category::HealthPlanBeneficiaryNumbers)),
            ("Vers-Nr", Some(Category::HealthPlanBeneficiaryNumbers)),
            ("Fall-Nr", Some(Category::AccountNumbers)),
            ("Straße", Some(Category::GeographicSubdivisions)),
            ("GebMonat", Some(Category::Dates)),
            ("LANR", None),
            ("provider_id", None),
            ("DRIVERS", Some(Category::CertificateNumbers)),
            ("license plate", Some(Category::VehicleIdentifiers)),
            ("serial", Some(Category::DeviceIdentifiers)),
            ("website", Some(Category::Urls)),
            ("fingerprint", Some(Category::BiometricIdentifiers)),
            ("photo", Some(Category::Photographs)),
            ("number_of_visits", None),
            ("diagnosis", None),
            ("sex", None),
        ] {
            assert_eq!(Category::of_name(name), category, "{name}");
        }
    }

    #[test]
    fn a_declared_column_has_the_category_of_its_role_and_kind() {
        let calendar = GeneratedHierarchy::Calendar { levels: None };
        let of = Category::of_column;
        let (label, known) = (ColumnKind::Categorical, ColumnRole::QuasiIdentifier);
        assert_eq!(of("x", known, label, None), None);
        assert_eq!(
            of("x", known, ColumnKind::Date, None),
            Some(Category::Dates)
        );
        assert_eq!(
            of("x", known, label, Some(&calendar)),
            Some(Category::Dates)
        );
        let key = ColumnRole::Identifier;
        assert_eq!(of("x", key, label, None), Some(Category::OtherIdentifiers));
        assert_eq!(
            of("ssn", key, label, None),
            Some(Category::SocialSecurityNumbers)
        );
        let schema = Schema::builder()
            .column(ColumnDefinition::new("MRN", ColumnRole::Subject))
            .column(ColumnDefinition::quasi_identifier("sex"))
            .build()
            .unwrap();
        let found = schema.columns.iter().map(|column| column.safe_harbor());
        assert!(found.eq([Some(Category::MedicalRecordNumbers), None]));
    }

    #[test]
    fn the_categories_are_those_of_the_rule_in_its_order() {
        let letters: String = Category::ALL.iter().map(|it| it.letter()).collect();
        assert_eq!(letters, "ABCDEFGHIJKLMNOPQR");
    }
}
