//! The address of a client, as limits for each address count it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Bits of an IPv6 address that identify the network. One client usually has all addresses of it.
const NETWORK_BITS: u32 = 64;

/// An IPv4 address, or the network of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientAddress(IpAddr);

impl From<SocketAddr> for ClientAddress {
    fn from(address: SocketAddr) -> Self {
        Self::from(address.ip())
    }
}

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = address.to_bits() >> NETWORK_BITS << NETWORK_BITS;
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
            address => address,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::ClientAddress;

    #[test]
    fn an_ipv6_network_is_one_client() {
        let client = |text: &str| ClientAddress::from(text.parse::<SocketAddr>().unwrap());
        assert_eq!(client("[2001:db8::1]:1"), client("[2001:db8::ffff:2]:2"));
        assert_ne!(client("[2001:db8::1]:1"), client("[2001:db8:0:1::1]:1"));
        assert_eq!(client("[::ffff:192.0.2.1]:1"), client("192.0.2.1:9"));
        assert_ne!(client("192.0.2.1:9"), client("192.0.2.2:9"));
    }
}
