//! SMB global mappings: `SMB`.

use std::time::Duration;

use os::{Access, CallStatus, MethodCall, Namespace, NtPath, Open, Options, OsError, Secret, U16String, Value};

use super::network::text;
use super::network::{MAPPING, create, credential, invoke, map, mapped, mappings, quoted, read, select, server, unmap};
use crate::fact::Fact;

pub(crate) const FACTS: &[Fact] = &[
    Fact::published(
        "SMB-01",
        "MSFT_SmbGlobalMapping.Create takes Credential, DenyAccess, FullAccess, LocalPath, Persistent, RemotePath, \
         RequireIntegrity, RequirePrivacy and UseWriteThrough, and Remove takes only Force.",
        "MW MSFT_SmbGlobalMapping",
        |node| {
            const NOT_A_PARAMETER: OsError = OsError(0x8004_102f);
            let server = server(node);
            let secret = credential(&server.users[0], &server.users[0].password);
            let rest = [
                ("DenyAccess", Value::Null),
                ("FullAccess", Value::Null),
                ("LocalPath", Value::Null),
                ("Persistent", Value::Bool(false)),
                ("RequireIntegrity", Value::Bool(false)),
                ("RequirePrivacy", Value::Bool(false)),
                ("UseWriteThrough", Value::Bool(false)),
            ];
            let unknown = [("UserName", text("anna"))];
            assert_eq!(create(node, &server.remote(0), secret.clone(), &unknown), Err(NOT_A_PARAMETER));
            assert_eq!(create(node, &server.remote(0), secret, &rest), Ok(0));
            let row = mappings(node, &server).remove(0);
            let refused = invoke(node, Namespace::Smb, &row.path, "Remove", &[("RemotePath", text(&server.remote(0)))]);
            assert_eq!(refused.err(), Some(NOT_A_PARAMETER));
            unmap(node, &row);
        },
    ),
    Fact::published(
        "SMB-02",
        "The row of a mapping has LocalPath, RemotePath, RequireIntegrity, RequirePrivacy, Status and \
         UseWriteThrough, and no user.",
        "MW MSFT_SmbGlobalMapping",
        |node| {
            let server = server(node);
            map(node, &server.remote(0), &server.users[0]).expect("the share is mapped");
            let row = mappings(node, &server).remove(0);
            for name in ["LocalPath", "RemotePath", "RequireIntegrity", "RequirePrivacy", "Status", "UseWriteThrough"] {
                assert!(row.properties.contains_key(name), "{name}");
            }
            assert!(!row.properties.keys().any(|name| name.contains("User") || name.contains("Cred")), "{row:?}");
        },
    ),
    Fact::published(
        "SMB-04",
        "A persistent mapping is made again after a restart, and one that is not persistent is gone.",
        "PS New-SmbGlobalMapping; kubernetes-csi/csi-driver-smb issues/219",
        |node| {
            let server = server(node);
            for (share, persistent) in [(0, true), (1, false)] {
                let secret = credential(&server.users[0], &server.users[0].password);
                let options = [("Persistent", Value::Bool(persistent))];
                assert_eq!(create(node, &server.remote(share), secret, &options), Ok(0));
            }
            node.restart();
            assert_eq!(mapped(node, &server), [server.remote(0)]);
        },
    ),
    Fact::published(
        "SMB-05",
        "A failed Create is an error with the Win32 code that the provider posts, such as INVALID_PARAMETER (87), \
         and not a return value.",
        "kubernetes-csi/csi-driver-smb issues/219; kubernetes-csi/csi-driver-smb issues/453",
        |node| {
            let server = server(node);
            let mapped = map(node, &format!(r"{}\", server.remote(0)), &server.users[0]);
            assert_eq!(mapped, Err(OsError::INVALID_PARAMETER));
        },
    ),
    Fact::published(
        "SMB-06",
        "Mapping a directory of a share that is mapped fails with SESSION_CREDENTIAL_CONFLICT (1219), even for the \
         same user.",
        "kubernetes-csi/csi-driver-smb issues/219",
        |node| {
            let server = server(node);
            assert_eq!(map(node, &server.remote(0), &server.users[0]), Ok(0));
            let below = map(node, &format!(r"{}\a", server.remote(0)), &server.users[0]);
            assert_eq!(below, Err(OsError::SESSION_CREDENTIAL_CONFLICT));
        },
    ),
    Fact::published(
        "SMB-07",
        "Mapping a remote path with a final backslash fails with INVALID_PARAMETER (87).",
        "kubernetes-csi/csi-driver-smb issues/453; kubernetes-csi/csi-proxy issues/206",
        |node| {
            let server = server(node);
            let with_backslash = map(node, &format!(r"{}\", server.remote(0)), &server.users[0]);
            assert_eq!(with_backslash, Err(OsError::INVALID_PARAMETER));
            assert_eq!(map(node, &server.remote(0), &server.users[0]), Ok(0));
        },
    ),
    Fact::published(
        "SMB-08",
        "While one directory of a share is mapped, another directory can be mapped for the same user; after a \
         restart, this fails with SESSION_CREDENTIAL_CONFLICT (1219).",
        "kubernetes-csi/csi-driver-smb known-issues.md; kubernetes-csi/csi-driver-smb issues/1007",
        |node| {
            let server = server(node);
            let [a, b] = ["a", "b"].map(|name| format!(r"{}\{name}", server.remote(0)));
            for remote in [&a, &b] {
                assert_eq!(map(node, remote, &server.users[0]), Ok(0));
            }
            let mut rows = mappings(node, &server);
            rows.retain(|row| row.text("RemotePath").is_some_and(|remote| remote.eq_ignore_ascii_case(&b)));
            unmap(node, &rows.pop().expect("the mapping"));
            node.restart();
            assert_eq!(map(node, &b, &server.users[0]), Err(OsError::SESSION_CREDENTIAL_CONFLICT));
        },
    ),
    Fact::published(
        "SMB-09",
        "Mapping for a user name without a domain fails with NO_SUCH_LOGON_SESSION (1312); any domain before the \
         name prevents that, even a domain that does not exist.",
        "kubernetes-csi/csi-driver-smb known-issues.md; MicrosoftDocs/windows-powershell-docs issues/2655",
        |node| {
            let server = server(node);
            let user = &server.users[0];
            let mapped_as = |name: &str| {
                let secret = Value::Secret(Secret::new(format!("{name}:{}", user.password)));
                create(node, &server.remote(0), secret, &[])
            };
            assert_eq!(mapped_as(&user.name), Err(OsError::NO_SUCH_LOGON_SESSION));
            assert_eq!(mapped_as(&format!(r"MADE-UP\\{}", user.name)), Ok(0));
        },
    ),
    Fact::published(
        "SMB-11",
        "Mapping a share of a server that does not answer fails with BAD_NETPATH (53).",
        "kubernetes-csi/csi-driver-smb deploy/example/windows/README.md; kubernetes-csi/csi-driver-smb issues/294",
        |node| {
            let (server, silent) = (server(node), node.silent_smb_server());
            let mapped = map(node, &format!(r"\\{silent}\share"), &server.users[0]);
            assert_eq!(mapped, Err(OsError::BAD_NETPATH));
        },
    ),
    Fact::published(
        "SMB-12",
        "A mapping is persistent if Persistent is left out.",
        "kubernetes-csi/csi-driver-smb issues/219",
        |node| {
            let server = server(node);
            assert_eq!(map(node, &server.remote(0), &server.users[0]), Ok(0));
            node.restart();
            assert_eq!(mapped(node, &server), [server.remote(0)]);
        },
    ),
    Fact::published(
        "SMB-13",
        "After a restart, mapping another share of a server or the same share again fails with \
         SESSION_CREDENTIAL_CONFLICT (1219), even for the same user.",
        "kubernetes-csi/csi-driver-smb issues/219",
        |node| {
            let server = server(node);
            assert_eq!(map(node, &server.remote(0), &server.users[0]), Ok(0));
            node.restart();
            for share in [0, 1] {
                let again = map(node, &server.remote(share), &server.users[0]);
                assert_eq!(again, Err(OsError::SESSION_CREDENTIAL_CONFLICT), "share {share}");
            }
        },
    ),
    Fact::published(
        "SMB-14",
        "After a restart, the share of a persistent mapping is opened at its first use with the stored credentials.",
        "kubernetes-csi/csi-driver-smb issues/219",
        |node| {
            let server = server(node);
            assert_eq!(map(node, &server.remote(0), &server.users[0]), Ok(0));
            node.restart();
            read(node, &server.remote(0)).expect("the share opens");
        },
    ),
    Fact::published(
        "SMB-15",
        "Mapping a share for another user than that of another share of the same server fails with \
         SESSION_CREDENTIAL_CONFLICT (1219), and for the same user it succeeds.",
        "W32 system-error-codes--1000-1299-; kubernetes-csi/csi-driver-smb issues/38",
        |node| {
            let server = server(node);
            assert_eq!(map(node, &server.remote(0), &server.users[0]), Ok(0));
            assert_eq!(map(node, &server.remote(1), &server.users[1]), Err(OsError::SESSION_CREDENTIAL_CONFLICT));
            assert_eq!(map(node, &server.remote(1), &server.users[0]), Ok(0));
        },
    ),
    Fact::assumed(
        "SMB-16",
        "Mapping with a wrong password fails with INVALID_PASSWORD (86) if the user has a session with the server, \
         and with LOGON_FAILURE (1326) otherwise.",
        "No source says when each code comes: the operation reports both as a refusal of the credentials.",
        |node| {
            let server = server(node);
            let mapped = |share| create(node, &server.remote(share), credential(&server.users[0], "wrong"), &[]);
            assert_eq!(mapped(1), Err(OsError::LOGON_FAILURE));
            assert_eq!(map(node, &server.remote(0), &server.users[0]), Ok(0));
            assert_eq!(mapped(1), Err(OsError::INVALID_PASSWORD));
        },
    ),
    Fact::assumed(
        "SMB-17",
        "Mapping or opening a share that its server does not have fails with BAD_NET_NAME (67).",
        "The server answers STATUS_BAD_NETWORK_NAME (MS-SMB2 3.3.5.7), whose Win32 code this is by its message; no \
         page names the calls that return it. With another code, the operation leaves an existing mapping as it is \
         and reports the code.",
        |node| {
            let server = server(node);
            let missing = format!(r"\\{}\csi-proxy-no-such-share", server.host);
            assert_eq!(map(node, &missing, &server.users[0]), Err(OsError::BAD_NET_NAME));
            assert_eq!(map(node, &server.remote(0), &server.users[0]), Ok(0));
            assert_eq!(read(node, &missing), Err(OsError::BAD_NET_NAME));
        },
    ),
    Fact::assumed(
        "SMB-18",
        "Mapping a share again for the same user fails with ALREADY_ASSIGNED (85).",
        "No source names the code. The operation looks for the mapping first and holds the lock of the share, so it \
         meets the code only if another program maps the share at that moment, and the next request finds that \
         mapping.",
        |node| {
            let server = server(node);
            assert_eq!(map(node, &server.remote(0), &server.users[0]), Ok(0));
            assert_eq!(map(node, &server.remote(0), &server.users[0]), Err(OsError(85)));
        },
    ),
    Fact::published(
        "SMB-19",
        "Credential is the user name, with a backslash before each backslash and colon, then a colon, then the \
         password unchanged.",
        "kubernetes-csi/csi-proxy pkg/os/smb/api.go",
        |node| {
            let server = server(node);
            let user = &server.users[0];
            let unescaped = Value::Secret(Secret::new(format!(r"FACTS\{}:{}", user.name, user.password)));
            assert_eq!(create(node, &server.remote(0), unescaped, &[]), Err(OsError::INVALID_PARAMETER));
            assert_eq!(create(node, &server.remote(0), credential(user, &user.password), &[]), Ok(0));
        },
    ),
    Fact::published(
        "SMB-20",
        "A query for RemotePath finds a mapping if the path has backslashes, and not if it has slashes.",
        "kubernetes-csi/csi-driver-smb pull/163",
        |node| {
            let server = server(node);
            let remote = server.remote(0);
            assert_eq!(map(node, &remote, &server.users[0]), Ok(0));
            let found = |remote: &str| {
                let wql = format!("SELECT * FROM {MAPPING} WHERE RemotePath = {}", quoted(remote));
                select(node, Namespace::Smb, &wql).len()
            };
            assert_eq!((found(&remote), found(&remote.replace('\\', "/"))), (1, 0));
        },
    ),
    Fact::published(
        "SMB-21",
        "Remove with Force ends a mapping, and its share can then be mapped for another user.",
        "MW MSFT_SmbGlobalMapping; kubernetes-csi/csi-driver-smb known-issues.md",
        |node| {
            let server = server(node);
            assert_eq!(map(node, &server.remote(0), &server.users[0]), Ok(0));
            unmap(node, &mappings(node, &server)[0]);
            assert!(mapped(node, &server).is_empty());
            assert_eq!(map(node, &server.remote(0), &server.users[1]), Ok(0));
        },
    ),
    Fact::assumed(
        "SMB-22",
        "Opening a share whose mapping has an old password fails with LOGON_FAILURE (1326).",
        "Only the code is assumed. The operation replaces the mapping for each code that blames the credentials: 86, \
         1326 to 1331, 1907 and 1909.",
        |node| {
            let server = server(node);
            assert_eq!(map(node, &server.remote(0), &server.users[0]), Ok(0));
            read(node, &server.remote(0)).expect("the share opens");
            node.change_smb_password(&server, &server.users[0], "another password");
            assert_eq!(read(node, &server.remote(0)), Err(OsError::LOGON_FAILURE));
        },
    ),
    Fact::assumed(
        "SMB-23",
        "Where Windows must not store credentials, a persistent mapping with credentials fails with \
         NO_SUCH_LOGON_SESSION (1312), and a mapping that is not persistent succeeds.",
        "The page of CredWrite names the code for a logon session without a set of credentials. The operation tries \
         again without Persistent after 1312, and reports the first code if that fails too.",
        |node| {
            let server = server(node);
            node.forbid_stored_credentials();
            let mapped = |persistent| {
                let secret = credential(&server.users[0], &server.users[0].password);
                create(node, &server.remote(0), secret, &[("Persistent", Value::Bool(persistent))])
            };
            assert_eq!(mapped(true), Err(OsError::NO_SUCH_LOGON_SESSION));
            assert_eq!(mapped(false), Ok(0));
        },
    ),
    Fact::assumed(
        "SMB-24",
        "The row of a mapping has the RequirePrivacy that was passed to Create.",
        "The name says it. Nothing depends on the row.",
        |node| {
            let server = server(node);
            for (share, privacy) in [(0, true), (1, false)] {
                let secret = credential(&server.users[0], &server.users[0].password);
                assert_eq!(
                    create(node, &server.remote(share), secret, &[("RequirePrivacy", Value::Bool(privacy))]),
                    Ok(0)
                );
                let mut rows = mappings(node, &server);
                rows.retain(|row| row.text("RemotePath") == Some(&server.remote(share)));
                assert_eq!(rows.pop().expect("the mapping").bool("RequirePrivacy"), Some(privacy));
            }
        },
    ),
    Fact::published(
        "SMB-25",
        "Mapping a share of a server that does not answer takes more than 5 s.",
        "kubernetes-csi/csi-driver-smb issues/294",
        |node| {
            let silent = node.silent_smb_server();
            let clock = node.os().clock();
            let (before, remote) = (clock.now(), [("RemotePath", text(&format!(r"\\{silent}\share")))]);
            let create = MethodCall::new(Namespace::Smb, MAPPING, "Create", &remote);
            let status = node.os().wmi().call(&create, before + Duration::from_secs(5)).expect("the call begins");
            assert!(matches!(status, CallStatus::StillRunning(_)));
            assert!(clock.now() - before >= Duration::from_secs(5));
        },
    ),
    Fact::assumed(
        "SMB-26",
        "Opening a directory that a mapped share does not have fails with FILE_NOT_FOUND (2).",
        "As with a local directory. The operation takes PATH_NOT_FOUND in the same way, and opens the share itself \
         as well.",
        |node| {
            let server = server(node);
            assert_eq!(map(node, &server.remote(0), &server.users[0]), Ok(0));
            let missing = read(node, &format!(r"{}\csi-proxy-no-such-directory", server.remote(0)));
            assert_eq!(missing, Err(OsError::FILE_NOT_FOUND));
        },
    ),
    Fact::published(
        "SMB-27",
        "Remove without Force fails with OPEN_FILES (2401) while a file is open on the share, and the mapping stays.",
        "learn.microsoft.com/previous-versions/windows/desktop/smb/msft-smbmapping-remove; SDK WNetCancelConnection2W",
        |node| {
            let server = server(node);
            let share = server.remote(0);
            let remove = |force| {
                let row = mappings(node, &server).remove(0);
                let removed = invoke(node, Namespace::Smb, &row.path, "Remove", &[("Force", Value::Bool(force))]);
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
        },
    ),
    Fact::published(
        "SMB-28",
        "Opening a directory of a share for listing needs the right FILE_LIST_DIRECTORY and fails with ACCESS_DENIED \
         (5) without it; opening it for its attributes needs only FILE_READ_ATTRIBUTES.",
        "W32 file-access-rights-constants",
        |node| {
            let share = node.unlistable_share();
            assert_eq!(read(node, &share), Err(OsError::ACCESS_DENIED));
            let path = NtPath::from_win32(&U16String::from_str(&format!(r"{share}\")));
            node.os()
                .open(&path, &Open::existing(Access::READ_ATTRIBUTES, Options::empty()))
                .expect("its attributes can be read");
        },
    ),
];
