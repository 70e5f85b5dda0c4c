//! Finding the service that serves the pipes, whatever its name.
//!
//! Distributions name the service of the Go program differently, and some start the program through
//! a wrapper, such as nssm, whose file other services share (docs/distributions.md). Any account can
//! create a pipe of csi-proxy's while nobody serves it, so the process that serves the pipes is
//! believed only if its program and its service say that it is csi-proxy.

use std::fmt;

use ::doctor::program_of;

use super::NAME;

/// A service that is registered on the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registered {
    /// The name of the service.
    pub name: String,
    /// The command line that Windows starts.
    pub command_line: String,
    /// The program that a wrapper starts: `Parameters\Application` in the service's registry key.
    pub application: Option<String>,
    /// The id of the process of the service, 0 if the service does not run.
    pub process: u32,
    /// Whether other services may run in that process, as in svchost.exe.
    pub shares_process: bool,
    /// The names of the services on which this service depends.
    pub dependencies: Vec<String>,
}

/// A process that serves a pipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The id of the process.
    pub process: u32,
    /// The path of its program, if Windows returns it.
    pub program: Option<String>,
}

/// The service of csi-proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The name of the service.
    pub name: String,
    /// The path of the program that serves the pipes.
    pub program: String,
    /// The path of the wrapper that starts the program. Other services may use the same file.
    pub wrapper: Option<String>,
    /// The services that Windows does not start without this one.
    pub dependents: Vec<String>,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, program, .. } = self;
        match &self.wrapper {
            None => write!(f, "service {name}, which starts {program}"),
            Some(wrapper) => write!(
                f,
                "service {name}, whose wrapper {wrapper} starts {program}"
            ),
        }
    }
}

impl Found {
    /// Returns the service as JSON, for scripts.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "name": self.name,
            "program": self.program,
            "wrapper": self.wrapper,
            "dependents": self.dependents,
        })
    }
}

/// What could not be read of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// The list of services, and the error.
    Services(String),
    /// The process that serves this pipe, and the error.
    Pipe(String, String),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Services(error) => {
                write!(f, "cannot list the services of this node: {error}")
            }
            Self::Pipe(name, error) => {
                write!(f, "cannot find out who serves the pipe {name}: {error}")
            }
        }
    }
}

impl std::error::Error for Unread {}

/// Returns the service that serves the pipes or, if no process serves a pipe, the service that would
/// serve the pipes if it ran. Returns `None` if no such service is registered.
///
/// Errors: the process that serves the pipes is not csi-proxy, or has no service of its own; several
/// processes serve pipes; several services would.
pub fn find(services: &[Registered], servers: &[Server]) -> Result<Option<Found>, String> {
    match servers {
        [] => of_registered(services),
        [server] => of_server(services, server).map(Some),
        several => {
            let several: Vec<_> = several
                .iter()
                .map(|server| named(services, server))
                .collect();
            Err(format!(
                "several processes serve the pipes: {}; stop all but one",
                several.join("; ")
            ))
        }
    }
}

/// Returns whether a program is csi-proxy, also the Go program, by the name of its file.
fn is_csi_proxy(program: &str) -> bool {
    let file = program.rsplit(['\\', '/']).next().unwrap_or_default();
    let file = file.to_ascii_lowercase();
    let name = file.strip_suffix(".exe");
    name.is_some_and(|name| name.starts_with("csi-proxy"))
}

fn is_same(one: &str, other: &str) -> bool {
    one.replace('/', "\\")
        .eq_ignore_ascii_case(&other.replace('/', "\\"))
}

/// Returns the program of a service behind its wrapper, if it has one.
fn program(service: &Registered) -> &str {
    match &service.application {
        Some(application) => application.trim_matches('"'),
        None => program_of(&service.command_line),
    }
}

fn found(services: &[Registered], service: &Registered, program: &str) -> Found {
    let wrapper = service.application.is_some();
    let depends = |other: &&Registered| {
        let mut names = other.dependencies.iter();
        names.any(|name| name.eq_ignore_ascii_case(&service.name))
    };
    let dependents = services.iter().filter(depends);
    Found {
        name: service.name.clone(),
        program: program.to_owned(),
        wrapper: wrapper.then(|| program_of(&service.command_line).to_owned()),
        dependents: dependents.map(|other| other.name.clone()).collect(),
    }
}

fn is_ours(service: &Registered) -> bool {
    service.name.eq_ignore_ascii_case(NAME) || is_csi_proxy(program(service))
}

fn of_registered(services: &[Registered]) -> Result<Option<Found>, String> {
    let ours: Vec<_> = services.iter().filter(|service| is_ours(service)).collect();
    match &ours[..] {
        [] => Ok(None),
        [service] => Ok(Some(found(services, service, program(service)))),
        several => {
            let several: Vec<_> = several
                .iter()
                .map(|service| found(services, service, program(service)).to_string())
                .collect();
            Err(format!(
                "several services start csi-proxy: {}; delete all but one with sc.exe delete",
                several.join("; ")
            ))
        }
    }
}

fn of_server(services: &[Registered], server: &Server) -> Result<Found, String> {
    let Some(image) = server
        .program
        .as_deref()
        .filter(|image| is_csi_proxy(image))
    else {
        return Err(format!(
            "the pipes are served by {}, which is not csi-proxy; find out why it serves them, and \
             stop it",
            named(services, server)
        ));
    };
    let of_process =
        |service: &&Registered| service.process == server.process && !service.shares_process;
    let of_wrapper = |service: &&Registered| {
        let application = service.application.as_deref();
        service.process != 0
            && !service.shares_process
            && application.is_some_and(|application| is_same(application.trim_matches('"'), image))
    };
    let service = services.iter().find(of_process);
    match service.or_else(|| services.iter().find(of_wrapper)) {
        Some(service) => Ok(found(services, service, image)),
        None => Err(format!(
            "the pipes are served by {}, which has no service of its own; it may run in a \
             HostProcess container{}",
            named(services, server),
            others(services)
        )),
    }
}

/// Says how to remove the services of csi-proxy that do not serve the pipes.
fn others(services: &[Registered]) -> String {
    let ours = services.iter().filter(|service| is_ours(service));
    let others = ours.map(|service| {
        let found = found(services, service, program(service));
        format!(
            ". {found}, does not serve them; to remove it: sc.exe delete {}",
            found.name
        )
    });
    others.collect()
}

/// Names the process, its program, and the services that run in it.
fn named(services: &[Registered], server: &Server) -> String {
    let program = server.program.as_deref();
    let names: Vec<_> = services
        .iter()
        .filter(|service| service.process == server.process)
        .map(|service| service.name.as_str())
        .collect();
    let of = match &names[..] {
        [] => String::new(),
        [name] => format!(" of service {name}"),
        several => format!(" of services {}", several.join(", ")),
    };
    format!(
        "process {}{of}, {}",
        server.process,
        program.unwrap_or("a program that Windows does not name")
    )
}

#[cfg(test)]
mod tests {
    use super::{Found, Registered, Server, Unread, find};

    fn service(name: &str, command_line: &str, process: u32) -> Registered {
        Registered {
            name: name.to_owned(),
            command_line: command_line.to_owned(),
            process,
            ..Registered::default()
        }
    }

    fn wrapped(name: &str, application: &str, process: u32) -> Registered {
        Registered {
            application: Some(application.to_owned()),
            ..service(name, r"C:\k\nssm.exe", process)
        }
    }

    fn server(process: u32, program: &str) -> Server {
        Server {
            process,
            program: Some(program.to_owned()),
        }
    }

    fn names(found: Result<Option<Found>, String>) -> (String, String, Option<String>) {
        let found = found.expect("no error").expect("a service");
        (found.name, found.program, found.wrapper)
    }

    /// The services of an AKS node, as `Azure/AgentBaker` creates them.
    fn aks(process: u32) -> Vec<Registered> {
        let mut kubelet = wrapped("Kubelet", r"C:\Windows\System32\powershell.exe", 300);
        kubelet.dependencies = vec!["containerd".to_owned(), "CSI-PROXY".to_owned()];
        vec![
            service(
                "containerd",
                r"C:\containerd\containerd.exe --run-service",
                200,
            ),
            kubelet,
            wrapped("csi-proxy", r"C:\k\csi-proxy.exe", process),
        ]
    }

    #[test]
    fn a_service_is_found_by_its_process_whatever_its_name() {
        let upstream = r#""C:\etc\kubernetes\node\bin\csi-proxy.exe" -windows-service"#;
        let openshift =
            r"C:\k\csi-proxy.exe -log_file=C:\var\log\csi-proxy\csi-proxy.log -windows-service";
        for (name, line, image) in [
            (
                "csiproxy",
                upstream,
                r"C:\etc\kubernetes\node\bin\csi-proxy.exe",
            ),
            ("csi-proxy", openshift, r"C:\K\CSI-PROXY.EXE"),
        ] {
            let services = [
                service("other", r"C:\k\kubelet.exe", 9),
                service(name, line, 7),
            ];
            let found = names(find(&services, &[server(7, image)]));
            assert_eq!(found, (name.to_owned(), image.to_owned(), None));
        }
    }

    #[test]
    fn the_program_of_a_wrapper_is_found_and_never_the_wrapper() {
        let image = r"c:\k\csi-proxy.exe";
        // The process of the service is the wrapper, 400, which has started process 401.
        let found = find(&aks(400), &[server(401, image)])
            .expect("no error")
            .expect("a service");
        assert_eq!(
            found.to_string(),
            r"service csi-proxy, whose wrapper C:\k\nssm.exe starts c:\k\csi-proxy.exe"
        );
        assert_eq!(found.dependents, ["Kubelet"]);
        // Stopped, the wrapper's service still names its program.
        let stopped = find(&aks(0), &[]).expect("no error").expect("a service");
        assert_eq!(
            (&*stopped.name, &*stopped.program),
            ("csi-proxy", r"C:\k\csi-proxy.exe")
        );
        assert_eq!(stopped.to_json()["wrapper"], r"C:\k\nssm.exe");
        let engine = wrapped("csi-proxy-server", r#""C:\k\csi-proxy-server.exe""#, 5);
        let found = names(find(&[engine], &[server(6, r"C:\k\csi-proxy-server.exe")]));
        assert_eq!(found.0, "csi-proxy-server");
    }

    #[test]
    fn a_process_that_is_not_csi_proxy_is_named_and_never_replaced() {
        let refused = |services: &[Registered], server: Server| {
            find(services, &[server]).expect_err("an error")
        };
        let shared = |name: &str| Registered {
            shares_process: true,
            ..service(name, r"C:\Windows\system32\svchost.exe -k netsvcs", 8)
        };
        // Any user may create a pipe of such a name.
        let svchost = server(8, r"C:\Windows\System32\svchost.exe");
        assert_eq!(
            refused(&[shared("BITS"), shared("wuauserv")], svchost),
            "the pipes are served by process 8 of services BITS, wuauserv, \
             C:\\Windows\\System32\\svchost.exe, which is not csi-proxy; find out why it serves \
             them, and stop it"
        );
        let wrapper = refused(&aks(400), server(300, r"C:\k\nssm.exe"));
        assert!(wrapper.starts_with("the pipes are served by process 300 of service Kubelet, "));
        let user = refused(&aks(400), server(77, r"C:\Users\eve\pipe.exe"));
        assert!(user.contains(r"process 77, C:\Users\eve\pipe.exe, which is not csi-proxy"));
        let unknown = Server {
            process: 5,
            program: None,
        };
        let unknown = refused(&aks(400), unknown);
        assert!(unknown.contains("process 5, a program that Windows does not name, "));
    }

    #[test]
    fn a_process_without_a_service_of_its_own_is_named() {
        let of_container = server(50, r"C:\hpc\csi-proxy.exe");
        let none = "the pipes are served by process 50, C:\\hpc\\csi-proxy.exe, which has no service of \
                    its own; it may run in a HostProcess container";
        let refused = |services: &[Registered]| {
            find(services, std::slice::from_ref(&of_container)).expect_err("an error")
        };
        assert_eq!(refused(&[]), none);
        // A service that does not run, or that starts another file, does not serve the pipes.
        let wrapped = ". service csi-proxy, whose wrapper C:\\k\\nssm.exe starts \
                       C:\\k\\csi-proxy.exe, does not serve them; to remove it: sc.exe delete \
                       csi-proxy";
        assert_eq!(refused(&aks(0)), format!("{none}{wrapped}"));
        assert_eq!(refused(&aks(400)), format!("{none}{wrapped}"));
        let idle = refused(&[service("csiproxy", r"C:\hpc\csi-proxy.exe", 0)]);
        assert!(
            idle.ends_with("to remove it: sc.exe delete csiproxy"),
            "{idle}"
        );
        let renamed = Registered {
            shares_process: true,
            ..service("shared", r"C:\hpc\csi-proxy.exe", 50)
        };
        assert!(find(&[renamed], &[of_container]).is_err());
    }

    #[test]
    fn what_could_not_be_read_is_named() {
        let pipe = Unread::Pipe(
            "csi-proxy-disk-v1".to_owned(),
            "access is denied".to_owned(),
        );
        assert_eq!(
            pipe.to_string(),
            "cannot find out who serves the pipe csi-proxy-disk-v1: access is denied"
        );
        assert_eq!(
            Unread::Services("access is denied".to_owned()).to_string(),
            "cannot list the services of this node: access is denied"
        );
    }

    #[test]
    fn a_choice_between_several_is_left_to_the_administrator() {
        let two = [
            service("csiproxy", r"C:\a\csi-proxy.exe -windows-service", 0),
            wrapped("csi-proxy", r"C:\k\csi-proxy.exe", 0),
        ];
        assert_eq!(
            find(&two, &[]).expect_err("an error"),
            "several services start csi-proxy: service csiproxy, which starts C:\\a\\csi-proxy.exe; \
             service csi-proxy, whose wrapper C:\\k\\nssm.exe starts C:\\k\\csi-proxy.exe; delete \
             all but one with sc.exe delete"
        );
        let servers = [
            server(1, r"C:\a\csi-proxy.exe"),
            server(2, r"C:\b\csi-proxy.exe"),
        ];
        assert_eq!(
            find(&[], &servers).expect_err("an error"),
            "several processes serve the pipes: process 1, C:\\a\\csi-proxy.exe; process 2, \
             C:\\b\\csi-proxy.exe; stop all but one"
        );
        // The service csiproxy may start a program of another name.
        let renamed = service("CSIPROXY", r"C:\a\proxy.exe", 0);
        assert_eq!(names(find(&[renamed], &[])).0, "CSIPROXY");
        assert_eq!(
            find(&[service("kubelet", r"C:\k\kubelet.exe", 3)], &[]),
            Ok(None)
        );
    }
}
