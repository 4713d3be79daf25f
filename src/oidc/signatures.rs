//! The signatures of tokens (RFC 7518, Section 3; RFC 8037, Section 3.1): what `jsonwebtoken` verifies
//! them with.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, new_error};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, signature};
use ring::signature as scheme;
use ring::signature::{
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

/// Verifies signatures by public keys. It makes no signatures, and knows no algorithm with a shared secret: a
/// public key is not secret.
pub(super) static PUBLIC_KEYS: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(new_error(ErrorKind::UnsupportedAlgorithm)),
    verifier_factory: |&algorithm, key| {
        let scheme =
            SignatureScheme::of(algorithm).filter(|scheme| scheme.family() == key.family());
        let scheme = scheme.ok_or_else(|| new_error(ErrorKind::InvalidAlgorithm))?;
        let key = key.clone();
        Ok(Box::new(SignatureVerifier {
            algorithm,
            scheme,
            key,
        }))
    },
    key_utils: KeyUtils::new_unimplemented(),
};

/// How signatures of an algorithm are verified.
pub(super) enum SignatureScheme {
    /// With a modulus, of 2,048 to 8,192 bits, and an exponent.
    Rsa(&'static RsaParameters),
    /// With an uncompressed point of a curve.
    Ec(&'static dyn VerificationAlgorithm),
    /// With the 32 bytes of a key of Ed25519.
    Ed(&'static dyn VerificationAlgorithm),
}

/// Verifies signatures of one key by one algorithm.
struct SignatureVerifier {
    algorithm: Algorithm,
    scheme: SignatureScheme,
    key: DecodingKey,
}

impl SignatureScheme {
    /// The scheme of an algorithm; `None` for one that no token may be signed with, such as `none` and those with a shared
    /// secret: a public key is not secret.
    pub(super) fn of(algorithm: Algorithm) -> Option<Self> {
        Some(match algorithm {
            Algorithm::RS256 => Self::Rsa(&scheme::RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => Self::Rsa(&scheme::RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => Self::Rsa(&scheme::RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => Self::Rsa(&scheme::RSA_PSS_2048_8192_SHA256),
            Algorithm::PS384 => Self::Rsa(&scheme::RSA_PSS_2048_8192_SHA384),
            Algorithm::PS512 => Self::Rsa(&scheme::RSA_PSS_2048_8192_SHA512),
            Algorithm::ES256 => Self::Ec(&scheme::ECDSA_P256_SHA256_FIXED),
            Algorithm::ES384 => Self::Ec(&scheme::ECDSA_P384_SHA384_FIXED),
            Algorithm::EdDSA => Self::Ed(&scheme::ED25519),
            _ => return None,
        })
    }

    fn family(&self) -> AlgorithmFamily {
        match self {
            Self::Rsa(_) => AlgorithmFamily::Rsa,
            Self::Ec(_) => AlgorithmFamily::Ec,
            Self::Ed(_) => AlgorithmFamily::Ed,
        }
    }
}

impl signature::Verifier<Vec<u8>> for SignatureVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let verified = match (&self.scheme, self.key.kind()) {
            (SignatureScheme::Rsa(by), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                // Some issuers put a zero before the modulus (RFC 7518, Section 6.3.1.1).
                let zeros = n.iter().take_while(|&&byte| byte == 0).count();
                let key = RsaPublicKeyComponents { n: &n[zeros..], e };
                key.verify(by, message, signature)
            }
            (
                SignatureScheme::Ec(by) | SignatureScheme::Ed(by),
                DecodingKeyKind::SecretOrDer(point),
            ) => UnparsedPublicKey::new(*by, point).verify(message, signature),
            _ => return Err(signature::Error::new()),
        };
        verified.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for SignatureVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use jsonwebtoken::crypto::verify;
    use jsonwebtoken::jwk::Jwk;
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    /// Messages that OpenSSL signed with keys that were discarded.
    #[derive(Deserialize)]
    struct Signed {
        algorithm: Algorithm,
        key: Value,
        message: String,
        signature: String,
    }

    fn signed() -> Vec<Signed> {
        let _ = PUBLIC_KEYS.install_default();
        serde_json::from_str(include_str!("../../tests/data/signatures.json")).unwrap()
    }

    fn is_accepted(signed: &Signed, algorithm: Algorithm) -> bool {
        let key: Jwk = serde_json::from_value(signed.key.clone()).unwrap();
        let key = DecodingKey::from_jwk(&key).unwrap();
        let message = signed.message.as_bytes();
        verify(&signed.signature, message, &key, algorithm).unwrap_or(false)
    }

    fn algorithms() -> Vec<Algorithm> {
        use AlgorithmFamily::{Ec, Ed, Hmac, Rsa};
        let families = [Hmac, Rsa, Ec, Ed];
        families.map(|it| it.algorithms().to_vec()).concat()
    }

    #[test]
    fn a_signature_is_accepted_by_its_own_algorithm_alone() {
        let mut known = Vec::new();
        for signed in signed() {
            for algorithm in algorithms() {
                let is_own = algorithm == signed.algorithm;
                assert_eq!(is_accepted(&signed, algorithm), is_own, "{algorithm:?}");
            }
            known.push(signed.algorithm);
        }
        let of_public_keys = algorithms()
            .into_iter()
            .filter(|&it| SignatureScheme::of(it).is_some());
        assert!(of_public_keys.clone().all(|it| known.contains(&it)));
        assert_eq!(of_public_keys.count(), 9);
    }

    #[test]
    fn a_changed_message_or_signature_and_another_key_are_refused() {
        for mut signed in signed() {
            let own = signed.algorithm;
            let message = signed.message.clone();
            signed.message.push('.');
            assert!(!is_accepted(&signed, own), "{own:?}");
            signed.message = message;
            for place in [0, signed.signature.len() / 2] {
                let whole = signed.signature.clone();
                let other = if whole[place..].starts_with('A') {
                    "B"
                } else {
                    "A"
                };
                signed.signature.replace_range(place..=place, other);
                assert!(!is_accepted(&signed, own), "{own:?}");
                signed.signature = whole;
            }
            // Four characters are three bytes.
            let shorter = signed.signature[4..].to_owned();
            let whole = std::mem::replace(&mut signed.signature, shorter);
            assert!(!is_accepted(&signed, own), "{own:?}");
            signed.signature = whole;
            let x = if signed.key["kty"] == "RSA" { "n" } else { "x" };
            let text = signed.key[x].as_str().unwrap();
            let (start, end) = text.split_at(text.len() / 2);
            let other = if end.starts_with('A') { "B" } else { "A" };
            signed.key[x] = json!(format!("{start}{other}{}", &end[1..]));
            assert!(!is_accepted(&signed, own), "{own:?}");
        }
    }

    /// As a shared secret, the public key would be known to all.
    #[test]
    fn no_key_is_a_shared_secret() {
        for mut signed in signed() {
            let x = if signed.key["kty"] == "RSA" { "n" } else { "x" };
            signed.key = json!({"kty": "oct", "k": signed.key[x]});
            for algorithm in algorithms() {
                assert!(!is_accepted(&signed, algorithm), "{algorithm:?}");
            }
        }
    }

    #[test]
    fn a_modulus_may_have_a_zero_before_it_and_must_have_2048_bits() {
        let rsa = |signed: &Signed| signed.algorithm == Algorithm::RS256;
        let mut signed = signed().into_iter().find(rsa).unwrap();
        assert!(is_accepted(&signed, Algorithm::RS256));
        let n = signed.key["n"].as_str().unwrap();
        let mut bytes = vec![0];
        bytes.extend(URL_SAFE_NO_PAD.decode(n).unwrap());
        signed.key["n"] = json!(URL_SAFE_NO_PAD.encode(&bytes));
        assert!(is_accepted(&signed, Algorithm::RS256));
        signed.key["n"] = json!(URL_SAFE_NO_PAD.encode(&bytes[..129]));
        assert!(!is_accepted(&signed, Algorithm::RS256));
    }
}
