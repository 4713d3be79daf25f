//! What happened to each declared column.

use serde_json::Value;

use crate::input::ReportPage;
use crate::words::{counted, plain};

/// A column by which a patient could be recognized.
pub(crate) struct KnownColumn {
    /// Its name.
    pub(crate) name: String,
    /// What happened to it, in a few words.
    pub(crate) fate: String,
    /// Loss of detail, 0 to 1; `None` where it was not measured.
    pub(crate) loss: Option<f64>,
}

/// Columns that have a fate in common.
pub(crate) struct OtherColumns {
    /// What happened to them.
    pub(crate) fate: &'static str,
    /// Their names, in the declared order.
    pub(crate) names: Vec<String>,
}

/// The quasi-identifiers of the codebook; without one, those that the report measures.
pub(crate) fn known(page: &ReportPage) -> Vec<KnownColumn> {
    let losses = page.utility()["ncp_by_column"].as_object();
    if page.columns().is_empty() {
        let losses = losses.into_iter().flatten();
        return losses
            .map(|(name, loss)| generalized(page, name, loss, &Value::Null))
            .collect();
    }
    let columns = page.columns().iter();
    let columns = columns.filter(|column| column["role"] == "quasi_identifier");
    columns
        .map(|column| {
            let name = plain(&column["name"]);
            let loss = losses.and_then(|losses| losses.get(&name));
            generalized(page, &name, loss.unwrap_or(&Value::Null), column)
        })
        .collect()
}

/// The columns of other roles, by what happened to them; without fates that no column has.
pub(crate) fn others(page: &ReportPage) -> Vec<OtherColumns> {
    let sensitive = if page.is_anatomy() {
        "Sensitive, released as counts for each group"
    } else {
        "Sensitive, released unchanged"
    };
    let fates = [
        ("insensitive", "Released unchanged"),
        ("class", "To be predicted, released unchanged"),
        ("sensitive", sensitive),
        ("identifier", "Dropped while the file was read"),
        ("subject", "Names the patient, never released"),
    ];
    let fates = fates.into_iter().map(|(role, fate)| {
        let columns = page.columns().iter();
        let columns = columns.filter(|column| column["role"] == role);
        let names = columns.map(|column| plain(&column["name"])).collect();
        OtherColumns { fate, names }
    });
    fates.filter(|others| !others.names.is_empty()).collect()
}

fn generalized(page: &ReportPage, name: &str, loss: &Value, column: &Value) -> KnownColumn {
    let loss = loss.as_f64();
    let labels = page.cut[name].as_array().map(Vec::len);
    let kind = column["kind"].as_str().unwrap_or_default();
    let fate = if page.is_anatomy() {
        "released exactly".to_owned()
    } else {
        match (labels, loss) {
            (Some(1), Some(loss)) if loss >= 1.0 => {
                "one label for all, which says nothing".to_owned()
            }
            (_, Some(0.0)) => "released exactly".to_owned(),
            (Some(labels), _) if matches!(kind, "numeric" | "date" | "datetime") => {
                counted(labels as u64, "interval", "intervals")
            }
            (Some(labels), _) => counted(labels as u64, "label", "labels"),
            (None, _) if kind == "set" => "items hidden or generalized".to_owned(),
            (None, _) => "generalized in each group by itself".to_owned(),
        }
    };
    KnownColumn {
        name: name.to_owned(),
        fate,
        loss,
    }
}
