//! TLS between processes: both ends show a certificate of the same authority.
//!
//! The accepting end is checked against the host of the address that was connected to; the connecting end only against the authority,
//! since it may come from any host. The secret is asked for nevertheless, and bound to the session.

use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
};

/// The certificates of a process, as PEM.
#[derive(Clone)]
pub struct Tls {
    /// This process's certificate, and the certificates between it and the authority.
    pub certificate: Vec<u8>,
    /// Its private key.
    pub key: Vec<u8>,
    /// The certificates of the authority that every process's certificate comes from.
    pub authority: Vec<u8>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// Both roles of a process, checked and ready.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Identity {
    /// Reads the certificates; the error is a sentence that says which of them is no good.
    pub(crate) fn new(tls: &Tls) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain = certificates(&tls.certificate, "certificate")?;
        let key = || {
            PrivateKeyDer::from_pem_slice(&tls.key)
                .map_err(|error| format!("the TLS key cannot be read as PEM: {error}"))
        };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&tls.authority, "authority")? {
            roots
                .add(certificate)
                .map_err(|error| format!("the TLS authority is no good: {error}"))?;
        }
        let roots = Arc::new(roots);
        let authority =
            |error: &dyn std::fmt::Display| format!("the TLS authority is no good: {error}");
        let servers: Arc<dyn ServerCertVerifier> =
            WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
                .build()
                .map_err(|error| authority(&error))?;
        let clients: Arc<dyn ClientCertVerifier> =
            WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
                .build()
                .map_err(|error| authority(&error))?;
        let own = |error: rustls::Error| {
            format!("the TLS certificate and key do not go together: {error}")
        };
        let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(own)?
            .dangerous() // the verifier is the ordinary one, built with a provider that is named
            .with_custom_certificate_verifier(servers)
            .with_client_auth_cert(chain.clone(), key()?)
            .map_err(own)?;
        client.resumption = Resumption::disabled();
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(own)?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain, key()?)
            .map_err(own)?;
        server.send_tls13_tickets = 0;
        Ok(Identity {
            client: Arc::new(client),
            server: Arc::new(server),
        })
    }

    /// A session with the process at `host`, before its handshake.
    pub(crate) fn connecting(&self, host: &str) -> Result<Connection, String> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("{host:?} is not a name that a TLS certificate could have"))?;
        ClientConnection::new(Arc::clone(&self.client), name)
            .map(Connection::Client)
            .map_err(|error| error.to_string())
    }

    /// A session with the party that connected, before its handshake.
    pub(crate) fn accepting(&self) -> Result<Connection, String> {
        ServerConnection::new(Arc::clone(&self.server))
            .map(Connection::Server)
            .map_err(|error| error.to_string())
    }
}

fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err(format!("the TLS {what} holds no certificate in PEM")),
        Ok(chain) => Ok(chain),
        Err(error) => Err(format!("the TLS {what} cannot be read as PEM: {error}")),
    }
}
