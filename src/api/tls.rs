//! TLS of the listener: the certificate and its key, which can be read again while the service runs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

/// Longest time of a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a certificate cannot be used.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read, or is not PEM.
    #[error("{} cannot be read as PEM", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: pem::Error,
    },
    /// The key does not fit the certificate, or is of an unknown kind.
    #[error("the certificate and its key cannot be used together")]
    Certificate(#[from] rustls::Error),
}

/// Accepts TLS connections with the certificate that was read last.
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    config: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads a chain of certificates and the private key of the first, both PEM.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn open(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        Ok(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            config: RwLock::new(Arc::new(read(certificate, key)?)),
        })
    }

    /// Reads the files again. Connections that are open keep their certificate.
    ///
    /// # Errors
    /// [`TlsError`]: then the previous certificate stays in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        let config = Arc::new(read(&self.certificate, &self.key)?);
        *self.config.write() = config;
        Ok(())
    }

    /// Makes a connection secure.
    ///
    /// # Errors
    /// When the client speaks no TLS, no version or cipher of the service, or takes too long.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let acceptor = TlsAcceptor::from(self.config.read().clone());
        tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await?
    }
}

fn read(certificate: &Path, key: &Path) -> Result<ServerConfig, TlsError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::File { path, source }
    };
    let chain = CertificateDer::pem_file_iter(certificate).map_err(failed(certificate))?;
    let chain = chain.collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(failed(certificate))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(failed(key))?;
    let provider = Arc::new(ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, private)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
