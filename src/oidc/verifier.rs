//! The verification of bearer tokens: JSON Web Tokens (RFC 7519) that an issuer signed.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::roles::Role;

use super::OidcSettings;
use super::Refusal;
use super::issuer_keys::IssuerKeys;
use super::signatures::{PUBLIC_KEYS, SignatureScheme};

/// Longest token, in bytes.
const TOKEN_BYTES: usize = 16 << 10;

/// Longest name of a person, in bytes.
const SUBJECT_BYTES: usize = 255;

/// A person whose token was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedPerson {
    /// The person, as named by the issuer.
    pub subject: String,
    /// Name or id of the person's organization.
    pub organization: String,
    /// The role of the person.
    pub role: Role,
}

/// Verifies the tokens of one issuer.
pub struct Verifier {
    settings: OidcSettings,
    keys: IssuerKeys,
}

/// Whether a text has the form of a JSON Web Token: three parts between points.
pub fn is_compact(token: &str) -> bool {
    token.len() <= TOKEN_BYTES && token.split('.').count() == 3
}

impl Verifier {
    /// A verifier that fetches the issuer's keys when the first token comes.
    pub fn new(settings: OidcSettings) -> Self {
        // Another verifier of this process may have installed it already.
        let _ = PUBLIC_KEYS.install_default();
        Self {
            keys: IssuerKeys::new(&settings.issuer),
            settings,
        }
    }

    /// Verifies a token: signature, issuer, audience and times; and reads its claims.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn verify(
        &self,
        token: &str,
        now: OffsetDateTime,
    ) -> Result<VerifiedPerson, Refusal> {
        if !is_compact(token) {
            return Err(Refusal::Invalid);
        }
        let header = decode_header(token).map_err(|_| Refusal::Invalid)?;
        if SignatureScheme::of(header.alg).is_none() || !is_plain(token) {
            return Err(Refusal::Invalid);
        }
        let key = self.keys.find(header.kid.as_deref(), now).await?;
        let claims = self.claims(token, &header, &key)?;
        self.person(&claims).ok_or(Refusal::Invalid)
    }

    fn claims(
        &self,
        token: &str,
        header: &Header,
        key: &Jwk,
    ) -> Result<Map<String, Value>, Refusal> {
        let is_for_signatures = matches!(
            key.common.public_key_use,
            None | Some(PublicKeyUse::Signature)
        );
        if !is_for_signatures || !is_of(header.alg, key.common.key_algorithm) {
            return Err(Refusal::Invalid);
        }
        let decoding = DecodingKey::from_jwk(key).map_err(|_| Refusal::Invalid)?;
        // The key and the algorithm must be of one family, which `PUBLIC_KEYS` checks.
        let mut validation = Validation::new(header.alg);
        validation.leeway = self.settings.leeway_seconds;
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.settings.issuer]);
        validation.set_audience(&[&self.settings.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        let decoded = decode::<Map<String, Value>>(token, &decoding, &validation);
        let claims = decoded.map_err(|_| Refusal::Invalid)?.claims;
        // The library accepts a list that has the issuer; a token has one issuer (RFC 7519, 4.1.1).
        if claims.get("iss").and_then(Value::as_str) != Some(&self.settings.issuer) {
            return Err(Refusal::Invalid);
        }
        Ok(claims)
    }

    fn person(&self, claims: &Map<String, Value>) -> Option<VerifiedPerson> {
        let text = |name: &str| {
            let text = claims.get(name)?.as_str()?;
            (!text.is_empty() && text.len() <= SUBJECT_BYTES && !text.contains('\0'))
                .then(|| text.to_owned())
        };
        Some(VerifiedPerson {
            subject: text(&self.settings.subject_claim)?,
            organization: text(&self.settings.organization_claim)?,
            role: role(claims.get(&self.settings.role_claim)?)?,
        })
    }
}

/// Whether this verifier supports everything that the header of a token requires: no extension that must
/// be understood (`crit`, RFC 7515, 4.1.11), and no other type than that of a token (RFC 7519, 5.1, and
/// RFC 9068, 2.1).
fn is_plain(token: &str) -> bool {
    let header = token.split('.').next().unwrap_or_default();
    let header = URL_SAFE_NO_PAD.decode(header).ok();
    let header = header.and_then(|bytes| serde_json::from_slice::<Map<String, Value>>(&bytes).ok());
    let Some(header) = header else { return false };
    let is_token = header.get("typ").is_none_or(|of_type| {
        let of_type = of_type.as_str().unwrap_or_default().to_ascii_lowercase();
        let of_type = of_type.strip_prefix("application/").unwrap_or(&of_type);
        ["jwt", "at+jwt"].contains(&of_type)
    });
    is_token && !header.contains_key("crit")
}

/// The role in a claim: a text, or the one role in a list of texts, which may contain other texts.
fn role(claim: &Value) -> Option<Role> {
    match claim {
        Value::String(name) => Role::from_name(name),
        Value::Array(names) => {
            let mut roles = names
                .iter()
                .filter_map(|name| Role::from_name(name.as_str()?));
            let role = roles.next()?;
            roles.all(|other| other == role).then_some(role)
        }
        _ => None,
    }
}

/// Whether a key that names its algorithm is of this one.
fn is_of(algorithm: Algorithm, of_key: Option<KeyAlgorithm>) -> bool {
    of_key.is_none_or(|of_key| of_key.to_string() == format!("{algorithm:?}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{is_compact, role};
    use crate::roles::Role;

    #[test]
    fn a_role_is_a_text_or_the_only_one_in_a_list() {
        assert_eq!(role(&json!("holder")), Some(Role::Holder));
        let mixed = json!(["offline_access", "auditor", 7]);
        assert_eq!(role(&mixed), Some(Role::Auditor));
        assert_eq!(role(&json!(["holder", "auditor"])), None);
        assert_eq!(role(&json!("root")), None);
        assert_eq!(role(&json!({"holder": true})), None);
    }

    #[test]
    fn three_parts_of_bounded_length_have_the_form_of_a_token() {
        assert!(is_compact("a.b.c"));
        assert!(!is_compact("a.b") && !is_compact("a.b.c.d"));
        assert!(!is_compact(&format!("{}.b.c", "a".repeat(20_000))));
    }
}
