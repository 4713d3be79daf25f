//! What happened to each released column.

use serde_json::Value;

use crate::input::ReportPage;
use crate::words::counted;

/// A released column.
pub(crate) struct ReleasedColumn {
    /// Its name.
    pub(crate) name: String,
    /// Its role in words; empty where unknown.
    pub(crate) role: &'static str,
    /// What happened to it, in a sentence.
    pub(crate) fate: String,
    /// Loss of detail, 0 to 1; `None` for a column that is no quasi-identifier.
    pub(crate) loss: Option<f64>,
}

/// The columns of the codebook; without one, the quasi-identifiers that the report measures.
pub(crate) fn of(page: &ReportPage) -> Vec<ReleasedColumn> {
    let losses = page.utility()["ncp_by_column"].as_object();
    if page.columns().is_empty() {
        let losses = losses.into_iter().flatten();
        return losses
            .map(|(name, loss)| generalized(page, name, loss, &Value::Null))
            .collect();
    }
    let columns = page.columns().iter();
    columns
        .filter_map(|column| {
            let name = column["name"].as_str()?;
            let role = column["role"].as_str().unwrap_or_default();
            let other = |role, fate: &str| ReleasedColumn {
                name: name.to_owned(),
                role,
                fate: fate.to_owned(),
                loss: None,
            };
            Some(match role {
                "quasi_identifier" => {
                    let loss = losses.and_then(|losses| losses.get(name));
                    generalized(page, name, loss.unwrap_or(&Value::Null), column)
                }
                "sensitive" if page.is_anatomy() => other(
                    "sensitive",
                    "released as counts for each group, apart from the other columns",
                ),
                "sensitive" => other("sensitive", "released unchanged"),
                "class" => other("to be predicted", "released unchanged"),
                "insensitive" => other("not sensitive", "released unchanged"),
                "identifier" => other("identifier", "never stored"),
                "subject" => other("names the patient", "never released"),
                _ => other("", "released"),
            })
        })
        .collect()
}

fn generalized(page: &ReportPage, name: &str, loss: &Value, column: &Value) -> ReleasedColumn {
    let loss = loss.as_f64();
    let labels = page.cut[name].as_array().map(Vec::len);
    let kind = column["kind"].as_str().unwrap_or_default();
    let fate = if page.is_anatomy() {
        "released exactly".to_owned()
    } else {
        match (labels, loss) {
            (Some(1), Some(loss)) if loss >= 1.0 => {
                "says nothing any more: one label for all".to_owned()
            }
            (_, Some(0.0)) => "released exactly".to_owned(),
            (Some(labels), _) if matches!(kind, "numeric" | "date" | "datetime") => {
                format!(
                    "reduced to {}",
                    counted(labels as u64, "interval", "intervals")
                )
            }
            (Some(labels), _) => {
                format!("reduced to {}", counted(labels as u64, "label", "labels"))
            }
            (None, _) if kind == "set" => {
                "items hidden or replaced by more general ones".to_owned()
            }
            (None, _) => "generalized in each group by itself".to_owned(),
        }
    };
    ReleasedColumn {
        name: name.to_owned(),
        role: "identifying",
        fate,
        loss,
    }
}
