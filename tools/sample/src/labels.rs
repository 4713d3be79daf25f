//! The taxonomies of the samples, and how their leaves are drawn.

use std::fmt;

use serde_json::{Value, json};

use super::draw::Draw;

/// The label of a group of leaves, which is written `label: leaf, leaf`, and its leaves.
fn parts(group: &'static str) -> (&'static str, Vec<&'static str>) {
    let (label, leaves) = group.split_once(": ").unwrap_or((group, ""));
    (label, leaves.split(", ").collect())
}

/// A taxonomy with two levels below its root.
fn tree(root: &str, groups: &[&'static str]) -> Value {
    json!({ "label": root, "children": groups.iter().map(|it| group(it)).collect::<Vec<_>>() })
}

fn group(group: &'static str) -> Value {
    let (label, leaves) = parts(group);
    let leaves: Vec<Value> = leaves.iter().map(|leaf| json!({ "label": leaf })).collect();
    json!({ "label": label, "children": leaves })
}

/// Draws a leaf of a group; the first ones are the most frequent.
fn leaf(group: &'static str, draw: &mut Draw) -> &'static str {
    let (_, leaves) = parts(group);
    leaves[draw.skewed(leaves.len())]
}

const COUNTRIES: [&str; 5] = [
    "Europe: Austria, France, Germany, Italy, Poland, Spain, Switzerland",
    "South Asia: Bangladesh, India, Nepal, Pakistan, Sri Lanka",
    "Africa: Eritrea, Ghana, Kenya, Morocco, Nigeria",
    "East Asia: China, Japan, Philippines, Thailand, Vietnam",
    "Latin America: Brazil, Colombia, Mexico, Peru",
];

/// The taxonomy of origins.
pub(crate) fn origins() -> Value {
    let [europe, south_asia, africa, east_asia, latin_america] = COUNTRIES.map(group);
    json!({ "label": "Anywhere", "children": [
        europe,
        { "label": "Asia", "children": [south_asia, east_asia] },
        { "label": "Africa and America", "children": [africa, latin_america] },
    ] })
}

/// Draws a country of a region.
pub(crate) fn country(region: &str, draw: &mut Draw) -> &'static str {
    let found = COUNTRIES.iter().find(|group| parts(group).0 == region);
    leaf(found.unwrap_or(&COUNTRIES[0]), draw)
}

const JOBS: [&str; 5] = [
    "Industry: Carpenter, Electrician, Mechanic, Welder",
    "Services: Cook, Driver, Janitor, Salesperson, Waiter",
    "Office: Accountant, Clerk, Manager, Programmer",
    "Learned: Doctor, Engineer, Lawyer, Nurse, Teacher",
    "Not at work: Child, Home-maker, Pupil, Retired, Unemployed",
];

/// The taxonomy of jobs.
pub(crate) fn jobs() -> Value {
    tree("Any job", &JOBS)
}

/// Draws a job that is plausible for an age.
pub(crate) fn job(age: f64, draw: &mut Draw) -> &'static str {
    match age {
        ..6.0 => "Child",
        ..18.0 => "Pupil",
        66.0.. => "Retired",
        _ => {
            let jobs = JOBS[draw.weighted(&[20.0, 28.0, 24.0, 18.0, 0.0])];
            if draw.chance(0.1) {
                return ["Home-maker", "Unemployed"][draw.below(2)];
            }
            leaf(jobs, draw)
        }
    }
}

/// The taxonomy of education.
pub(crate) fn educations() -> Value {
    tree(
        "Any education",
        &[
            "School: None, Primary, Secondary",
            "Further: Vocational, Bachelor, Master, Doctorate",
        ],
    )
}

/// Draws an education that is plausible for an age.
pub(crate) fn education(age: f64, draw: &mut Draw) -> &'static str {
    match age {
        ..6.0 => "None",
        ..16.0 => "Primary",
        _ => [
            "Secondary",
            "Vocational",
            "Bachelor",
            "Master",
            "Doctorate",
            "Primary",
        ][draw.weighted(&[35.0, 30.0, 15.0, 10.0, 2.0, 8.0])],
    }
}

/// The taxonomy of marital status.
pub(crate) fn marital_statuses() -> Value {
    tree(
        "Any status",
        &[
            "Together: Married, Registered partner",
            "Alone: Never married, Divorced, Separated, Widowed",
        ],
    )
}

/// Draws a marital status that is plausible for an age.
pub(crate) fn marital(age: f64, draw: &mut Draw) -> &'static str {
    if age < 20.0 {
        return "Never married";
    }
    [
        "Married",
        "Never married",
        "Divorced",
        "Widowed",
        "Registered partner",
        "Separated",
    ][draw.weighted(&[
        45.0,
        (70.0 - age).max(2.0),
        12.0,
        (age - 50.0).max(0.5),
        4.0,
        3.0,
    ])]
}

const HOSPITALS: [&str; 4] = [
    "North: N1, N2, N3",
    "East: E1, E2, E3, E4",
    "South: S1, S2",
    "West: W1, W2, W3, W4, W5",
];

/// The taxonomy of hospitals, by cluster.
pub(crate) fn hospitals() -> Value {
    tree("Any hospital", &HOSPITALS)
}

/// Draws a hospital, mostly one near the district.
pub(crate) fn hospital(district: usize, draw: &mut Draw) -> &'static str {
    let cluster = if draw.chance(0.85) {
        district % 4
    } else {
        draw.below(4)
    };
    leaf(HOSPITALS[cluster], draw)
}

/// Number of districts.
pub(crate) const DISTRICTS: usize = 48;

const CLUSTERS: [&str; 4] = ["Northern", "Eastern", "Southern", "Western"];

/// The taxonomy of districts, by part of the country and region.
pub(crate) fn districts() -> Value {
    let part = |part: usize| {
        let region = |region: usize| {
            let inside =
                (0..DISTRICTS).filter(|number| number % 4 == part && number / 16 == region);
            let leaves: Vec<Value> = inside
                .map(|number| json!({ "label": district(number) }))
                .collect();
            json!({ "label": format!("{} region {}", CLUSTERS[part], region + 1), "children": leaves })
        };
        json!({ "label": CLUSTERS[part], "children": (0..3).map(region).collect::<Vec<_>>() })
    };
    json!({ "label": "Anywhere", "children": (0..4).map(part).collect::<Vec<_>>() })
}

/// The label of a district.
pub(crate) fn district(number: usize) -> String {
    format!("District {:02}", number + 1)
}

const WARDS: [&str; 4] = [
    "Surgical: Cardiac surgery, General surgery, Orthopaedics, Transplantation, Trauma care",
    "Medical: Gastroenterology, General medicine, Nephrology",
    "Oncological: Haematology, Oncology",
    "Other: Burns unit, Maternity",
];

/// The taxonomy of wards.
pub(crate) fn wards() -> Value {
    tree("Any ward", &WARDS)
}

/// Draws a ward: the usual one for the diagnosis, or one of the two large ones.
pub(crate) fn ward(usual: &'static str, draw: &mut Draw) -> &'static str {
    if draw.chance(0.5) {
        return usual;
    }
    ["General medicine", "General surgery"][draw.below(2)]
}

/// A day within two years. Each month has 28 days.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Date(usize);

const DAYS: usize = 2 * 12 * 28;

impl Date {
    /// Draws a day.
    pub(crate) fn drawn(draw: &mut Draw) -> Self {
        Self(draw.below(DAYS))
    }

    /// The day `days` days later, or the last day if that is earlier.
    pub(crate) fn later(self, days: usize) -> Self {
        Self((self.0 + days).min(DAYS - 1))
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (month, day) = (self.0 / 28, self.0 % 28);
        write!(
            f,
            "{}-{:02}-{:02}",
            2024 + month / 12,
            month % 12 + 1,
            day + 1
        )
    }
}

/// The taxonomy of days, by month, quarter and year.
pub(crate) fn days() -> Value {
    let month = |month: usize| {
        let days: Vec<Value> = (0..28)
            .map(|day| json!({ "label": Date(month * 28 + day).to_string() }))
            .collect();
        json!({ "label": format!("{}-{:02}", 2024 + month / 12, month % 12 + 1), "children": days })
    };
    let quarter = |quarter: usize| {
        let months: Vec<Value> = (quarter * 3..quarter * 3 + 3).map(month).collect();
        json!({ "label": format!("{} Q{}", 2024 + quarter / 4, quarter % 4 + 1), "children": months })
    };
    let year = |year: usize| {
        let quarters: Vec<Value> = (year * 4..year * 4 + 4).map(quarter).collect();
        json!({ "label": (2024 + year).to_string(), "children": quarters })
    };
    json!({ "label": "Any day", "children": (0..2).map(year).collect::<Vec<_>>() })
}
