//! The memory, CPU time and threads of a daemon with many connections: a process of its own, on sockets of the loopback
//! interface.

use std::error::Error;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::{env, fs, io};

use server::{Endpoint, EndpointSpec, Limits, Server};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use transport::address::{Address, Location};
use transport::listener::Listener;

use crate::call::{self, Call};
use crate::client::Client;
use crate::{client, daemon};

/// How many calls are made, one after the other, spread over all connections.
const CALLS: usize = 1 << 14;

/// What a daemon uses with some open connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// Its resident memory in KiB when each connection has made the calls.
    pub memory: f64,
    /// CPU time of a call in microseconds.
    pub cpu: f64,
    /// Its threads.
    pub threads: f64,
}

/// Serves the endpoint of a call, and prints the port. Does not return.
pub fn serve(call: &Call, connections: usize) -> Result<(), Box<dyn Error>> {
    daemon::start_log();
    let pipe = client::pipe(call.service);
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let executor = daemon::executor(call::node().process());
        let server = Server::new(Arc::new(executor), Limits { connections: connections + 1, ..Limits::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        let spec = EndpointSpec::of(&api::Group::ALL, false)
            .into_iter()
            .find(|spec| matches!(spec, EndpointSpec::GroupVersion(row) if row.pipe() == pipe))
            .ok_or("no such endpoint")?;
        let address = Location::Directory(PathBuf::from("/")).address(pipe)?;
        server.serve(vec![Endpoint::new(spec, Socket { listener, address })], std::future::pending()).await;
        Ok(())
    })
}

struct Socket {
    listener: TcpListener,
    address: Address,
}

impl Listener for Socket {
    type Stream = TcpStream;

    async fn accept(&mut self) -> io::Result<TcpStream> {
        let (stream, _) = self.listener.accept().await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn address(&self) -> &Address {
        &self.address
    }
}

/// A daemon that is ended when this is dropped.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures a new daemon with so many connections.
pub fn measure(call: &Call, connections: usize) -> Result<Usage, Box<dyn Error>> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["serve", call.name]).arg(connections.to_string());
    let mut served = Served(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?);
    let output = served.0.stdout.take().ok_or("no output")?;
    let mut address = String::new();
    BufReader::new(output).read_line(&mut address)?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut clients = Vec::new();
        for _ in 0..connections {
            let stream = TcpStream::connect(address.trim()).await?;
            stream.set_nodelay(true)?;
            let mut client = Client::begin(stream, call).await?;
            client.call(1).await?;
            clients.push(client);
        }
        let process = format!("/proc/{}", served.0.id());
        let before = cpu_time(&process)?;
        for _ in 0..CALLS / connections {
            for client in &mut clients {
                client.call(1).await?;
            }
        }
        let cpu = (cpu_time(&process)? - before) / f64::from(u32::try_from(CALLS / connections * connections)?);
        let status = fs::read_to_string(format!("{process}/status"))?;
        let field = |name: &str| -> Result<f64, Box<dyn Error>> {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("the field is missing")?;
            Ok(line.split_whitespace().next().unwrap_or_default().parse()?)
        };
        Ok(Usage { memory: field("VmRSS:")?, cpu, threads: field("Threads:")? })
    })
}

/// Returns the CPU time of a process so far, in microseconds.
fn cpu_time(process: &str) -> Result<f64, Box<dyn Error>> {
    /// The length of a tick, which Linux has had for all programs.
    const TICK: f64 = 10_000.0;
    let stat = fs::read_to_string(format!("{process}/stat"))?;
    // The name of the program, in parentheses, may have spaces.
    let (_, fields) = stat.rsplit_once(')').ok_or("no name")?;
    let mut times = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    let (user, system) = (times.next().ok_or("no time")??, times.next().ok_or("no time")??);
    Ok((user + system) * TICK)
}
