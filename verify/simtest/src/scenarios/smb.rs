//! SMB mappings of `\\files\one`, with a link and without.

use os_sim::Sim;
use storage_ops::{Config, NewSmbGlobalMapping, Node, RemoveSmbGlobalMapping, Secret, UncPath};

use super::{ask, path};
use crate::request::{Asked, Scenario, State, all_of};

pub(crate) const LINK: &str = r"C:\var\lib\kubelet\plugins\share";

/// The passwords, which no text may show.
pub(crate) const PASSWORD: &str = "hunter2-hunter2";
const OLD: &str = "hunter2-before";

/// A node, and a server that takes `milliseconds` over each answer.
pub(crate) fn server(milliseconds: u32) -> Sim {
    let user = |name: &str| format!("[[smb_server.users]]\nname = '{name}'\npassword = '{PASSWORD}'\n");
    let toml = format!(
        "[[smb_server]]\nhost = 'files'\nslow_milliseconds = {milliseconds}\n\
         [[smb_server.shares]]\nname = 'one'\n[[smb_server.shares]]\nname = 'two'\n{}{}",
        user(r"domain\user"),
        user("other"),
    );
    Sim::from_toml(&toml).expect("a good description")
}

pub(crate) fn map(user: &str, password: &str, local: Option<&str>) -> NewSmbGlobalMapping {
    NewSmbGlobalMapping {
        remote: UncPath::parse(r"\\files\one\sub").expect("a remote path"),
        local: local.map(path),
        username: user.into(),
        password: Secret::new(password.into()),
    }
}

fn mapped(sim: Sim, user: &str) -> Sim {
    let node = Node::new(sim.process(), Config::default());
    node.run(&map(user, PASSWORD, None)).expect("a server that answers");
    sim
}

/// With the mapping made before the password was changed.
fn unreadable() -> Sim {
    let sim = server(0);
    assert!(sim.rotate_smb_password("files", r"domain\user", OLD), "there is the user");
    let node = Node::new(sim.process(), Config::default());
    node.run(&map(r"domain\user", OLD, None)).expect("a server that answers");
    assert!(sim.rotate_smb_password("files", r"domain\user", PASSWORD), "there is the user");
    sim
}

fn with(sim: Sim, change: impl FnOnce(&Sim)) -> Sim {
    change(&sim);
    sim
}

const STATES: &[State] = &[
    State { name: "not mapped", build: || server(0) },
    State { name: "mapped", build: || mapped(server(0), r"domain\user") },
    State { name: "mapped for another user", build: || mapped(server(0), "other") },
    State { name: "disconnected", build: || with(mapped(server(0), r"domain\user"), Sim::reboot) },
    State { name: "unreadable", build: unreadable },
    State { name: "a server that takes 3 min", build: || server(180_000) },
    State { name: "no server", build: || os_sim::node().build() },
    State {
        name: "linked already",
        build: || {
            let link = |sim: &Sim| sim.external().symlink(LINK, r"\\files\one\sub\").expect("a free name");
            with(mapped(server(0), r"domain\user"), link)
        },
    },
    State {
        name: "a directory where the link goes",
        build: || with(server(0), |sim| sim.external().mkdir_all(LINK).expect("a free name")),
    },
];

const CHANGES: &[&str] = &[r"mapping \\files\one as", r"disk 0 partition 2 \var\lib\kubelet\plugins\share "];

const OPERATIONS: &[Asked] = &[
    Asked::new("NewSmbGlobalMapping", |_| ask(map(r"domain\user", PASSWORD, None))).changing(CHANGES),
    Asked::new("NewSmbGlobalMapping(with a link)", |_| ask(map(r"domain\user", PASSWORD, Some(LINK))))
        .changing(CHANGES),
    Asked::new("NewSmbGlobalMapping(wrong password)", |_| ask(map(r"domain\user", "hunter2-wrong", Some(LINK))))
        .changing(CHANGES),
    Asked::new("RemoveSmbGlobalMapping", |_| {
        ask(RemoveSmbGlobalMapping { remote: UncPath::parse(r"\\files\one\sub").expect("a remote path") })
    })
    .changing(CHANGES),
];

/// Each operation on mappings in each state of a mapping.
pub fn scenarios() -> Vec<Scenario> {
    all_of(OPERATIONS, STATES)
}
