//! The address that a request came from.

use std::net::{IpAddr, SocketAddr};

use axum::extract::ConnectInfo;
use axum::http::request::Parts;

/// The header in which a proxy adds the address of its client.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// The address of the client: that of the connection; behind a proxy the last one that
/// `X-Forwarded-For` lists, which the proxy has added. Those before it are the client's own words.
pub fn client_address(parts: &Parts, is_behind_proxy: bool) -> Option<IpAddr> {
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map(|ConnectInfo(address)| address.ip().to_canonical());
    if !is_behind_proxy {
        return peer;
    }
    let mut lists = parts.headers.get_all(FORWARDED_FOR).iter();
    let last = lists.next_back().and_then(|list| list.to_str().ok());
    let last = last.and_then(|list| list.rsplit(',').next());
    last.and_then(|text| parse(text.trim())).or(peer)
}

/// An address, with or without a port.
fn parse(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<IpAddr>();
    let address = address.or_else(|_| text.parse::<SocketAddr>().map(|it| it.ip()));
    address.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};

    use axum::extract::ConnectInfo;
    use axum::http::Request;

    use super::client_address;

    fn seen(forwarded: &[&str], is_behind_proxy: bool) -> String {
        let mut request = Request::builder();
        for value in forwarded {
            request = request.header("x-forwarded-for", *value);
        }
        let peer: SocketAddr = "[::ffff:198.51.100.7]:4711".parse().unwrap();
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        parts.extensions.insert(ConnectInfo(peer));
        let address: IpAddr = client_address(&parts, is_behind_proxy).unwrap();
        address.to_string()
    }

    #[test]
    fn a_header_counts_only_behind_a_proxy_and_only_the_address_that_the_proxy_added() {
        assert_eq!(seen(&[], false), "198.51.100.7");
        assert_eq!(seen(&["192.0.2.1"], false), "198.51.100.7");
        assert_eq!(seen(&["192.0.2.1"], true), "192.0.2.1");
        assert_eq!(seen(&["10.0.0.1, 192.0.2.1"], true), "192.0.2.1");
        assert_eq!(seen(&["10.0.0.1", "192.0.2.1:9"], true), "192.0.2.1");
        assert_eq!(seen(&["[2001:db8::1]:443"], true), "2001:db8::1");
        assert_eq!(seen(&["[2001:db8::1]"], true), "2001:db8::1");
        assert_eq!(seen(&["unknown"], true), "198.51.100.7");
        assert_eq!(seen(&[], true), "198.51.100.7");
    }
}
