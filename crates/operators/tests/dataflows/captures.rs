//! Captures: the records of a stream, written, read and replayed, are equal.

use std::any::Any;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use pointstamp_channels::Encoder;
use pointstamp_columnar::ipc;
use pointstamp_engine::error::{Error as EngineError, UserResult};
use pointstamp_engine::execute::execute;
use pointstamp_engine::operators::{Event, Probe, capture as observe};
use pointstamp_engine::worker::Worker;
use pointstamp_events::{Contents, Run};
use pointstamp_operators::captures::{
    CaptureError, Feed, FileTarget, Next, Queue, Source, Target, capture, replay,
};
use pointstamp_operators::{Batch, Error, HostBatch, register_host_decoder};
use pointstamp_order::Point;
use pointstamp_progress::Mode;
use pointstamp_testkit::cases;
use proptest::prelude::*;

use crate::program::{Sent, all, batch, rows_of, schema, sent};

type Rows = Vec<(Vec<u64>, Vec<Option<i64>>)>;

/// A batch of a host whose records are integers.
struct Numbers(Vec<i64>);

impl HostBatch for Numbers {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn footprint(&self) -> usize {
        8 * self.0.len()
    }

    fn slice(&self, at: usize, len: usize) -> Arc<dyn HostBatch> {
        Arc::new(Numbers(self.0[at..at + len].to_vec()))
    }

    fn encode(&self, out: &mut Encoder) -> UserResult<()> {
        for number in &self.0 {
            out.put_slice(&number.to_le_bytes());
        }
        Ok(())
    }
}

fn decode(bytes: &Bytes) -> UserResult<Arc<dyn HostBatch>> {
    if !bytes.len().is_multiple_of(8) {
        return Err(Error::Unreadable("numbers have eight bytes".to_owned()).into());
    }
    let numbers = bytes.chunks_exact(8).map(|bytes| {
        let bytes = bytes.try_into().expect("the chunks are of eight");
        i64::from_le_bytes(bytes)
    });
    Ok(Arc::new(Numbers(numbers.collect())))
}

/// Returns the rows of a batch: of columns, or the host's numbers.
fn rows_in(batch: Batch) -> Vec<Vec<Option<i64>>> {
    match batch {
        Batch::Columns(columns) => rows_of(&columns),
        Batch::Host(records) => {
            let records: Arc<dyn Any + Send + Sync> = records;
            let numbers = records.downcast::<Numbers>().expect("they are numbers");
            numbers.0.iter().map(|&number| vec![Some(number)]).collect()
        }
        _ => panic!("captures have columns and records"),
    }
}

fn in_order(mut rows: Rows) -> Rows {
    rows.sort();
    rows
}

/// A target in memory.
#[derive(Clone, Default)]
struct Bytewise(Arc<Mutex<(Vec<u8>, bool)>>);

impl Target for Bytewise {
    fn write(&mut self, pieces: &[Bytes]) -> Result<(), CaptureError> {
        let mut written = self.0.lock().expect("no test panics with it");
        written.0.extend(pieces.concat());
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), CaptureError> {
        self.0.lock().expect("no test panics with it").1 = true;
        Ok(())
    }
}

/// The kind of batches that carry a program's rows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Columns,
    Records,
}

/// Runs a dataflow that gives rows on the only worker, and hands its stream to a function.
fn give(
    dims: usize,
    form: Form,
    input: &[Sent],
    take: impl Fn(&pointstamp_engine::stream::Stream<Batch>) + Sync,
) {
    let main = |worker: &Worker<Batch>| -> Result<(), EngineError> {
        let (input_port, sent) = worker.dataflow("capturing", dims, |scope| {
            let (port, capability, stream) = scope.unordered_input()?;
            take(&stream);
            let sent = input.iter().map(|sent| {
                Ok::<_, EngineError>((capability.delayed(&Point::new(&sent.time))?, sent))
            });
            Ok((port, sent.collect::<Result<Vec<_>, _>>()?))
        })?;
        for (capability, sent) in sent {
            let batch = match form {
                Form::Columns => Batch::Columns(batch(&sent.rows)),
                Form::Records => {
                    let numbers = sent.rows.iter().map(|row| row.1);
                    Batch::Host(Arc::new(Numbers(numbers.collect())))
                }
            };
            let sending = input_port.send(&capability, batch);
            sending.expect("the capability is valid");
            for _ in 0..sent.steps {
                worker.step()?;
            }
        }
        drop(input_port);
        worker.run()
    };
    if let Err(failure) = execute(1, Mode::Demand, main) {
        panic!("{}", failure.error);
    }
}

fn written(dims: usize, form: Form, input: &[Sent]) -> Vec<u8> {
    let target = Bytewise::default();
    give(dims, form, input, |stream| {
        let schema = (form == Form::Columns).then(schema);
        let captured = capture(stream, schema.as_ref(), Box::new(target.clone()));
        captured.expect("the beginning is written");
    });
    let written = target.0.lock().expect("no test panics with it");
    assert!(written.1, "the target is notified of the end");
    written.0.clone()
}

/// The results of a replay: rows, and warnings.
type Played = (Rows, Vec<String>);

/// Plays sources on a worker, and calls a function between its steps.
fn play(
    dims: usize,
    sources: impl Fn() -> Vec<Source> + Sync,
    between: impl Fn(usize) + Sync,
) -> Result<Played, String> {
    let main = |worker: &Worker<Batch>| -> Result<Played, EngineError> {
        let (rows, warnings) = (
            Arc::new(Mutex::new(Vec::new())),
            Arc::new(Mutex::new(Vec::new())),
        );
        let probe = Probe::new();
        worker.dataflow("playing", dims, |scope| {
            let said = Arc::clone(&warnings);
            let warn = move |text| {
                said.lock().expect("no test panics with it").push(text);
                Ok(())
            };
            let stream = replay(scope, sources(), warn).expect("the scope is open");
            let found = Arc::clone(&rows);
            observe(&probe.attach(&stream)?, move |event| {
                if let Event::Messages(time, batch) = event {
                    let mut found = found.lock().expect("no test panics with it");
                    let rows = rows_in(batch).into_iter();
                    found.extend(rows.map(|row| (time.coords().to_vec(), row)));
                }
                Ok(())
            })
        })?;
        let mut steps = 0;
        while !probe.is_done() {
            between(steps);
            worker.step()?;
            steps += 1;
        }
        let rows = std::mem::take(&mut *rows.lock().expect("no test panics with it"));
        let warnings = std::mem::take(&mut *warnings.lock().expect("no test panics with it"));
        Ok((rows, warnings))
    };
    match execute(1, Mode::Demand, main) {
        Ok(mut played) => Ok(played.swap_remove(0)),
        Err(failure) => Err(failure.error.to_string()),
    }
}

/// Plays bytes that are fed in pieces.
fn play_bytes(dims: usize, bytes: &[u8], piece: usize) -> Result<Played, String> {
    let feed = Feed::fed("a capture".to_owned());
    for piece in bytes.chunks(piece.max(1)) {
        feed.feed(piece);
    }
    feed.end(None);
    play(dims, || vec![Source::Feed(feed.clone())], |_| ())
}

fn given(form: Form, input: &[Sent]) -> Rows {
    let rows = all(input).map(|(time, row)| {
        let row = match form {
            Form::Columns => vec![row.0, Some(row.1), Some(row.2)],
            Form::Records => vec![Some(row.1)],
        };
        (time.clone(), row)
    });
    in_order(rows.collect())
}

fn form() -> impl Strategy<Value = Form> {
    prop::sample::select(vec![Form::Columns, Form::Records])
}

proptest! {
    #![proptest_config(cases(32))]

    #[test]
    fn what_is_captured_is_played(form in form(), input in sent(2), piece in 1_usize..200) {
        register_host_decoder(decode);
        let bytes = written(2, form, &input);
        let (rows, warnings) = play_bytes(2, &bytes, piece).expect("the capture is whole");
        prop_assert_eq!(in_order(rows), given(form, &input));
        prop_assert_eq!(warnings, Vec::<String>::new());
    }

    #[test]
    fn a_capture_that_ends_early_is_played_up_to_there(input in sent(1), part in 0.0..1.0_f64) {
        register_host_decoder(decode);
        let bytes = written(1, Form::Columns, &input);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a part of a small number"
        )]
        let until = (part * bytes.len() as f64) as usize;
        let (rows, warnings) = play_bytes(1, &bytes[..until], 64).expect("the bytes are whole");
        prop_assert_eq!(warnings.len(), 1);
        prop_assert!(warnings[0].contains("before its stream did"), "{}", warnings[0]);
        let all = given(Form::Columns, &input);
        for row in rows {
            prop_assert!(all.contains(&row));
        }
    }

    #[test]
    fn damage_is_found(input in sent(1), place in any::<prop::sample::Index>(), flip in 1_u8..=255) {
        let mut bytes = written(1, Form::Columns, &input);
        let place = place.index(bytes.len());
        bytes[place] ^= flip;
        // Unless it makes the rest look as if more were to come.
        match play_bytes(1, &bytes, 64) {
            Ok((_, warnings)) => prop_assert_eq!(warnings.len(), 1),
            Err(text) => prop_assert!(text.contains("damaged at byte"), "{}", text),
        }
    }

    #[test]
    fn captures_in_memory_are_played_together(one in sent(1), other in sent(1)) {
        let queues = [Queue::default(), Queue::default()];
        for (queue, input) in queues.iter().zip([&one, &other]) {
            give(1, Form::Columns, input, |stream| {
                queue.capture(stream).expect("the scope is open");
            });
        }
        let sources = || queues.iter().cloned().map(Source::Memory).collect();
        let (rows, warnings) = play(1, sources, |_| ()).expect("the captures are whole");
        let both = [one, other].concat();
        prop_assert_eq!(in_order(rows), given(Form::Columns, &both));
        prop_assert_eq!(warnings, Vec::<String>::new());
    }
}

/// A file of a test, which is removed after it.
struct TestFile(PathBuf);

impl TestFile {
    fn new(name: &str) -> Self {
        let name = format!("pointstamp-{}-{name}", std::process::id());
        TestFile(std::env::temp_dir().join(name))
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _it_may_not_be_there = std::fs::remove_file(&self.0);
    }
}

fn some_rows() -> Vec<Sent> {
    let sent = |n: u64| Sent {
        worker: 0,
        time: vec![n],
        rows: (0..5).map(|value| (Some(value), value, 9)).collect(),
        steps: 1,
    };
    (0..6).map(sent).collect()
}

#[test]
fn a_file_that_grows_is_followed() {
    let bytes = written(1, Form::Columns, &some_rows());
    let file = TestFile::new("grows");
    let feed = Feed::open("a file".to_owned(), file.0.clone(), true);
    let (rows, warnings) = play(
        1,
        || vec![Source::Feed(feed.clone())],
        |steps| {
            // It is there after some steps, and grows by pieces.
            let from = steps.saturating_sub(3).saturating_mul(100).min(bytes.len());
            let until = (from + 100).min(bytes.len());
            if steps >= 3 && from < until {
                let mut options = std::fs::OpenOptions::new();
                let open = options.create(true).append(true).open(&file.0);
                let written = open.and_then(|mut file| file.write_all(&bytes[from..until]));
                written.expect("the folder can be written to");
            }
        },
    )
    .expect("the capture is whole");
    assert_eq!(in_order(rows), given(Form::Columns, &some_rows()));
    assert!(warnings.is_empty(), "{warnings:?}");
    assert!(feed.is_closed());
}

#[test]
fn a_file_that_is_written_anew_is_refused() {
    let bytes = written(1, Form::Columns, &some_rows());
    let file = TestFile::new("anew");
    std::fs::write(&file.0, &bytes[..bytes.len() / 2]).expect("the folder can be written to");
    let feed = Feed::open("a file".to_owned(), file.0.clone(), true);
    while !matches!(
        feed.next().expect("it has not changed"),
        Next::Wait { ask: true }
    ) {}
    let mut other = bytes.clone();
    other[bytes.len() / 3] ^= 1;
    std::fs::write(&file.0, &other).expect("the folder can be written to");
    match feed.next() {
        Err(CaptureError::Changed { what, .. }) => assert!(what.contains("written anew"), "{what}"),
        _ => panic!("the file is another"),
    }
}

#[test]
fn reading_goes_on_behind_an_event() {
    let bytes = written(1, Form::Columns, &some_rows());
    let file = TestFile::new("seek");
    std::fs::write(&file.0, &bytes).expect("the folder can be written to");
    let open = || Feed::open("a file".to_owned(), file.0.clone(), false);
    let rest = |feed: &Feed| {
        let mut places = Vec::new();
        while let Next::Event(offset, ..) = feed.next().expect("the capture is whole") {
            places.push(offset);
        }
        places
    };
    let whole = rest(&open());
    for taken in 1..whole.len() {
        let feed = open();
        for _ in 0..taken {
            feed.next().expect("the capture is whole");
        }
        let (offset, mark) = (feed.offset(), feed.mark().expect("the file is the same"));
        let counts = feed.counts().expect("events have come");
        let again = open();
        again.start().expect("the beginning is whole");
        again
            .seek(offset, counts, mark)
            .expect("the file is the same");
        assert_eq!(rest(&again), whole[taken..]);
        let refused = open();
        refused.start().expect("the beginning is whole");
        let other = mark.map(|mark| mark ^ 1);
        let refused = refused.seek(offset, Vec::new(), other);
        assert!(matches!(refused, Err(CaptureError::Changed { .. })));
    }
}

#[test]
fn a_message_of_several_times_is_split_at_them() {
    register_host_decoder(decode);
    let runs = || {
        let run = |time: u64, records| Run {
            time: Point::new(&[time]),
            records,
        };
        vec![run(3, 2), run(1, 3)]
    };
    let feed = Feed::fed("a capture".to_owned());
    let sent = &some_rows()[0];
    let numbers: Vec<u8> = (0..5_i64).flat_map(i64::to_le_bytes).collect();
    let columns = ipc::encode(&batch(&sent.rows)).expect("integers have a form");
    for (contents, bytes) in [
        (Contents::Records, Bytes::from(numbers)),
        (Contents::Columns, columns.concat().into()),
    ] {
        let batches = feed.batches(0, contents, runs(), &bytes);
        let batches = batches.unwrap_or_else(|error| panic!("{error}"));
        let rows = batches.into_iter().map(|(time, batch)| {
            let values = rows_in(batch).into_iter().map(|row| row[0]);
            (time.last(), values.collect::<Vec<_>>())
        });
        let expected = [
            (Some(3), vec![Some(0), Some(1)]),
            (Some(1), vec![Some(2), Some(3), Some(4)]),
        ];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
        let few = feed.batches(7, contents, runs()[..1].to_vec(), &bytes);
        let Err(CaptureError::Damaged { offset, what, .. }) = few else {
            panic!("it has more records");
        };
        assert_eq!((offset, &*what), (7, "a message of 2 records has 5"));
    }
}

#[test]
fn a_file_has_one_writer() {
    let file = TestFile::new("busy");
    let first = FileTarget::create(file.0.clone(), false).expect("it is not there");
    let there = FileTarget::create(file.0.clone(), false);
    assert!(matches!(there, Err(CaptureError::File { .. })));
    let busy = FileTarget::create(file.0.clone(), true);
    assert!(matches!(busy, Err(CaptureError::Busy { .. })));
    drop(first);
    FileTarget::create(file.0.clone(), true).expect("the first one has ended");
}
