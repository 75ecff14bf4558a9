//! TLS between nodes: each shows its certificate and asks for that of the other one.

use super::config::ClusterTlsFiles;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

fn unusable(path: &Path, error: impl Display) -> String {
    format!("{}: {error}; it is to be in PEM, readable, and of the same pair", path.display())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| unusable(path, error))?;
    let certificates: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| unusable(path, error))?;
    if certificates.is_empty() { Err(unusable(path, "there is no certificate in it")) } else { Ok(certificates) }
}

/// Both ends of connections with these files.
///
/// # Errors
/// A text that names the file.
pub fn ends(files: &ClusterTlsFiles) -> Result<(TlsAcceptor, TlsConnector), String> {
    let provider = Arc::new(default_provider());
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&files.authority)? {
        roots.add(certificate).map_err(|error| unusable(&files.authority, error))?;
    }
    let roots = Arc::new(roots);
    let chain = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| unusable(&files.key, error))?;
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
        .build()
        .map_err(|error| unusable(&files.authority, error))?;
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&files.certificate, error))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain.clone(), key.clone_key())
        .map_err(|error| unusable(&files.key, error))?;
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&files.certificate, error))?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .map_err(|error| unusable(&files.key, error))?;
    Ok((TlsAcceptor::from(Arc::new(server)), TlsConnector::from(Arc::new(client))))
}
