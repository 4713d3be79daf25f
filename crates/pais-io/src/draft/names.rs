//! What the name of a column says about it, in English and in German.

use pais_core::column_name::{is_in, words};

/// What a column is about, by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NameMeaning {
    /// Names or reaches a person: a name, an address, a telephone number.
    pub(super) is_direct: bool,
    /// A key of something.
    pub(super) is_key: bool,
    /// A number of something, which can be a key or a count.
    pub(super) is_number: bool,
    /// The something is a person.
    pub(super) is_person: bool,
    /// Nothing but a person: `patient`.
    pub(super) is_person_alone: bool,
    /// What other people know about a person.
    pub(super) is_known: bool,
    /// What nobody should learn about a person.
    pub(super) is_sensitive: bool,
    /// A diagnosis, often a code of ICD.
    pub(super) is_diagnosis: bool,
    /// A postal code.
    pub(super) is_postal: bool,
    /// A date or time.
    pub(super) is_date: bool,
    /// A code or type, whose numbers are labels.
    pub(super) is_code: bool,
}

const DIRECT: &str = "\
    email mail phone telephone tel mobile fax ssn passport iban surname lastname firstname \
    forename fullname givenname familyname middlename maidenname nachname vorname telefon \
    handy address adresse anschrift street strasse ip url username login licence license \
    signature photo fingerprint steuernummer";

/// Words beside `name` with which it is a person's.
const NAMED: &str = "\
    first last full given family middle maiden patient person sur member customer user \
    subject contact own birth the";

const KEY: &str = "\
    id ids mrn pid key uuid guid nhs identifier pseudonym patid patnr recordid patientid \
    personid subjectid caseid fallnummer patientennummer rownumber";

/// Words with which the name of a key can end. Counts begin with them: `number_of_visits`.
const NUMBER: &str = "nr nbr no num number nummer index row";

const PERSON: &str = "\
    patient patients person subject member participant mrn pid patid patnr nhs pat customer \
    donor recipient resident proband pseudonym patientid personid subjectid patientennummer \
    enrollee beneficiary";

const KNOWN: &str = "\
    age alter sex gender geschlecht birth birthday birthdate dob born geburtsdatum \
    geburtsjahr geburtstag city town village ort wohnort stadt state county country land \
    region district province canton kanton bundesland municipality nationality nation native \
    citizenship race ethnicity ethnic marital marriage married familienstand civil \
    relationship children household job occupation profession beruf employer employment \
    workclass work education school degree bildung language religion hospital clinic ward \
    department station admission admitted discharge discharged visit deceased death died \
    height groesse weight gewicht insurance payer versicherung blood smoker hours veteran \
    year jahr hand eye hair";

const POSTAL: &str = "zip zipcode postal postcode postleitzahl plz";

const SENSITIVE: &str = "\
    disease diseases condition conditions hiv aids result results treatment treatments \
    therapy surgery procedure procedures operation ops medication medications drug drugs \
    prescription symptom symptoms cancer tumor tumour morphology topography comorbidity \
    illness krankheit therapie medikament befund income salary einkommen sexual orientation \
    abortion psychiatric mental genotype mutation transfusion alcohol addiction outcome \
    complication complications infection allergy allergies";

const DIAGNOSIS: &str = "diagnosis diagnoses diag dx diagnose icd icd9 icd10";

const DATE: &str = "date datum day time timestamp dob at";

const CODE: &str = "code type class category group level flag status source";

impl NameMeaning {
    /// The meaning of a column's name.
    pub(super) fn of(name: &str) -> Self {
        let words = words(name);
        let has = |list| words.iter().any(|word| is_in(list, word));
        let is_named = words.iter().any(|word| word == "name" || word == "names")
            && words
                .iter()
                .all(|word| matches!(word.as_str(), "name" | "names") || is_in(NAMED, word));
        // A digit at the end counts columns: `diag_1`, `diag2`.
        let starts = |word: &String| {
            let stem = word.trim_end_matches(|it: char| it.is_ascii_digit());
            is_in(DIAGNOSIS, stem)
        };
        let is_number = words.last().is_some_and(|word| is_in(NUMBER, word));
        let is_person = has(PERSON);
        let is_diagnosis = has(DIAGNOSIS) || words.iter().any(starts);
        Self {
            is_direct: is_named || has(DIRECT),
            is_key: has(KEY) || (is_number && is_person),
            is_person_alone: words.iter().all(|word| is_in(PERSON, word)) && is_person,
            is_number,
            is_person,
            is_known: has(KNOWN),
            is_sensitive: is_diagnosis || has(SENSITIVE),
            is_diagnosis,
            is_postal: has(POSTAL),
            is_date: has(DATE),
            is_code: has(CODE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::NameMeaning;

    #[test]
    fn names_say_what_a_column_is_about() {
        let of = NameMeaning::of;
        for name in [
            "name",
            "Last Name",
            "email",
            "home_phone",
            "patientName",
            "Vorname",
            "SSN",
        ] {
            assert!(of(name).is_direct, "{name}");
        }
        for name in ["drug_name", "hospital name", "sex", "age", "filename2"] {
            assert!(!of(name).is_direct, "{name}");
        }
        assert!(of("patient_nbr").is_key && of("patient_nbr").is_person);
        assert!(of("MRN").is_key && of("MRN").is_person);
        assert!(of("Patient").is_person_alone && !of("patient_age").is_person_alone);
        assert!(of("encounter_id").is_key && !of("encounter_id").is_person);
        assert!(of("case_number").is_number && !of("case_number").is_key);
        assert!(!of("num_procedures").is_number && !of("num_procedures").is_key);
        for name in [
            "Age",
            "birth_year",
            "native-country",
            "Geburtsdatum",
            "marital",
            "Job",
        ] {
            assert!(of(name).is_known, "{name}");
        }
        for name in [
            "diag_1",
            "diag2",
            "ICD10",
            "Diagnosis",
            "hivStatus",
            "Surgery",
        ] {
            assert!(of(name).is_sensitive, "{name}");
        }
        assert!(of("diag_3").is_diagnosis && !of("hiv").is_diagnosis);
        assert!(of("ZIP").is_postal && of("plz").is_postal);
        assert_eq!(of("fnlwgt"), NameMeaning::default());
    }
}
