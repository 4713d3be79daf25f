//! The keys and types of NDJSON records, from the beginning of a file.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_with::{Map, serde_as};

use super::items::SEPARATORS;
use super::observed::ColumnType;

/// Maximum number of records of which the types are looked at.
const MOST_RECORDS: usize = 1_000;

/// A key of the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JsonKey {
    pub(super) name: String,
    /// The type of its values; `None` where they differ, or all are null.
    pub(super) declared: Option<ColumnType>,
    /// A separator that occurs in no item of its lists.
    pub(super) separator: Option<char>,
}

/// A key with what its values have shown so far.
struct SeenKey {
    name: String,
    types: Vec<ColumnType>,
    /// The separators that occur in an item.
    in_items: [bool; SEPARATORS.len()],
}

/// The keys of the first record in their order, with the types of their values in the first records.
/// Empty where the first record is no object, which the reader refuses.
pub(super) fn keys(head: &str) -> Vec<JsonKey> {
    let mut lines = head.lines().filter(|line| !line.trim().is_empty());
    let Some(first) = lines.next().and_then(record) else {
        return Vec::new();
    };
    let seen = |name: &String| SeenKey {
        name: name.clone(),
        types: Vec::new(),
        in_items: [false; SEPARATORS.len()],
    };
    let mut keys: Vec<SeenKey> = first.0.iter().map(|(name, _)| seen(name)).collect();
    let others = lines.take(MOST_RECORDS - 1).filter_map(record);
    for record in std::iter::once(first).chain(others) {
        for (position, (name, value)) in record.0.iter().enumerate() {
            // Most records have their keys in one order.
            let at = match keys.get(position) {
                Some(key) if key.name == *name => Some(position),
                _ => keys.iter().position(|key| key.name == *name),
            };
            if let Some(at) = at {
                keys[at].see(value.get());
            }
        }
    }
    keys.into_iter().map(SeenKey::known).collect()
}

impl SeenKey {
    fn see(&mut self, value: &str) {
        let found = match value.as_bytes().first() {
            Some(b'"') => ColumnType::Text,
            Some(b't' | b'f') => ColumnType::Boolean,
            Some(b'[') => ColumnType::List,
            Some(b'-' | b'0'..=b'9') => ColumnType::Number,
            _ => return,
        };
        if !self.types.contains(&found) {
            self.types.push(found);
        }
        if found == ColumnType::List {
            let items: Vec<&RawValue> = serde_json::from_str(value).unwrap_or_default();
            for item in items {
                for (separator, is_used) in SEPARATORS.iter().zip(&mut self.in_items) {
                    *is_used |= item.get().contains(*separator);
                }
            }
        }
    }

    fn known(self) -> JsonKey {
        let declared = match self.types.as_slice() {
            [one] => Some(*one),
            types if types.contains(&ColumnType::List) => Some(ColumnType::List),
            _ => None,
        };
        let free = SEPARATORS
            .iter()
            .zip(self.in_items)
            .find(|(_, is_used)| !is_used);
        JsonKey {
            name: self.name,
            declared,
            separator: free.map(|(separator, _)| *separator),
        }
    }
}

/// A record: its keys in their order, with their values as they are written.
#[serde_as]
#[derive(Deserialize)]
#[serde(transparent)]
struct JsonRecord<'l>(
    #[serde(borrow)]
    #[serde_as(as = "Map<_, _>")]
    Vec<(String, &'l RawValue)>,
);

fn record(line: &str) -> Option<JsonRecord<'_>> {
    serde_json::from_str(line).ok()
}

#[cfg(test)]
mod tests {
    use super::keys;
    use crate::draft::observed::ColumnType;

    #[test]
    fn records_show_their_keys_in_order_and_the_types_of_their_values() {
        let text = concat!(
            "{\"z\": 1, \"a\": \"x\", \"items\": [\"p|q\", \"r\"], \"is\": true, \"m\": null}\n\n",
            "{\"a\": null, \"z\": -2.5, \"items\": [], \"is\": false, \"m\": 1}\n",
            "{\"a\": \"y\", \"z\": 3, \"items\": null, \"is\": null, \"m\": \"1\"}\n",
        );
        let found = keys(text);
        let types: Vec<_> = found
            .iter()
            .map(|key| (key.name.as_str(), key.declared))
            .collect();
        assert_eq!(
            types,
            [
                ("z", Some(ColumnType::Number)),
                ("a", Some(ColumnType::Text)),
                ("items", Some(ColumnType::List)),
                ("is", Some(ColumnType::Boolean)),
                ("m", None),
            ]
        );
        assert_eq!(found[2].separator, Some(';'));
        assert!(keys("").is_empty() && keys("[1]\n").is_empty() && keys("{\"a\": \n").is_empty());
    }
}
