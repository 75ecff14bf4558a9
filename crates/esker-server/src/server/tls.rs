//! TLS, by rustls.

use super::config::TlsFiles;
use super::error::ServerError;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

fn unusable(path: &Path, error: impl Display) -> ServerError {
    ServerError::Tls(format!("{}: {error}; it is to be in PEM, readable, and of the same pair", path.display()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServerError> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| unusable(path, error))?;
    let certificates: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| unusable(path, error))?;
    if certificates.is_empty() {
        return Err(unusable(path, "there is no certificate in it"));
    }
    Ok(certificates)
}

/// What makes connections of TLS with these files.
pub fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, ServerError> {
    let provider = Arc::new(default_provider());
    let chain = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| unusable(&files.key, error))?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&files.certificate, error))?;
    let builder = match &files.client_authority {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| unusable(path, error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(|error| unusable(path, error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let config = builder.with_single_cert(chain, key).map_err(|error| unusable(&files.key, error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
