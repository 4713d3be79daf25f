//! Mutual TLS between runs and executors: each side shows a certificate of an authority that the other side
//! trusts, and no other authority is trusted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

/// The files of one side, all PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// Its chain of certificates.
    pub certificate: PathBuf,
    /// The private key of the first one.
    pub key: PathBuf,
    /// The certificates of the authority of the other side.
    pub authority: PathBuf,
}

/// Why TLS cannot be used: what is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct TlsError {
    path: PathBuf,
    reason: String,
}

impl TlsError {
    fn of(path: &Path) -> impl Fn(&dyn std::fmt::Display) -> Self {
        |reason| Self {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }
}

impl TlsFiles {
    /// The side of an executor: it answers no client without a certificate.
    ///
    /// # Errors
    /// When a file cannot be used.
    pub(crate) fn server(&self) -> Result<ServerConfig, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let refused = TlsError::of(&self.authority);
        let clients =
            WebPkiClientVerifier::builder_with_provider(self.roots()?.into(), provider.clone())
                .build()
                .map_err(|error| refused(&error))?;
        let refused = TlsError::of(&self.certificate);
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(&error))?
            .with_client_cert_verifier(clients);
        let (chain, key) = self.identity()?;
        let config = config.with_single_cert(chain, key);
        config.map_err(|error| refused(&error))
    }

    /// The side of a run.
    ///
    /// # Errors
    /// When a file cannot be used.
    pub(crate) fn client(&self) -> Result<ClientConfig, TlsError> {
        let refused = TlsError::of(&self.certificate);
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(&error))?
            .with_root_certificates(self.roots()?);
        let (chain, key) = self.identity()?;
        let config = config.with_client_auth_cert(chain, key);
        config.map_err(|error| refused(&error))
    }

    fn identity(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        let refused = TlsError::of(&self.key);
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| refused(&error))?;
        Ok((certificates(&self.certificate)?, key))
    }

    fn roots(&self) -> Result<RootCertStore, TlsError> {
        let refused = TlsError::of(&self.authority);
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.authority)? {
            roots.add(certificate).map_err(|error| refused(&error))?;
        }
        Ok(roots)
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let refused = TlsError::of(path);
    let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let found: Vec<_> = found.map_err(|error| refused(&error))?;
    if found.is_empty() {
        return Err(refused(&"it has no certificate"));
    }
    Ok(found)
}
