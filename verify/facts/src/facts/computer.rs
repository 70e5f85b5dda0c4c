//! Names and addresses of the node: `NODE`.

use std::net::IpAddr;

use os::{Namespace, Value};

use super::network::select;
use crate::fact::Fact;

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("NODE-01", |node| {
        let name = |property: &str| {
            let rows = select(node, Namespace::CimV2, "SELECT * FROM Win32_ComputerSystem");
            assert_eq!(rows.len(), 1);
            rows[0].text(property).expect("a name").to_owned()
        };
        let shortened: String = name("DNSHostName").chars().take(15).collect();
        assert!(!shortened.is_empty() && name("Name").eq_ignore_ascii_case(&shortened), "{shortened}");
    }),
    Fact::new("NODE-02", |node| {
        let wql = "SELECT * FROM Win32_NetworkAdapterConfiguration WHERE IPEnabled = TRUE";
        let mut count = 0;
        for row in select(node, Namespace::CimV2, wql) {
            assert_eq!(row.bool("IPEnabled"), Some(true));
            let Some(Value::Array(addresses)) = row.get("IPAddress") else { continue };
            for address in addresses {
                let Value::Text(text) = address else { panic!("{address:?} is not a text") };
                text.parse::<IpAddr>().unwrap_or_else(|_| panic!("{text} is not an address"));
                count += 1;
            }
        }
        assert!(count > 0, "the node has an address");
    }),
];
