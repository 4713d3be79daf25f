//! TLS with a certificate that is renewed while the service runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::process::{ServiceProcess, pais};
use pais_test_support::poll::poll_async;

/// Where the service finds its certificate.
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    fn in_folder(folder: &Path) -> Self {
        Self {
            certificate: folder.join("certificate.pem"),
            key: folder.join("key.pem"),
        }
    }

    /// Writes a new certificate for `localhost`, and returns it.
    fn renew(&self) -> CertificateDer<'static> {
        let names = vec!["localhost".to_owned()];
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
        std::fs::write(&self.certificate, cert.pem()).unwrap();
        std::fs::write(&self.key, signing_key.serialize_pem()).unwrap();
        cert.der().clone()
    }
}

/// A connection of a client that trusts one certificate alone.
async fn connect(
    address: &str,
    trusted: &CertificateDer<'static>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

async fn ask_without_token(mut stream: TlsStream<TcpStream>) -> String {
    let request = b"GET /v1/datasets HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_used_after_sighup_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let files = Files::in_folder(folder.path());
    let first = files.renew();
    let (listen, probes) = (
        ServiceProcess::free_address(),
        ServiceProcess::free_address(),
    );
    let settings = [
        (
            "PAIS__SERVER__TLS_CERTIFICATE",
            files.certificate.to_str().unwrap(),
        ),
        ("PAIS__SERVER__TLS_KEY", files.key.to_str().unwrap()),
        ("PAIS__SERVER__OPERATION_LISTEN", probes.as_str()),
    ];
    let data = folder.path().join("data");
    let probes = format!("http://{probes}");
    let service = ServiceProcess::start_at(pais(&data), &data, &settings, &listen, &probes).await;
    let answer = ask_without_token(connect(&listen, &first).await.unwrap()).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    // A browser does not come back without TLS.
    let only_tls = "strict-transport-security: max-age=31536000\r\n";
    assert!(answer.contains(only_tls), "{answer}");

    // Plain HTTP is not answered.
    let mut plain = TcpStream::connect(&listen).await.unwrap();
    plain
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"));

    std::fs::write(&files.certificate, "no certificate").unwrap();
    service.signal(rustix::process::Signal::HUP);
    let refused = poll_async(Duration::from_secs(10), async || {
        service
            .log()
            .contains("the previous certificate stays in use")
            .then_some(())
    });
    refused
        .await
        .expect("the log names the certificate that cannot be used");
    assert!(connect(&listen, &first).await.is_ok());

    let second = files.renew();
    service.signal(rustix::process::Signal::HUP);
    let renewed = poll_async(Duration::from_secs(10), async || {
        connect(&listen, &second).await.ok()
    });
    let answer = ask_without_token(renewed.await.expect("the new certificate is used")).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(connect(&listen, &first).await.is_err());
    service.stop();
}

#[test]
fn a_service_without_tls_does_not_listen_on_a_network() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = pais(folder.path());
    let started = program
        .args(["serve", "--listen", "0.0.0.0:0"])
        .output()
        .unwrap();
    assert!(!started.status.success());
    let message = String::from_utf8_lossy(&started.stderr).into_owned();
    assert!(message.contains("server.behind_proxy"), "{message}");
}
