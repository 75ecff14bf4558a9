//! The address of a node, as its members know it: `host:port@raftport`.

use std::fmt;

/// Where clients and where other nodes reach a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// Where clients connect.
    pub port: u16,
    /// Where other nodes connect.
    pub raft_port: u16,
}

impl Address {
    /// Reads `host:port@raftport`; an IPv6 address may stand in brackets.
    ///
    /// # Errors
    /// A text that says what is expected.
    pub fn parse(text: &str) -> Result<Address, String> {
        let wrong = || format!("'{text}' is no address of a node; write host:port@raftport, as 10.0.0.1:6379@16379");
        let (client, raft_port) = text.rsplit_once('@').ok_or_else(wrong)?;
        let (host, port) = client.rsplit_once(':').ok_or_else(wrong)?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let is_plain = host.bytes().all(|byte| byte.is_ascii_graphic() && !b",@[]".contains(&byte));
        let number = |text: &str| text.parse::<u16>().ok().filter(|&port| port > 0);
        match (number(port), number(raft_port)) {
            (Some(port), Some(raft_port)) if is_plain && !host.is_empty() => {
                Ok(Address { host: host.into(), port, raft_port })
            }
            _ => Err(wrong()),
        }
    }

    /// Where other nodes connect.
    pub fn raft(&self) -> String {
        join(&self.host, self.raft_port)
    }

    /// Where clients connect.
    pub fn client(&self) -> String {
        join(&self.host, self.port)
    }
}

fn join(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.client(), self.raft_port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let address = Address::parse("10.0.0.1:6379@16379").unwrap();
        assert_eq!((address.client().as_str(), address.raft().as_str()), ("10.0.0.1:6379", "10.0.0.1:16379"));
        for text in ["node-a:1@2", "[::1]:6379@16379"] {
            assert_eq!(Address::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "a:1", "a@1", ":1@2", "a:0@2", "a:1@70000", "a b:1@2", "a:1@"] {
            assert!(Address::parse(text).unwrap_err().contains("host:port@raftport"), "{text}");
        }
    }
}
