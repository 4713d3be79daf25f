//! Expected results for the records of the 2014 paper: its Table 1 becomes its Table 2, and the
//! final state of its Table 3.

use serde_json::{Value, json};

/// A job on records with set-valued columns and its expected release.
pub struct RecordsRun {
    /// The body of `POST /v1/datasets`.
    pub schema: Value,
    /// The body of `POST /v1/jobs` without its dataset.
    pub job: Value,
    pub raw: &'static str,
    rows: &'static [&'static str],
    /// NCP of the released values, by column.
    ncp: &'static [(&'static str, f64)],
    /// The paper's NCP of the items of sets: what the holder sees, with two significant digits.
    item_loss: &'static [(&'static str, f64)],
}

const SETS: &str = "class,drugs\nA,a|b|z\nA,a|z\nB,c|x|y\nB,b|x|y\n";

/// The runs of Table 1, and of Table 3 with the class as a quasi-identifier and without it.
pub fn runs() -> [RecordsRun; 3] {
    let leaves = |labels: &[&str]| -> Vec<Value> {
        labels
            .iter()
            .map(|label| json!({ "label": label }))
            .collect()
    };
    let decade = |decade: u32| {
        let years = (decade..decade + 10).map(|year| json!({ "label": year.to_string() }));
        let years: Vec<Value> = years.collect();
        json!({ "label": format!("{decade}-{}", decade + 9), "children": years })
    };
    let table_1 = json!({ "name": "table 1", "columns": [
        { "name": "id", "role": "identifier" },
        { "name": "birthyear", "role": "quasi_identifier",
          "taxonomy": { "label": "any year", "children": [decade(1970), decade(1980)] } },
        { "name": "gender", "role": "quasi_identifier" },
        { "name": "diseases", "role": "quasi_identifier", "kind": "set",
          "taxonomy": { "label": "any disease", "children": [
            { "label": "K", "children": leaves(&["k", "l"]) },
            { "label": "M", "children": leaves(&["m", "n", "o"]) } ] } },
        { "name": "drugs", "role": "quasi_identifier", "kind": "set" },
    ] });
    let privacy = json!({ "model": "k_anonymity", "k": 2 });
    let sets = |class: &str| {
        json!({ "name": format!("table 3, {class}"), "columns": [
            { "name": "class", "role": class },
            { "name": "drugs", "role": "quasi_identifier", "kind": "set" },
        ] })
    };
    [
        RecordsRun {
            schema: table_1,
            job: json!({ "privacy": privacy, "pre_generalization": {
                "diseases": { "level": 1, "values": { "0": ["k", "l"] } } } }),
            raw: "id,birthyear,gender,diseases,drugs\n\
                1,1970,Male,k|l|m,a|b|z\n2,1971,Male,k|l|n,a|z\n\
                3,1989,Female,n|o,c|x|y\n4,1982,Female,m|o,b|x|y\n",
            rows: &[
                "1970-1979,Male,M|k|l,a|z",
                "1970-1979,Male,M|k|l,a|z",
                "1980-1989,Female,M,x|y",
                "1980-1989,Female,M,x|y",
            ],
            ncp: &[
                ("birthyear", 0.5),
                ("gender", 0.0),
                // M is 3 of 5 leaves: twice (0.6 + 0 + 0) / 3 for M, k and l, and twice 0.6.
                ("diseases", 0.4),
                ("drugs", 0.0),
            ],
            // 0.36 and 3/11 in the paper.
            item_loss: &[("diseases", 0.36), ("drugs", 0.27)],
        },
        RecordsRun {
            schema: sets("quasi_identifier"),
            job: json!({ "privacy": privacy }),
            raw: SETS,
            rows: &["A,a|z", "A,a|z", "B,x|y", "B,x|y"],
            ncp: &[("class", 0.0), ("drugs", 0.0)],
            item_loss: &[("drugs", 0.27)],
        },
        RecordsRun {
            schema: sets("insensitive"),
            job: json!({ "privacy": privacy }),
            raw: SETS,
            rows: &["A,a|z", "A,a|z", "B,x|y", "B,x|y"],
            ncp: &[("drugs", 0.0)],
            item_loss: &[("drugs", 0.27)],
        },
    ]
}

impl RecordsRun {
    /// Compares a released table in CSV, with rows in any order, with the expected rows.
    #[track_caller]
    pub fn assert_rows(&self, csv: &str) {
        let mut rows: Vec<&str> = csv.lines().skip(1).collect();
        rows.sort_unstable();
        assert_eq!(rows, self.rows);
    }

    /// Compares a report with the expected loss of information by column.
    #[track_caller]
    pub fn assert_report(&self, report: &Value) {
        assert_eq!(report["suppressed_rows"], 0);
        for (column, expected) in self.ncp {
            let remain = &report["utility"]["information_remain_by_column"][column];
            let ncp = &report["utility"]["ncp_by_column"][column];
            let (ncp, remain) = (ncp.as_f64().unwrap(), remain.as_f64().unwrap());
            assert!((ncp - expected).abs() < 1e-12, "{column}: {ncp}");
            assert!(
                (remain - (1.0 - expected)).abs() < 1e-12,
                "{column}: {remain}"
            );
        }
        for (column, expected) in self.item_loss {
            let found = &report["utility"]["item_loss_by_column"][column];
            assert_eq!(found.as_f64(), Some(*expected), "{column}");
        }
    }
}
