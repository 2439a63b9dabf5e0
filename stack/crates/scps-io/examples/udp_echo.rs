//! An echo server and its client over SCPS-TP in UDP: two ordinary blocking programs, here as two threads of one.
//!
//! `cargo run -p scps-io --example udp_echo`
//!
//! The addresses 10.8.0.x exist inside the tunnel only: no interface has them, and nothing here needs privileges.

use scps_io::{Listener, SharedStack, Stack, Stream, UdpAddressing, UdpConfig, UdpDevice};
use scps_tp::{Config, EndpointConfig, RouteConfig};
use scps_types::Seed;
use std::error::Error;
use std::io::{Read, Write};
use std::net::SocketAddrV4;

const SERVER: ([u8; 4], u16) = ([10, 8, 0, 2], 7);
const CLIENT: ([u8; 4], u16) = ([10, 8, 0, 1], 0);

/// A host's transport over a UDP socket, and that socket's address.
fn stack(
    own: [u8; 4],
    remote: Option<SocketAddrV4>,
) -> Result<(SharedStack, SocketAddrV4), Box<dyn Error + Send + Sync>> {
    let local = "127.0.0.1:0".parse()?;
    let device = UdpDevice::open(&UdpConfig { local, remote, offload: false, addressing: UdpAddressing::Learned })?;
    let at = device.local_addr()?.to_string().parse()?;
    let endpoint = EndpointConfig::default().addresses(vec![own.into()]);
    let route = RouteConfig::default().rate(None);
    // A real program takes `scps_io::entropy_seed()`: what cannot be guessed keeps forgers out.
    let stack = Stack::new(Box::new(device), endpoint, route, Seed::from_u64(u64::from(own[3])))?;
    Ok((stack.shared(), at))
}

fn serve(stack: &SharedStack) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut stream = Listener::bind(stack, SERVER, Config::modern())?.accept()?;
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(stream.finish()?),
            len => stream.write_all(&buffer[..len])?,
        }
    }
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let (told, heard) = std::sync::mpsc::channel();
    let server = std::thread::spawn(move || {
        let (stack, at) = stack(SERVER.0, None)?;
        told.send(at)?;
        serve(&stack)
    });
    let (stack, _) = stack(CLIENT.0, Some(heard.recv()?))?;
    let mut stream = Stream::connect(&stack, CLIENT, SERVER, Config::modern())?;
    stream.write_all(b"Is anybody there?")?;
    stream.shutdown_write();
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    println!("{answer}");
    server.join().map_err(|_| "the server panicked")?
}
