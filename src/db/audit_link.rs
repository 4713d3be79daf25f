//! One link of the chain of hashes over an audit log, and the text that it is computed from.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sqlx::FromRow;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

/// The `previous_hash` of the first event of a log.
pub(crate) const FIRST_PREVIOUS: [u8; 32] = [0; 32];

/// What is hashed of an event.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub(crate) struct ChainedEvent {
    /// Its id.
    pub id: Uuid,
    /// The organization whose log it is in.
    #[sqlx(rename = "organization_id")]
    pub organization: Uuid,
    /// When.
    pub at: OffsetDateTime,
    /// The token used.
    #[sqlx(rename = "token_id")]
    pub token: Option<Uuid>,
    /// What was done.
    pub action: String,
    /// The id of what it was done to.
    pub subject: Option<String>,
    /// Names, counts and related ids.
    pub detail: Value,
    /// The address that the request came from.
    pub address: Option<String>,
    /// Whether it was done: `done` or `refused`.
    pub outcome: String,
}

impl ChainedEvent {
    /// The hash of the event at place `seq` of its log, after the event with the hash `previous`:
    /// SHA-256 of `previous` as 64 hexadecimal digits, a line feed, and the JSON text of
    /// `{action, address, at, detail, id, organization_id, outcome, seq, subject, token_id}`, with the fields of each
    /// object in the order of their names and without white space.
    pub(crate) fn hash(&self, seq: i64, previous: &[u8]) -> [u8; 32] {
        // An instant of the log has at most microseconds and a year of four digits.
        let at = self.at.format(&Rfc3339).unwrap_or_default();
        let text = json!({
            "action": self.action,
            "address": self.address,
            "at": at,
            "detail": self.detail,
            "id": self.id,
            "organization_id": self.organization,
            "outcome": self.outcome,
            "seq": seq,
            "subject": self.subject,
            "token_id": self.token,
        });
        let mut digest = Sha256::new();
        digest.update(hex::encode(previous));
        digest.update(b"\n");
        digest.update(sorted(text).to_string());
        digest.finalize().into()
    }
}

/// The value with the fields of its objects in the order of their names.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> = fields.into_iter().collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            let fields = fields.into_iter();
            Value::Object(fields.map(|(name, value)| (name, sorted(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sha2::{Digest, Sha256};
    use time::macros::datetime;
    use uuid::Uuid;

    use super::{ChainedEvent, FIRST_PREVIOUS};

    fn event() -> ChainedEvent {
        ChainedEvent {
            id: Uuid::from_u128(1),
            organization: Uuid::from_u128(2),
            at: datetime!(2026-11-23 09:12:44.120 UTC),
            token: None,
            action: "dataset.created".to_owned(),
            subject: Some("x".to_owned()),
            detail: json!({"rows": 3, "name": "blood"}),
            address: Some("192.0.2.1".to_owned()),
            outcome: "done".to_owned(),
        }
    }

    #[test]
    fn the_hash_is_that_of_the_documented_text() {
        let text = concat!(
            "0000000000000000000000000000000000000000000000000000000000000000\n",
            r#"{"action":"dataset.created","address":"192.0.2.1","at":"2026-11-23T09:12:44.12Z","#,
            r#""detail":{"name":"blood","rows":3},"#,
            r#""id":"00000000-0000-0000-0000-000000000001","#,
            r#""organization_id":"00000000-0000-0000-0000-000000000002","#,
            r#""outcome":"done","seq":1,"subject":"x","token_id":null}"#,
        );
        let expected: [u8; 32] = Sha256::digest(text).into();
        assert_eq!(event().hash(1, &FIRST_PREVIOUS), expected);
    }

    #[test]
    fn every_part_of_an_event_and_its_place_change_the_hash() {
        let hash = event().hash(1, &FIRST_PREVIOUS);
        let changes: [fn(&mut ChainedEvent); 9] = [
            |it| it.id = Uuid::from_u128(9),
            |it| it.organization = Uuid::from_u128(9),
            |it| it.at += time::Duration::microseconds(1),
            |it| it.token = Some(Uuid::from_u128(9)),
            |it| it.action.push('x'),
            |it| it.subject = None,
            |it| it.detail = json!({"rows": 4, "name": "blood"}),
            |it| it.address = None,
            |it| it.outcome = "refused".to_owned(),
        ];
        for change in changes {
            let mut changed = event();
            change(&mut changed);
            assert_ne!(changed.hash(1, &FIRST_PREVIOUS), hash);
        }
        assert_ne!(event().hash(2, &FIRST_PREVIOUS), hash);
        assert_ne!(event().hash(1, &[1; 32]), hash);
    }
}
