//! A megabyte over SCPS-TP in UDP, between two threads that could be two programs. The addresses 10.8.0.x exist inside the tunnel only.
use scps_io::{Listener, Stack, Stream, UdpDevice};
use std::io::{Read, Write};

const CLIENT: ([u8; 4], u16) = ([10, 8, 0, 1], 0);
const SERVER: ([u8; 4], u16) = ([10, 8, 0, 2], 7);

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let far = UdpDevice::loopback(None)?;
    let near = UdpDevice::loopback(Some(far.local_addr()?))?;
    let server = std::thread::spawn(move || {
        let listener = Listener::bind(&Stack::host(far, SERVER.0)?.shared(), SERVER, scps_tp::Config::modern())?;
        let (mut stream, mut received) = (listener.accept()?, Vec::new());
        stream.read_to_end(&mut received)?;
        stream.finish().map(|()| received.len()).map_err(Box::<dyn std::error::Error + Send + Sync>::from)
    });
    let stack = Stack::host(near, CLIENT.0)?.shared();
    let mut stream = Stream::connect(&stack, CLIENT, SERVER, scps_tp::Config::modern())?;
    stream.write_all(&vec![7; 1_000_000])?;
    stream.finish()?;
    println!("{} octets arrived", server.join().map_err(|_| "the server panicked")??);
    Ok(())
}
