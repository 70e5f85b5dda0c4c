//! The operations on SMB mappings, of `\\files\one`, with and without a link.

use os_sim::Sim;
use storage_ops::{Config, NewSmbGlobalMapping, Node, RemoveSmbGlobalMapping, SmbUser, UncPath};

use super::{Scenario, Spec, State, boxed, combine_all, path, secret_text, state};

pub(crate) const LINK: &str = r"C:\var\lib\kubelet\plugins\share";

/// The passwords. No text may contain them.
pub(crate) const PASSWORD: &str = "hunter2-hunter2";
const OLD: &str = "hunter2-before";

/// Builds a node with a server that takes `milliseconds` to answer.
pub(crate) fn server(milliseconds: u32) -> Sim {
    server_with(milliseconds, "")
}

/// Builds such a node with more keys of the share.
fn server_with(milliseconds: u32, keys: &str) -> Sim {
    let user =
        |name: &str| format!("[[smb_server.users]]\nname = '{name}'\npassword = '{PASSWORD}'\n");
    let toml = format!(
        "[[smb_server]]\nhost = 'files'\nanswer_takes = '{milliseconds}ms'\n\
         [[smb_server.shares]]\nname = 'one'\n{keys}[[smb_server.shares]]\nname = 'two'\n{}{}",
        user(r"domain\user"),
        user("other"),
    );
    Sim::from_toml(&toml).expect("a good description")
}

pub(crate) fn map(user: &str, password: &str, local: Option<&str>) -> NewSmbGlobalMapping {
    NewSmbGlobalMapping {
        remote: UncPath::parse(r"\\files\one\sub").expect("a remote path"),
        local: local.map(path),
        user: SmbUser::parse(user).expect("a user name"),
        password: secret_text(password),
    }
}

fn mapped(sim: Sim, user: &str) -> Sim {
    let node = Node::new(sim.process(), Config::default());
    node.run(&map(user, PASSWORD, None))
        .expect("the server answers");
    sim
}

/// Builds a node whose mapping was made before the password was changed.
fn unreadable() -> Sim {
    let sim = with(server(0), |sim| change_password(sim, OLD));
    let node = Node::new(sim.process(), Config::default());
    node.run(&map(r"domain\user", OLD, None))
        .expect("the server answers");
    with(sim, |sim| change_password(sim, PASSWORD))
}

/// Restarts Windows, and then the daemon.
fn restarted(sim: Sim) -> Sim {
    sim.reboot();
    drop(Node::start(sim.process(), Config::default()).expect("no directory is nested"));
    sim
}

/// Builds a node on which another share of the server was mapped before Windows started.
fn beside() -> Sim {
    let sim = server(0);
    let other = NewSmbGlobalMapping {
        remote: UncPath::parse(r"\\files\two").expect("a remote path"),
        ..map(r"domain\user", PASSWORD, None)
    };
    Node::new(sim.process(), Config::default())
        .run(&other)
        .expect("the server answers");
    restarted(sim)
}

/// Changes the password of the user, even if only anew, so that the server refuses the mappings
/// from before.
fn change_password(sim: &Sim, password: &str) {
    assert!(
        sim.rotate_smb_password("files", r"domain\user", password),
        "the user exists"
    );
}

fn with(sim: Sim, change: impl FnOnce(&Sim)) -> Sim {
    change(&sim);
    sim
}

const STATES: &[State] = &[
    state("not mapped", || server(0)),
    state("mapped", || mapped(server(0), r"domain\user")),
    state("mapped, with a root that may not be listed", || {
        mapped(server_with(0, "listable = false\n"), r"domain\user")
    }),
    state("mapped for another user", || {
        mapped(server(0), r"domain\other")
    }),
    state("disconnected", || {
        with(mapped(server(0), r"domain\user"), Sim::reboot)
    }),
    state("unreadable", unreadable),
    state("a server that takes 3 min", || server(180_000)),
    state("from before the start, on a server that is down", || {
        let stop = |sim: &Sim| assert!(sim.set_smb_reachable("files", false), "the server exists");
        with(restarted(mapped(server(0), r"domain\user")), stop)
    }),
    state("no server", || os_sim::node().build()),
    state("already linked", || {
        let link = |sim: &Sim| {
            sim.external()
                .symlink(LINK, r"\\files\one\sub\")
                .expect("a free name");
        };
        with(mapped(server(0), r"domain\user"), link)
    }),
    state("a directory at the link's path", || {
        with(server(0), |sim| {
            sim.external().mkdir_all(LINK).expect("a free name");
        })
    }),
];

const CHANGES: &[&str] = &[
    r"mapping \\files\one as",
    r"disk 0 partition 2 \var\lib\kubelet\plugins\share ",
];

const OPERATIONS: &[Spec] = &[
    Spec::new("NewSmbGlobalMapping", |_| {
        boxed(map(r"domain\user", PASSWORD, None))
    }),
    Spec::new("NewSmbGlobalMapping(with a link)", |_| {
        boxed(map(r"domain\user", PASSWORD, Some(LINK)))
    }),
    Spec::new("NewSmbGlobalMapping(wrong password)", |_| {
        boxed(map(r"domain\user", "hunter2-wrong", Some(LINK)))
    }),
    Spec::new("NewSmbGlobalMapping(without a user)", |_| {
        boxed(map("", "", None))
    }),
    Spec::new("RemoveSmbGlobalMapping", |_| {
        boxed(RemoveSmbGlobalMapping {
            remote: UncPath::parse(r"\\files\one\sub").expect("a remote path"),
        })
    }),
];

/// States in which another share of the server is mapped.
const CONFLICTS: &[State] = &[
    state("another share", beside),
    state("another share that is unreadable", || {
        with(beside(), |sim| change_password(sim, PASSWORD))
    }),
];

const MAPPING_CHANGES: &[&str] = &[r"mapping \\files\one as", r"mapping \\files\two as"];

const BESIDE_ANOTHER: Spec = Spec::new("NewSmbGlobalMapping(beside another)", |_| {
    boxed(map(r"domain\user", PASSWORD, None))
});

/// Returns each operation on mappings in each state of a mapping.
pub fn scenarios() -> Vec<Scenario> {
    [
        combine_all(OPERATIONS, STATES, |spec| spec.may_change(CHANGES)),
        combine_all(&[BESIDE_ANOTHER], CONFLICTS, |spec| {
            spec.may_change(MAPPING_CHANGES)
        }),
    ]
    .concat()
}
