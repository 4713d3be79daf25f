//! `pais publish` to a service that ends a connection without an answer.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cli_dir::CliDir;

/// A service with a publication, which answers no upload.
struct UnansweringService {
    url: String,
    uploads: Arc<AtomicUsize>,
}

impl UnansweringService {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let uploads = Arc::new(AtomicUsize::new(0));
        let counted = uploads.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if !answer(stream.unwrap()) {
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self { url, uploads }
    }
}

/// Answers with the publication; an upload is read and not answered. Returns whether it was none, or had no rows.
fn answer(mut stream: TcpStream) -> bool {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() > 0 {
        head.push(byte[0]);
    }
    if head.starts_with(b"POST") {
        return stream.read(&mut [0; 1024]).unwrap() == 0;
    }
    let publication =
        r#"{"id": "1", "name": "p", "dataset_id": "2", "trigger": "manual", "paused": false}"#;
    let body = format!(r#"{{"items": [{publication}], "next_cursor": null}}"#);
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{body}"
    )
    .unwrap();
    true
}

/// A second attempt would send what is left of a pipe, or wait for its next writer.
#[test]
fn a_file_is_sent_again_and_a_pipe_is_not() {
    let dir = CliDir::new();
    dir.write("raw.csv", &"age\n".repeat(1000));
    for (before, file, uploads) in [
        ("", "raw.csv", 3),
        ("mkfifo pipe.csv; cat raw.csv > pipe.csv & ", "pipe.csv", 1),
    ] {
        let service = UnansweringService::start();
        let (program, url) = (env!("CARGO_BIN_EXE_pais"), &service.url);
        let line = format!(
            "{before}PAIS_TOKEN=x timeout 60 {program} publish --publication p --url {url} {file}"
        );
        let (status, text) = dir.bash(&line);
        assert_eq!(status, Some(1), "{line}: {text}");
        assert_eq!(service.uploads.load(Ordering::Relaxed), uploads, "{text}");
    }
}
