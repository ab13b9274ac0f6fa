// SPDX-License-Identifier: Apache-2.0
use std::sync::mpsc;
use std::thread;

fn count(parts: u32, size: u32) -> usize {
    let (sender, receiver) = mpsc::channel();
    for part in 0..parts {
        let sender = sender.clone();
        thread::spawn(move || {
            let found = (part * size..(part + 1) * size).filter(|n| helper::is_prime(*n)).count();
            sender.send(found).unwrap();
        });
    }
    drop(sender);
    receiver.iter().sum()
}

fn main() {
    println!("{}", count(4, 250));
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn counts() {
        assert_eq!(super::count(4, 250), 168);
    }

    #[test]
    fn talks() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"hello").unwrap());
        let mut text = String::new();
        TcpStream::connect(address).unwrap().read_to_string(&mut text).unwrap();
        server.join().unwrap();
        assert_eq!(text, "hello");
    }
}
