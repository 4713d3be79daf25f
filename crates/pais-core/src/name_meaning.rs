//! What the name of a column says about it, in English and in German.

use crate::column_name::{is_in, words};

/// What a column is about, by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NameMeaning {
    /// Identifies or contacts a person: a name, an address, a telephone number, the number of a physician.
    pub is_direct: bool,
    /// A key of something.
    pub is_key: bool,
    /// A key of something, if its values look like keys: the name is one word that ends with `id`.
    pub is_key_at_end: bool,
    /// A number of something, which can be a key.
    pub is_number: bool,
    /// A number of things, or an amount.
    pub is_count: bool,
    /// The something is a person.
    pub is_person: bool,
    /// Only a person: `patient`.
    pub is_person_alone: bool,
    /// The something is a stay, an order or another thing that a person has several of.
    pub is_event: bool,
    /// The something is a stay or case of a person.
    pub is_stay: bool,
    /// Only a stay: `Fall`.
    pub is_stay_alone: bool,
    /// What other people know about a person.
    pub is_known: bool,
    /// An age.
    pub is_age: bool,
    /// A year.
    pub is_year: bool,
    /// Income, which neighbours can guess.
    pub is_income: bool,
    /// What nobody should learn about a person.
    pub is_sensitive: bool,
    /// A diagnosis, often a code of ICD.
    pub is_diagnosis: bool,
    /// A group of stays or diagnoses, such as a DRG, which is no code of ICD.
    pub is_group_of_cases: bool,
    /// A procedure, often a code.
    pub is_procedure: bool,
    /// What happened in the end, which analysts predict.
    pub is_outcome: bool,
    /// A status or result, which can be the outcome.
    pub is_result: bool,
    /// A postal code.
    pub is_postal: bool,
    /// A date or time.
    pub is_date: bool,
    /// A date, and no other time.
    pub is_day: bool,
    /// A code or type, whose numbers are labels.
    pub is_code: bool,
    /// The text of a code.
    pub is_description: bool,
}

/// What the name of an identifier column says about whether it is a key of persons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyName {
    /// It is.
    Person,
    /// It is none: its values are shared by persons, as names, addresses, wards and dates are.
    Other,
    /// Only the values can tell.
    Unknown,
}

impl KeyName {
    /// Of a column with this name.
    pub fn of(name: &str) -> Self {
        let name = NameMeaning::of(name);
        if name.is_direct || name.is_shared() {
            Self::Other
        } else if name.is_person && (name.is_key || name.is_person_alone) {
            Self::Person
        } else {
            Self::Unknown
        }
    }
}

/// Names such as `patient`, `mobile` and `visit_no` are also those of columns of kinds and counts, which have few
/// values.
const FEW_VALUES: u64 = 12;

const DIRECT: &str = "\
    email mail phone telephone tel mobile fax ssn passport iban surname lastname firstname \
    forename fullname givenname familyname middlename maidenname nachname vorname telefon \
    handy address adresse anschrift street strasse ipaddress url username login licence license drivers \
    signature photo fingerprint steuernummer npi upin lanr arztnummer arztnr lat lon latitude longitude \
    maiden geburtsname";

/// Words that are a name of a person where a column is called nothing else.
const NAME_ALONE: &str = "first last middle maiden surname";

/// Words next to `name` that make it a person's name.
const NAMED: &str = "\
    first last full given family middle maiden patient person sur member customer user \
    subject contact own birth the fake";

const KEY: &str = "\
    id ids mrn pid key uuid guid nhs identifier pseudonym patid patnr recordid patientid \
    personid subjectid caseid fallnummer fallnr aufnahmenummer aufnahmenr patientennummer patientennr \
    kvnr versnr versichertennummer versichertennr versicherungsnummer rownumber seqn respid pidnum upid";

/// Words with which the name of a key can end. Counts begin with them: `number_of_visits`.
const NUMBER: &str = "nr nbr no num number nummer index row seq sequence";

/// Words of counts and amounts.
const COUNT: &str = "\
    n num number count counts cnt total times sum days hours hrs minutes visits amount amt charge \
    charges totchg cost costs price fee payment paid coverage expense expenses reimbursement anzahl \
    betrag kosten";

const PERSON: &str = "\
    patient patients person subject member participant mrn pid patid patnr nhs pat customer \
    donor recipient resident proband pseudonym patientid personid subjectid patientennummer \
    patientennr patienten patientin kvnr vers versnr versicherte versicherten versicherter \
    versichertennummer versichertennr versicherungsnummer enrollee beneficiary bene respondent upid";

const EVENT: &str = "\
    claim clm order event record row test sample specimen appointment transaction prescription \
    line stage instance provider organization payer facility hospital";

/// Words of a stay or case of a person, who can have several.
const STAY: &str = "\
    encounter visit stay hadm admission case caseid episode fall fallnummer fallnr aufnahme \
    aufnahmenummer aufnahmenr";

const KNOWN: &str = "\
    sexe gender geschlecht female male birth birthday birthdate birthmonth dob born geb gebdat \
    gebdatum gebjahr gebmonat gebtag birthplace city town village ort wohnort stadt state county country \
    land region district province canton kanton bundesland municipality nationality nation native \
    citizen citizenship race ethnicity ethnic hispanic latino white black asian caucasian origin \
    marital marriage married familienstand civil relationship spouse children household housing \
    home family job occupation profession beruf employer employment employed workclass work \
    working education educ edu school degree bildung language lang religion hospital clinic ward \
    room bed zimmer bett klinik krankenhaus abteilung fachabteilung kostenstelle department station facility provider prvdr specialty site admission admitted discharge \
    discharged disposition stay los deceased height groesse koerpergroesse ht weight gewicht \
    koerpergewicht wt bmi insurance payer \
    payor payment versicherung smoker hours veteran hand eye hair pregnant gestation gestational \
    ssw schwangerschaftswoche babies area urban rural location place medicaid medicare month monat \
    kw kalenderwoche";

/// Beginnings of words that other people know about a person.
const KNOWN_STARTS: [&str; 19] = [
    "marital",
    "ethnic",
    "nationa",
    "citizen",
    "occupat",
    "employ",
    "beschaeftig",
    "educat",
    "relig",
    "discharg",
    "hospital",
    "gender",
    "pregnan",
    "geburts",
    "insuranc",
    "admit",
    "admiss",
    "racecat",
    "racegr",
];

const AGE: &str = "age ages alter agegroup agegrp agecat agep agedecade";

const YEAR: &str = "year jahr yr yob birthyear geburtsjahr gebjahr ayear";

const INCOME: &str = "income salary wage wages earnings einkommen gehalt poverty";

const POSTAL: &str = "zip zipcode postal postcode postleitzahl plz zcta";

const SENSITIVE: &str = "\
    disease diseases condition conditions hiv aids result results treatment treatments \
    therapy surgery medication medications drug drugs \
    prescription symptom symptoms cancer tumor tumour morphology topography comorbidity \
    illness krankheit therapie medikament befund orientation \
    abortion psychiatric mental genotype mutation transfusion alcohol addiction outcome \
    complication complications infection allergy allergies disability disabled diabetes \
    depressed depression marijuana cocaine heroin suicide";

/// Beginnings of words that nobody should learn about a person.
const SENSITIVE_STARTS: [&str; 7] = [
    "sexual",
    "abort",
    "psych",
    "depress",
    "marij",
    "suicid",
    "complaint",
];

/// Words next to `sex` that make it the sex that other people see.
const SEEN_SEX: &str =
    "sex patient person member code cd ident birth legal at bene group male female";

const DIAGNOSIS: &str = "\
    diagnosis diagnoses diag dx diagnose icd dgns drg ccs ccsr mdc snomed reason reasoncode \
    reasondescription complaint chiefcomplaint";

const PROCEDURE: &str = "procedure procedures prcdr proc cpt hcpcs pcs operation ops";

const OUTCOME: &str = "\
    death dead died mortality deceased expire expired survive survived survival readmitted \
    readmission readmit";

/// Words of an outcome if nothing else is known about it: a working class is not one.
const TARGET: &str = "outcome target class label";

const RESULT: &str = "status result response risk";

const DATE: &str = "date datum day time timestamp dob at dt";

const DAY: &str =
    "date datum dob dt dttm timestamp birthday birthdate geburtsdatum gebdat gebdatum";

/// Ends of words that are keys of persons.
const PERSON_KEYS: [&str; 5] = ["pid", "patid", "patientid", "personid", "subjectid"];

/// Words that end like a key but are not keys.
const NO_KEY: &str = "\
    covid acid fluid lipid steroid thyroid opioid amyloid sarcoid rapid solid valid avoid carotid \
    typhoid rheumatoid paid";

const CODE: &str = "\
    code codes cd type class category cat group level flag status source icd drg ccs ccsr mdc cpt \
    hcpcs ndc loinc fips snomed reasoncode";

const DESCRIPTION: &str = "\
    description desc descr name text label title reasondescription bezeichnung";

impl NameMeaning {
    /// The meaning of a column's name. A digit at the end of a word counts columns: `diag_1`, `Race2`.
    pub fn of(name: &str) -> Self {
        let whole = words(name);
        let stem = |word: &String| {
            let stem = word.trim_end_matches(|it: char| it.is_ascii_digit());
            let is_number = stem.is_empty();
            (if is_number { word.as_str() } else { stem }).to_owned()
        };
        let words: Vec<String> = whole.iter().map(stem).collect();
        let has = |list: &str| words.iter().any(|word| is_in(list, word));
        let all = |list: &str| !words.is_empty() && words.iter().all(|word| is_in(list, word));
        let begins = |starts: &[&str]| {
            let mut words = words.iter();
            words.any(|word| starts.iter().any(|start| word.starts_with(start)))
        };
        let ends = |end: &str| words.iter().any(|word| word.ends_with(end));
        let is_named = words.iter().any(|word| word == "name" || word == "names")
            && words
                .iter()
                .all(|word| matches!(word.as_str(), "name" | "names") || is_in(NAMED, word));
        let last = words.last();
        let is_alone = words.len() == 1;
        let is_number = last.is_some_and(|word| is_in(NUMBER, word)) && !(is_alone && has("num"));
        let is_key_of_persons = ends_with_any(last, &PERSON_KEYS) && !has(NO_KEY);
        let is_person = has(PERSON) || is_key_of_persons;
        let is_key_at_end =
            last.is_some_and(|word| word.len() > 4 && word.ends_with("id") && !is_in(NO_KEY, word));
        let has_sex = words.iter().any(|word| word == "sex");
        let is_seen_sex = has_sex && all(SEEN_SEX);
        let is_diagnosis = has(DIAGNOSIS) || begins(&["diag", "icd"]);
        let is_procedure = has(PROCEDURE);
        let is_age = has(AGE);
        let is_income = has(INCOME) || ends("income");
        let is_description = last.is_some_and(|word| is_in(DESCRIPTION, word));
        let is_known = has(KNOWN) || begins(&KNOWN_STARTS) || is_seen_sex || is_age || is_income;
        Self {
            is_direct: is_named || has(DIRECT) || all(NAME_ALONE) || all("ip"),
            is_key: has(KEY) || is_key_of_persons || (is_number && is_person),
            is_key_at_end,
            is_number,
            is_count: has(COUNT) && !is_number,
            is_person,
            is_person_alone: is_person && all(PERSON),
            is_event: has(EVENT) || has(STAY),
            is_stay: has(STAY),
            is_stay_alone: all(STAY),
            is_known,
            is_age,
            is_year: has(YEAR),
            is_income,
            is_sensitive: is_diagnosis
                || is_procedure
                || has(SENSITIVE)
                || begins(&SENSITIVE_STARTS)
                || (has_sex && !is_seen_sex),
            is_diagnosis,
            is_group_of_cases: has("drg ccs ccsr mdc"),
            is_procedure,
            is_outcome: has(OUTCOME) || (has(TARGET) && !is_known),
            is_result: has(RESULT) && is_alone,
            is_postal: has(POSTAL),
            is_date: has(DATE),
            is_day: has(DAY),
            is_code: has(CODE),
            is_description,
        }
    }

    /// Whether many persons have each value: what they are, and where or when something was.
    fn is_shared(self) -> bool {
        self.is_known || self.is_sensitive || self.is_postal || self.is_date || self.is_year
    }

    /// Whether the values of a column with this name identify persons: they name or reach one each, or are keys of
    /// persons or of their stays. `rows` rows have one of `distinct` values.
    pub fn identifies_persons(self, rows: u64, distinct: u64) -> bool {
        let has_many = distinct > FEW_VALUES || distinct.saturating_mul(2) >= rows;
        let is_key = self.is_key && (self.is_person || self.is_stay);
        let can_be_key = self.is_person_alone || (self.is_stay && self.is_number);
        let names_key = is_key || (can_be_key && has_many);
        let is_of_key = names_key && !self.is_shared() && !self.is_code;
        distinct > 1 && (is_of_key || (self.is_direct && has_many))
    }

    /// Whether it is a key of persons, and not of their stays.
    pub fn is_key_of_persons(self) -> bool {
        self.is_person && !self.is_stay && (self.is_key || self.is_person_alone)
    }
}

/// Whether a word ends with one of these.
fn ends_with_any(word: Option<&String>, ends: &[&str]) -> bool {
    word.is_some_and(|word| ends.iter().any(|end| word.ends_with(end)))
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
            "FIRST",
            "AT_PHYSN_NPI",
        ] {
            assert!(of(name).is_direct, "{name}");
        }
        for name in [
            "drug_name",
            "hospital name",
            "sex",
            "age",
            "filename2",
            "first_visit",
        ] {
            assert!(!of(name).is_direct, "{name}");
        }
        assert!(of("patient_nbr").is_key && of("patient_nbr").is_person);
        assert!(of("MRN").is_key && of("MRN").is_person);
        assert!(of("Patient").is_person_alone && !of("patient_age").is_person_alone);
        assert!(of("uniquepid").is_key && of("uniquepid").is_person);
        assert!(of("hospid").is_key_at_end && !of("covid").is_key_at_end);
        assert!(of("exam_date").is_day && !of("time").is_day);
        assert!(of("encounter_id").is_key && !of("encounter_id").is_person);
        assert!(of("case_number").is_number && !of("case_number").is_key);
        assert!(!of("num_procedures").is_number && !of("num_procedures").is_key);
        assert!(of("num_procedures").is_count && of("Total Charges").is_count);
        assert!(!of("case_number").is_count && !of("num").is_number);
        for name in [
            "Age",
            "birth_year",
            "native-country",
            "Geburtsdatum",
            "marital",
            "Job",
            "Race1",
            "HHIncome",
            "sex",
            "patient_sex",
            "maritalStatus",
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
            "SexOrientation",
            "CLM_DRG_CD",
        ] {
            assert!(of(name).is_sensitive, "{name}");
        }
        assert!(of("diag_3").is_diagnosis && !of("hiv").is_diagnosis);
        assert!(of("ICD9_PRCDR_CD_1").is_procedure);
        assert!(of("ZIP").is_postal && of("plz").is_postal);
        for name in [
            "GebMonat",
            "GebTag",
            "Geb-Jahr",
            "Geburtsmonat",
            "Geburtsort",
            "Körpergröße",
            "Ko\u{308}rpergewicht",
            "Beschäftigung",
            "Zimmer",
            "Kostenstelle",
            "Aufnahme-KW",
            "SSW",
            "BMI",
            "room",
        ] {
            assert!(of(name).is_known, "{name}");
            assert!(!of(name).is_key && !of(name).is_direct, "{name}");
        }
        for name in ["Gebiet", "Gebrauch", "Gebühr"] {
            assert!(!of(name).is_known, "{name}");
        }
        for name in ["LANR", "Straße", "Geburtsname"] {
            assert!(of(name).is_direct, "{name}");
        }
        for name in [
            "VersNr",
            "Vers-Nr",
            "KVNR",
            "Versichertennummer",
            "Versicherten-ID",
            "PatientenID",
        ] {
            assert!(of(name).is_key && of(name).is_person, "{name}");
        }
        for name in ["Fallnummer", "Fall-Nr", "AufnahmeNr", "visit_id", "stay"] {
            assert!(of(name).is_stay && !of(name).is_person, "{name}");
        }
        assert!(of("Fall").is_stay_alone && !of("Fallnummer 2 alt").is_stay_alone);
        assert!(of("readmitted").is_outcome && of("status").is_result);
        assert!(!of("marital_status").is_result);
        assert!(of("APR DRG Description").is_description && of("APR DRG Code").is_code);
        assert_eq!(of("fnlwgt"), NameMeaning::default());
    }

    #[test]
    fn names_of_keys_of_persons_and_their_stays_and_of_what_names_them_identify_persons() {
        let identifies = |name: &str| NameMeaning::of(name).identifies_persons(1_000, 500);
        for name in [
            "PatNr",
            "patient_id",
            "Fallnummer",
            "encounter_id",
            "MRN",
            "AHV_pseudonym",
            "Fall-Nr",
            "SSN",
            "Nachname",
            "e-mail",
            "Patient",
        ] {
            assert!(identifies(name), "{name}");
        }
        for name in [
            "patient_class",
            "patient_age",
            "number_of_patients",
            "admission_type_id",
            "ward_id",
            "device_id",
            "drug_name",
            "insurance",
            "lab value",
            "id",
        ] {
            assert!(!identifies(name), "{name}");
        }
        // One value says nothing, and of a few, each in many rows, none names a person.
        assert!(!NameMeaning::of("PatNr").identifies_persons(1_000, 1));
        assert!(NameMeaning::of("PatNr").identifies_persons(1_000, 2));
        assert!(!NameMeaning::of("mobile").identifies_persons(1_000, 3));
        assert!(!NameMeaning::of("visit_no").identifies_persons(1_000, 8));
        assert!(NameMeaning::of("surname").identifies_persons(6, 3));
    }

    /// What experts declare of the columns of public tables (`tests/data/drafts`).
    #[test]
    fn no_column_that_experts_release_identifies_persons_by_its_name() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/drafts");
        let mut columns = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if !path.to_string_lossy().ends_with(".roles.csv") {
                continue;
            }
            let roles = std::fs::read_to_string(&path).unwrap();
            for line in roles.lines().skip(1) {
                let (name, rest) = line.split_once(',').unwrap();
                let role = rest.split(',').next().unwrap();
                if !["identifier", "subject"].contains(&role) {
                    let is_found = NameMeaning::of(name).identifies_persons(1_000, 1_000);
                    assert!(!is_found, "{name} of {}", path.display());
                    columns += 1;
                }
            }
        }
        assert!(columns > 300, "{columns}");
    }
}
