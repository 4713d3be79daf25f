//! Executors in this process, compared with the engine, and executors that lie.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::Method;
use pais_anonymize::{ColumnParts, CountError, Observer, RowCounter, Unobserved};
use pais_seal::random_key;
use pais_test_support::poll::poll;
use pais_test_support::split_mix::SplitMix64;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::codes::{CodeFile, CodeWriter};
use crate::datafusion_counter::DataFusionCounter;
use crate::executor::{Executor, ExecutorSettings};
use crate::remote_counter::{Executors, RemoteCounter, Resubmissions};
use crate::sealed::Sealer;
use crate::share::{MOST_REQUEST, Share};
use crate::spool::{ExecutorKey, RunDirectory};
use crate::tests::{counted, nameless_files};

/// An executor that listens on loopback until this is dropped.
struct Running {
    address: SocketAddr,
    /// Of requests, and of the engine.
    runtimes: Vec<Runtime>,
    _stop: oneshot::Sender<()>,
}

impl Running {
    fn new(spool: &Path, key: &ExecutorKey, memory: u64) -> Self {
        let [runtime, engine] = [Runtime::new().unwrap(), Runtime::new().unwrap()];
        let settings = ExecutorSettings {
            listen: "127.0.0.1:0".parse().unwrap(),
            spool: spool.to_owned(),
            key: key.clone(),
            memory,
            tls: None,
            threads: engine.handle().clone(),
        };
        let executor = runtime.block_on(Executor::bind(settings)).unwrap();
        let address = executor.address().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        runtime.spawn(executor.serve(async {
            let _ = stopped.await;
        }));
        Self {
            address,
            runtimes: vec![runtime, engine],
            _stop: stop,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let runtimes = self.runtimes.drain(..);
        runtimes.for_each(Runtime::shutdown_background);
    }
}

/// A run with published rows.
struct Run {
    spool: tempfile::TempDir,
    key: ExecutorKey,
    directory: RunDirectory,
    rows: Arc<CodeFile>,
    resubmissions: Mutex<Resubmissions>,
}

const COLUMNS: usize = 3;

impl Run {
    /// Random rows of three columns with up to `values` values each.
    fn new(rows: usize, values: usize, seed: u64) -> Self {
        let spool = tempfile::tempdir().unwrap();
        let directory = RunDirectory::new(spool.path()).unwrap();
        let mut random = SplitMix64(seed);
        let mut writer = CodeWriter::new(directory.codes().unwrap(), COLUMNS, 1_000);
        for _ in 0..rows {
            let row = [(); COLUMNS].map(|()| random.below(values) as u32);
            writer.push(row.into_iter()).unwrap();
        }
        let rows = Arc::new(writer.finish(&mut |_| ()).unwrap());
        let key = ExecutorKey::new(&random_key().unwrap());
        directory.publish(&rows, &key).unwrap();
        Self {
            spool,
            key,
            directory,
            rows,
            resubmissions: Mutex::default(),
        }
    }

    fn executor(&self) -> Running {
        Running::new(self.spool.path(), &self.key, 64 << 20)
    }

    fn executors(&self, addresses: &[SocketAddr]) -> Arc<Executors> {
        let urls = addresses.iter().map(|it| format!("http://{it}").parse());
        let urls = urls.collect::<Result<_, _>>().unwrap();
        let executors = Executors::new(urls, self.spool.path(), self.key.clone(), None);
        Arc::new(executors.unwrap())
    }

    fn counter(&self, addresses: &[SocketAddr]) -> RemoteCounter<'_> {
        let executors = self.executors(addresses);
        let rows = Arc::clone(&self.rows);
        RemoteCounter::new(executors, self.directory.id, rows, &self.resubmissions).unwrap()
    }

    fn share(&self) -> Share {
        Share {
            run: self.directory.id,
            blocks: 0..1,
            columns: Vec::new(),
            most: None,
        }
    }

    /// The status of the answer to a request; 0 where the connection ends without one.
    fn status(&self, executor: &Running, request: Vec<u8>) -> u16 {
        let mut stream = std::net::TcpStream::connect(executor.address).unwrap();
        let head = format!(
            "POST /count HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
            request.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        // It may be refused before it is whole.
        let _ = stream.write_all(&request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer);
        let status = text.split(' ').nth(1);
        status.map_or(0, |status| status.parse().unwrap())
    }
}

/// Each of `values` values of a column in one of `parts` parts, at random.
fn parts(column: usize, values: usize, parts: u32, random: &mut SplitMix64) -> ColumnParts {
    ColumnParts {
        column,
        part_of: (0..values)
            .map(|_| random.below(parts as usize) as u32)
            .collect(),
        parts,
    }
}

#[test]
fn shares_add_up_to_the_counts_of_one_process() {
    let seed: u64 = std::process::id().into();
    let mut random = SplitMix64(seed);
    for case in 0..10 {
        let values = 1 + random.below(300);
        let run = Run::new(random.below(30_000), values, seed + case);
        let (one, other) = (run.executor(), run.executor());
        let remote = run.counter(&[one.address, other.address]);
        let sealer = Sealer::new(run.spool.path().to_owned()).unwrap();
        let local = DataFusionCounter::new(Arc::clone(&run.rows), 64 << 20, sealer).unwrap();
        // Of up to 2^32 parts, so that three columns take two keys.
        let most = [7, 300, u32::MAX][random.below(3)];
        let columns: Vec<ColumnParts> = (0..random.below(COLUMNS + 1))
            .map(|column| {
                parts(
                    column,
                    values,
                    1 + random.below(most as usize) as u32,
                    &mut random,
                )
            })
            .collect();
        let observer = Unobserved::default();
        let expected = counted(&local.count(&columns, None, &observer).unwrap());
        let found = counted(&remote.count(&columns, None, &observer).unwrap());
        assert!(found == expected, "seed {seed}, case {case}");
        if expected.len() > 1 {
            let most = Some(expected.len() - 1);
            let refused = remote.count(&columns, most, &observer);
            assert_eq!(refused.err(), Some(CountError::MoreThan));
        }
        let counts = *run.resubmissions.lock().unwrap();
        assert_eq!(counts, Resubmissions::default());
    }
}

#[test]
fn what_an_executor_has_no_memory_for_is_spilled() {
    let run = Run::new(150_000, 1 << 16, 3);
    let executor = Running::new(run.spool.path(), &run.key, 12 << 20);
    let mut random = SplitMix64(4);
    let columns: Vec<ColumnParts> = (0..COLUMNS)
        .map(|column| parts(column, 1 << 16, 1 << 16, &mut random))
        .collect();
    let remote = run.counter(&[executor.address]);
    let spool = run.spool.path().canonicalize().unwrap();
    let found = std::thread::scope(|scope| {
        let counting = scope.spawn(|| remote.count(&columns, None, &Unobserved::default()));
        let spilled = poll(Duration::from_secs(60), || {
            let files = nameless_files(&spool);
            let has_spilled = files.iter().any(|file| !file.is_empty());
            (has_spilled || counting.is_finished()).then_some(has_spilled)
        });
        assert_eq!(spilled, Some(true));
        counting.join().unwrap().unwrap()
    });
    let sealer = Sealer::new(run.spool.path().to_owned()).unwrap();
    let local = DataFusionCounter::new(Arc::clone(&run.rows), 256 << 20, sealer).unwrap();
    let expected = local.count(&columns, None, &Unobserved::default()).unwrap();
    assert!(counted(&found) == counted(&expected));
}

#[test]
fn a_request_that_is_not_sealed_or_does_not_fit_is_refused() {
    let run = Run::new(5_000, 10, 1);
    let executor = run.executor();
    let other_key = ExecutorKey::new(&random_key().unwrap());
    let status = |share: &Share, key| run.status(&executor, share.sealed(key).unwrap().to_vec());
    assert_eq!(status(&run.share(), &run.key), 200);
    assert_eq!(status(&run.share(), &other_key), 403);
    let json = serde_json::to_vec(&run.share()).unwrap();
    let mut changed = run.share().sealed(&run.key).unwrap().to_vec();
    *changed.last_mut().unwrap() ^= 1;
    for request in [Vec::new(), vec![0; 12], json, changed] {
        assert_eq!(run.status(&executor, request), 403);
    }
    // The answer may be lost, because the rest of the request is not read.
    let too_large = run.status(&executor, vec![0; MOST_REQUEST + 1]);
    assert!([0, 413].contains(&too_large), "{too_large}");

    let fitting = ColumnParts {
        column: 2,
        part_of: vec![0; 10],
        parts: 1,
    };
    let with = |column: ColumnParts| Share {
        columns: vec![column],
        ..run.share()
    };
    assert_eq!(status(&with(fitting.clone()), &run.key), 200);
    let wrong = [
        ColumnParts {
            column: 3,
            ..fitting.clone()
        },
        ColumnParts {
            part_of: vec![0; 9],
            ..fitting.clone()
        },
        ColumnParts {
            part_of: vec![1; 10],
            ..fitting.clone()
        },
        ColumnParts {
            parts: 0,
            ..fitting
        },
    ];
    for column in wrong {
        assert_eq!(status(&with(column), &run.key), 422);
    }
    for blocks in [0..0, 0..6, 5..6, 3..usize::MAX] {
        let share = Share {
            blocks: blocks.clone(),
            ..run.share()
        };
        assert_eq!(status(&share, &run.key), 422, "{blocks:?}");
    }
    // A run of another spool directory.
    let other = Run::new(10, 1, 1);
    assert_eq!(status(&other.share(), &run.key), 404);
}

#[test]
fn the_reason_of_a_refusal_is_said() {
    let run = Run::new(3_000, 10, 1);
    let other_key = ExecutorKey::new(&random_key().unwrap());
    let elsewhere = tempfile::tempdir().unwrap();
    for (executor, reason) in [
        (
            Running::new(run.spool.path(), &other_key, 32 << 20),
            "has another key",
        ),
        (
            Running::new(elsewhere.path(), &run.key, 32 << 20),
            "does not see the spool directory",
        ),
    ] {
        let remote = run.counter(&[executor.address]);
        let refused = remote.count(&[], None, &Unobserved::default()).err();
        let Some(CountError::Failed(text)) = refused else {
            panic!("{refused:?}");
        };
        assert!(text.contains(reason), "{text}");
    }
}

#[test]
fn changed_rows_are_not_counted() {
    let run = Run::new(3_000, 10, 1);
    let executor = run.executor();
    let remote = run.counter(&[executor.address]);
    assert!(remote.count(&[], None, &Unobserved::default()).is_ok());
    let folder = std::fs::read_dir(run.spool.path()).unwrap();
    let mut paths = folder.map(|entry| entry.unwrap().path());
    let folder = paths.find(|path| path.is_dir()).unwrap();
    let mut bytes = std::fs::read(folder.join("codes")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(folder.join("codes"), bytes).unwrap();
    let refused = remote.count(&[], None, &Unobserved::default());
    assert!(matches!(refused, Err(CountError::Failed(_))), "{refused:?}");
    assert_eq!(run.resubmissions.lock().unwrap().failed, 1);
}

/// Answers health checks, and each statement with the same bytes; `None` for no answer at all.
fn liar(answer: Option<Vec<u8>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            let body = match (&answer, head.starts_with(b"GET /health")) {
                (_, true) => b"{}",
                (Some(answer), false) => answer.as_slice(),
                (None, false) => {
                    kept.push(stream);
                    continue;
                }
            };
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(body);
        }
    });
    address
}

/// A frame with a record for each number of rows and sum; the keys are 0, 1, ….
fn frame(records: &[(u64, u64)]) -> Vec<u8> {
    let mut bytes = (records.len() as u32).to_le_bytes().to_vec();
    let keys = 0..records.len() as u64;
    let rows = records.iter().map(|record| record.0);
    let sums = records.iter().map(|record| record.1);
    let numbers = keys.chain(rows).chain(sums);
    numbers.for_each(|number| bytes.extend(number.to_le_bytes()));
    bytes
}

#[test]
fn counts_that_are_not_of_the_rows_of_a_share_are_void() {
    let run = Run::new(100, 10, 1);
    let sum = 100 * 99 / 2;
    let (ended, more_than, failed) = ([0; 4], [0xff; 4], [0xfe, 0xff, 0xff, 0xff]);
    let answer = |records: &[(u64, u64)], end: &[u8]| Some([&frame(records)[..], end].concat());
    let lost = Resubmissions {
        lost_executor: 1,
        ..Resubmissions::default()
    };
    let guard = Resubmissions {
        guard: 1,
        ..Resubmissions::default()
    };
    let failure = Resubmissions {
        failed: 1,
        ..Resubmissions::default()
    };
    let late = Resubmissions {
        deadline: 1,
        ..Resubmissions::default()
    };
    let cases = [
        (
            answer(&[(60, 1_000), (40, sum - 1_000)], &ended),
            Resubmissions::default(),
        ),
        // A row too few, one too many, one in place of another, none.
        (answer(&[(99, sum)], &ended), guard),
        (answer(&[(101, sum)], &ended), guard),
        (answer(&[(100, sum - 1)], &ended), guard),
        (answer(&[(100, sum), (0, 0)], &ended), guard),
        (answer(&[(u64::MAX, sum), (101, 0)], &ended), guard),
        (Some(ended.to_vec()), guard),
        // The request had no limit of records.
        (answer(&[], &more_than), guard),
        // A frame of 2^31 records.
        (answer(&[(60, 1_000)], &[0, 0, 0, 0x80]), guard),
        (Some(failed.to_vec()), failure),
        // Its end is missing.
        (answer(&[(100, sum)], &[]), lost),
        (answer(&[(100, sum)], &[0, 0]), lost),
        (Some(frame(&[(100, sum)])[..10].to_vec()), lost),
        (None, late),
    ];
    for (number, (answer, expected)) in cases.into_iter().enumerate() {
        *run.resubmissions.lock().unwrap() = Resubmissions::default();
        let remote = run.counter(&[liar(answer)]);
        let found = remote.count(&[], None, &Unobserved::default());
        let counts = *run.resubmissions.lock().unwrap();
        assert_eq!(counts, expected, "case {number}: {found:?}");
        assert_eq!(found.is_ok(), expected.total() == 0);
    }
}

#[test]
fn an_executor_that_is_gone_is_left_out_and_without_any_the_statement_fails() {
    let run = Run::new(20_000, 10, 1);
    let (one, other) = (run.executor(), run.executor());
    let remote = run.counter(&[one.address, other.address]);
    let observer = Unobserved::default();
    let expected = counted(&remote.count(&[], None, &observer).unwrap());
    drop(one);
    assert!(counted(&remote.count(&[], None, &observer).unwrap()) == expected);
    drop(other);
    let start = Instant::now();
    let refused = remote.count(&[], None, &observer).err();
    let reason = CountError::Failed("no executor answers".to_owned());
    assert_eq!(refused, Some(reason));
    assert!(start.elapsed() < Duration::from_secs(20));
    observer.cancellation().cancel();
    let stopped = remote.count(&[], None, &observer).err();
    assert_eq!(stopped, Some(CountError::Cancelled));
}

#[test]
fn a_cancelled_statement_leaves_no_work_on_an_executor() {
    let run = Run::new(600_000, 1 << 16, 1);
    let executor = run.executor();
    let mut random = SplitMix64(4);
    let columns: Vec<ColumnParts> = (0..COLUMNS)
        .map(|column| parts(column, 1 << 16, 1 << 16, &mut random))
        .collect();
    let executors = run.executors(&[executor.address]);
    let runtime = Runtime::new().unwrap();
    let url = format!("http://{}", executor.address).parse().unwrap();
    let statements = || {
        let health = executors.send(&url, Method::GET, "/health", Bytes::new());
        let body = runtime.block_on(async {
            use http_body_util::BodyExt;
            let live = health.await.unwrap();
            live.answer.into_body().collect().await.unwrap().to_bytes()
        });
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        body["statements"].as_u64().unwrap()
    };
    let remote = run.counter(&[executor.address]);
    let observer = Unobserved::default();
    std::thread::scope(|scope| {
        let counting = scope.spawn(|| remote.count(&columns, None, &observer));
        let began = poll(Duration::from_secs(20), || {
            (statements() == 1).then_some(())
        });
        began.expect("the statement begins");
        observer.cancellation().cancel();
        let start = Instant::now();
        let ended = poll(Duration::from_secs(5), || (statements() == 0).then_some(()));
        ended.expect("the statement ends");
        assert_eq!(counting.join().unwrap().err(), Some(CountError::Cancelled));
        assert!(start.elapsed() < Duration::from_secs(5));
    });
}
