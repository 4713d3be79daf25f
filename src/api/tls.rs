//! TLS of the listener: the certificate and its key, which can be read again while the service runs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use parking_lot::RwLock;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// Longest time of a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

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
    /// If a file cannot be read or is not PEM; if the key does not fit the certificate, or is of an unknown
    /// kind.
    pub fn open(certificate: &Path, key: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            config: RwLock::new(Arc::new(read(certificate, key)?)),
        })
    }

    /// Reads the files again. Connections that are open keep their certificate.
    ///
    /// # Errors
    /// As [`Self::open`]: then the previous certificate stays in use.
    pub fn reload(&self) -> anyhow::Result<()> {
        let config = Arc::new(read(&self.certificate, &self.key)?);
        *self.config.write() = config;
        Ok(())
    }

    /// Makes a connection secure.
    ///
    /// # Errors
    /// When the client does not speak TLS, supports no version or cipher of the service, or takes too long.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let acceptor = TlsAcceptor::from(self.config.read().clone());
        tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await?
    }
}

fn read(certificate: &Path, key: &Path) -> anyhow::Result<ServerConfig> {
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain = chain.with_context(|| unreadable(certificate))?;
    let private = PrivateKeyDer::from_pem_file(key).with_context(|| unreadable(key))?;
    let provider = Arc::new(ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .context("the certificate and its key cannot be used together")?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn unreadable(path: &Path) -> String {
    format!("{} cannot be read as PEM", path.display())
}
