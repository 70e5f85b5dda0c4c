//! SMB global mappings: `SMB`.

use std::time::Duration;

use os::{
    Access, CallStatus, MethodCall, Namespace, NtPath, Open, Options, OsError, Secret, U16String,
    Value,
};

use super::network::{
    MAPPING, create, credential, invoke, map, mapped, mapped_server, mappings, quoted, read,
    select, server, text, unmap,
};
use crate::fact::Fact;

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("SMB-01", |node| {
        const NOT_A_PARAMETER: OsError = OsError(0x8004_102f);
        let server = server(node);
        let secret = credential(&server.users[0], &server.users[0].password);
        let rest = [
            ("Persistent", Value::Bool(false)),
            ("RequirePrivacy", Value::Bool(false)),
        ];
        assert_eq!(create(node, &server.remote(0), secret, &rest), Ok(0));
        let row = mappings(node, &server).remove(0);
        let refused = invoke(
            node,
            Namespace::Smb,
            &row.path,
            "Remove",
            &[("RemotePath", text(&server.remote(0)))],
        );
        assert_eq!(refused.err(), Some(NOT_A_PARAMETER));
        unmap(node, &row);
    }),
    Fact::new("SMB-02", |node| {
        let server = mapped_server(node);
        let row = mappings(node, &server).remove(0);
        assert!(row.properties.contains_key("RemotePath"));
        assert!(
            !row.properties
                .keys()
                .any(|name| name.contains("User") || name.contains("Cred")),
            "{row:?}"
        );
    }),
    Fact::new("SMB-04", |node| {
        let server = server(node);
        for (share, persistent) in [(0, true), (1, false)] {
            let secret = credential(&server.users[0], &server.users[0].password);
            let options = [("Persistent", Value::Bool(persistent))];
            assert_eq!(create(node, &server.remote(share), secret, &options), Ok(0));
        }
        node.restart();
        assert_eq!(mapped(node, &server), [server.remote(0)]);
    }),
    Fact::new("SMB-05", |node| {
        let server = server(node);
        let with_backslash = map(node, &format!(r"{}\", server.remote(0)), &server.users[0]);
        assert_eq!(with_backslash, Err(OsError::INVALID_PARAMETER));
        assert_eq!(map(node, &server.remote(0), &server.users[0]), Ok(0));
    }),
    Fact::new("SMB-06", |node| {
        let server = mapped_server(node);
        let below = map(node, &format!(r"{}\a", server.remote(0)), &server.users[0]);
        assert_eq!(below, Err(OsError::SESSION_CREDENTIAL_CONFLICT));
    }),
    Fact::new("SMB-08", |node| {
        let server = server(node);
        let [a, b] = ["a", "b"].map(|name| format!(r"{}\{name}", server.remote(0)));
        for remote in [&a, &b] {
            assert_eq!(map(node, remote, &server.users[0]), Ok(0));
        }
        let mut rows = mappings(node, &server);
        rows.retain(|row| {
            row.text("RemotePath")
                .is_some_and(|remote| remote.eq_ignore_ascii_case(&b))
        });
        unmap(node, &rows.pop().expect("the mapping"));
        node.restart();
        assert_eq!(
            map(node, &b, &server.users[0]),
            Err(OsError::SESSION_CREDENTIAL_CONFLICT)
        );
    }),
    Fact::new("SMB-09", |node| {
        let server = server(node);
        let user = &server.users[0];
        let mapped_as = |name: &str| {
            let secret = Value::Secret(Secret::new(format!("{name}:{}", user.password)));
            create(node, &server.remote(0), secret, &[])
        };
        assert_eq!(mapped_as(&user.name), Err(OsError::NO_SUCH_LOGON_SESSION));
        assert_eq!(mapped_as(&format!(r"MADE-UP\\{}", user.name)), Ok(0));
    }),
    Fact::new("SMB-11", |node| {
        let (server, silent) = (server(node), node.silent_smb_server());
        let mapped = map(node, &format!(r"\\{silent}\share"), &server.users[0]);
        assert_eq!(mapped, Err(OsError::BAD_NETPATH));
    }),
    Fact::new("SMB-12", |node| {
        let server = mapped_server(node);
        node.restart();
        assert_eq!(mapped(node, &server), [server.remote(0)]);
    }),
    Fact::new("SMB-13", |node| {
        let server = mapped_server(node);
        node.restart();
        for share in [0, 1] {
            let again = map(node, &server.remote(share), &server.users[0]);
            assert_eq!(
                again,
                Err(OsError::SESSION_CREDENTIAL_CONFLICT),
                "share {share}"
            );
        }
    }),
    Fact::new("SMB-14", |node| {
        let server = mapped_server(node);
        node.restart();
        read(node, &server.remote(0)).expect("the share opens");
    }),
    Fact::new("SMB-15", |node| {
        let server = mapped_server(node);
        assert_eq!(
            map(node, &server.remote(1), &server.users[1]),
            Err(OsError::SESSION_CREDENTIAL_CONFLICT)
        );
        assert_eq!(map(node, &server.remote(1), &server.users[0]), Ok(0));
    }),
    Fact::new("SMB-16", |node| {
        let server = server(node);
        let mapped = |share| {
            create(
                node,
                &server.remote(share),
                credential(&server.users[0], "wrong"),
                &[],
            )
        };
        assert_eq!(mapped(1), Err(OsError::LOGON_FAILURE));
        assert_eq!(map(node, &server.remote(0), &server.users[0]), Ok(0));
        assert_eq!(mapped(1), Err(OsError::INVALID_PASSWORD));
    }),
    Fact::new("SMB-17", |node| {
        let server = server(node);
        let missing = format!(r"\\{}\csi-proxy-no-such-share", server.host);
        assert_eq!(
            map(node, &missing, &server.users[0]),
            Err(OsError::BAD_NET_NAME)
        );
        assert_eq!(map(node, &server.remote(0), &server.users[0]), Ok(0));
        assert_eq!(read(node, &missing), Err(OsError::BAD_NET_NAME));
    }),
    Fact::new("SMB-18", |node| {
        let server = mapped_server(node);
        assert_eq!(
            map(node, &server.remote(0), &server.users[0]),
            Err(OsError(85))
        );
    }),
    Fact::new("SMB-19", |node| {
        let server = server(node);
        let user = &server.users[0];
        let unescaped = Value::Secret(Secret::new(format!(
            r"FACTS\{}:{}",
            user.name, user.password
        )));
        assert_eq!(
            create(node, &server.remote(0), unescaped, &[]),
            Err(OsError::INVALID_PARAMETER)
        );
        assert_eq!(
            create(
                node,
                &server.remote(0),
                credential(user, &user.password),
                &[]
            ),
            Ok(0)
        );
    }),
    Fact::new("SMB-20", |node| {
        let server = server(node);
        let remote = server.remote(0);
        assert_eq!(map(node, &remote, &server.users[0]), Ok(0));
        let found = |remote: &str| {
            let wql = format!(
                "SELECT * FROM {MAPPING} WHERE RemotePath = {}",
                quoted(remote)
            );
            select(node, Namespace::Smb, &wql).len()
        };
        assert_eq!((found(&remote), found(&remote.replace('\\', "/"))), (1, 0));
    }),
    Fact::new("SMB-21", |node| {
        let server = mapped_server(node);
        unmap(node, &mappings(node, &server)[0]);
        assert!(mapped(node, &server).is_empty());
        assert_eq!(map(node, &server.remote(0), &server.users[1]), Ok(0));
    }),
    Fact::new("SMB-22", |node| {
        let server = mapped_server(node);
        read(node, &server.remote(0)).expect("the share opens");
        node.change_smb_password(&server, &server.users[0], "another password");
        assert_eq!(read(node, &server.remote(0)), Err(OsError::LOGON_FAILURE));
    }),
    Fact::new("SMB-23", |node| {
        let server = server(node);
        node.forbid_stored_credentials();
        let mapped = |persistent| {
            let secret = credential(&server.users[0], &server.users[0].password);
            create(
                node,
                &server.remote(0),
                secret,
                &[("Persistent", Value::Bool(persistent))],
            )
        };
        assert_eq!(mapped(true), Err(OsError::NO_SUCH_LOGON_SESSION));
        assert_eq!(mapped(false), Ok(0));
    }),
    Fact::new("SMB-25", |node| {
        let silent = node.silent_smb_server();
        let clock = node.os().clock();
        let (before, remote) = (
            clock.now(),
            [("RemotePath", text(&format!(r"\\{silent}\share")))],
        );
        let create = MethodCall::new(Namespace::Smb, MAPPING, "Create", &remote);
        let status = node
            .os()
            .wmi()
            .call(&create, before + Duration::from_secs(5))
            .expect("the call begins");
        assert!(matches!(status, CallStatus::StillRunning(_)));
        assert!(clock.now() - before >= Duration::from_secs(5));
    }),
    Fact::new("SMB-27", |node| {
        let server = server(node);
        let share = server.remote(0);
        let remove = |force| {
            let row = mappings(node, &server).remove(0);
            let removed = invoke(
                node,
                Namespace::Smb,
                &row.path,
                "Remove",
                &[("Force", Value::Bool(force))],
            );
            removed.map(|returned| returned.code)
        };
        for force in [false, true] {
            assert_eq!(map(node, &share, &server.users[0]), Ok(0));
            let path = NtPath::from_win32(&U16String::from_str(&format!(r"{share}\")));
            let how = Open::existing(Access::READ_DATA, Options::DIRECTORY);
            let file = node.os().open(&path, &how).expect("the share opens");
            if !force {
                assert_eq!(remove(false), Err(OsError::OPEN_FILES));
                assert_eq!(mapped(node, &server).len(), 1);
                drop(file);
            }
            assert_eq!(remove(force), Ok(0));
            assert!(mapped(node, &server).is_empty());
        }
    }),
    Fact::new("SMB-28", |node| {
        let share = node.unlistable_share();
        assert_eq!(read(node, &share), Err(OsError::ACCESS_DENIED));
        let path = NtPath::from_win32(&U16String::from_str(&format!(r"{share}\")));
        node.os()
            .open(
                &path,
                &Open::existing(Access::READ_ATTRIBUTES, Options::empty()),
            )
            .expect("its attributes can be read");
    }),
];
