//! A worker's part of a cut as a pack, and back.
//!
//! A pack has a section for each piece of state and for each batch that waits at an input, and last the outline: all else, with the numbers of these sections. An
//! operator's sections are labelled `<dataflow>/<identity>`.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use pointstamp_channels::{Encoder, joined};
use pointstamp_engine::cut::{
    Content, DataflowPart, Form, Held, OperatorPart, Part, Piece, Queued, State, rescale,
};
use pointstamp_engine::error::UserResult;
use pointstamp_engine::pact::PactKind;
use pointstamp_engine::payload::Payload;
use pointstamp_order::Point;
use pointstamp_store::{Label, PackWriter, Packed, Reader, SectionRef, SectionWriter};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The version of all sections of this module.
const VERSION: u32 = 1;

const OUTLINE: &str = "outline";

/// The pieces that a checkpoint has, by number. Keeping the piece keeps its number.
pub(crate) type Known = HashMap<usize, (Piece, SectionRef)>;

/// A part without batches and pieces.
#[derive(Serialize, Deserialize)]
struct Outline {
    attempt: u64,
    worker: usize,
    peers: usize,
    begun: usize,
    dataflows: Vec<(usize, Vec<OperatorOutline>)>,
}

#[derive(Serialize, Deserialize)]
struct OperatorOutline {
    identity: String,
    name: String,
    kind: String,
    inputs: Vec<String>,
    finished: bool,
    held: Vec<(usize, Vec<u64>, i64)>,
    latest: Vec<u64>,
    queued: Vec<QueuedOutline>,
    division: Option<Division>,
    pieces: usize,
    position: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct QueuedOutline {
    port: usize,
    time: Vec<u64>,
    pact: Moves,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
enum Moves {
    Pipeline,
    Exchange,
    Broadcast,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
enum Division {
    Nothing,
    Workers,
    Groups,
    Parts,
}

impl Division {
    fn of(state: &State) -> Self {
        match state {
            State::None => Division::Nothing,
            State::Workers(_) => Division::Workers,
            State::Groups(_) => Division::Groups,
            State::Parts(_) => Division::Parts,
        }
    }

    fn with(self, pieces: Vec<Piece>) -> State {
        match self {
            Division::Nothing => State::None,
            Division::Workers => State::Workers(pieces),
            Division::Groups => State::Groups(pieces),
            Division::Parts => State::Parts(pieces),
        }
    }
}

fn label(operator: String, part: String) -> Label {
    Label {
        operator,
        part,
        codec: "operator".to_owned(),
        version: VERSION,
        groups: None,
    }
}

/// The section of a pack, as pieces are written to it.
struct Section<'a>(SectionWriter<'a>, Option<pointstamp_store::Error>);

impl Write for Section<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.append(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                let text = error.to_string();
                self.1 = Some(error);
                Err(io::Error::other(text))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A part that was written.
pub(crate) struct Written {
    pub(crate) packed: Packed,
    /// The pieces that the pack has or refers to.
    pub(crate) pieces: Known,
    /// The outline, for [`fixed_workers`].
    pub(crate) outline: Vec<u8>,
}

/// Writes a part.
///
/// Pieces that are `known` are referred to; with the `reader` of the checkpoint that has them, pieces in packs that
/// are worth writing again are copied.
pub(crate) fn write<P: Payload>(
    mut pack: PackWriter,
    part: &Part<P>,
    known: &Known,
    reader: Option<&Reader>,
) -> Result<Written, Error> {
    let mut now = Known::new();
    let mut dataflows = Vec::new();
    for dataflow in &part.dataflows {
        let mut operators = Vec::new();
        for operator in &dataflow.operators {
            let of = format!("{}/{}", dataflow.index, operator.identity);
            let failed = |cause| Error::Operator {
                operator: operator.identity.clone(),
                cause,
            };
            let pieces = operator.state.as_ref().map_or(&[][..], State::pieces);
            for (number, piece) in pieces.iter().enumerate() {
                let label = label(of.clone(), format!("state {number}"));
                let at = match (known.get(&piece.number()), reader) {
                    (Some((_, at)), Some(reader)) if reader.manifest().rewrites(&at.pack) => {
                        pack.copy(label, &reader.pack(&at.pack)?, at)?
                    }
                    (Some((_, at)), _) => {
                        pack.refer(label, at);
                        at.clone()
                    }
                    (None, _) => {
                        let mut section = Section(pack.section(label), None);
                        let written = piece.write(&mut section);
                        if let Some(error) = section.1 {
                            return Err(error.into());
                        }
                        written.map_err(failed)?;
                        section.0.finish()?
                    }
                };
                now.insert(piece.number(), (piece.clone(), at));
            }
            for (number, queued) in operator.queued.iter().enumerate() {
                let mut encoder = Encoder::new();
                queued.batch.encode(&mut encoder).map_err(failed)?;
                let label = label(of.clone(), format!("queued {number}"));
                let mut section = pack.section(label);
                for segment in encoder.finish() {
                    section.append(&segment)?;
                }
                section.finish()?;
            }
            operators.push(outline(operator));
        }
        dataflows.push((dataflow.index, operators));
    }
    let outline = Outline {
        attempt: part.attempt,
        worker: part.worker,
        peers: part.peers,
        begun: part.begun,
        dataflows,
    };
    let label = label(String::new(), OUTLINE.to_owned());
    let outline = postcard::to_stdvec(&outline)?;
    pack.put(label, &outline)?;
    Ok(Written {
        packed: pack.finish()?,
        pieces: now,
        outline,
    })
}

/// Why another number of workers cannot resume from the parts that have these outlines; nothing, where it can.
pub(crate) fn fixed_workers(outlines: &[Vec<u8>]) -> Result<Option<String>, Error> {
    let mut parts = Vec::new();
    for bytes in outlines {
        let outline: Outline = postcard::from_bytes(bytes)?;
        parts.push(outline.into_part(|_, _, operator| {
            let queued = operator.queued.iter();
            let queued = queued.map(|one| one.with(Vec::<u8>::new())).collect();
            Ok::<_, Error>(operator.into_part(Vec::new(), queued))
        })?);
    }
    let others = parts.len() + 1;
    Ok(rescale(parts, others).err().map(|why| why.to_string()))
}

impl Outline {
    /// The part that it describes, with operators made by a function of worker, dataflow and outline.
    fn into_part<P: Payload>(
        self,
        mut operator: impl FnMut(usize, usize, OperatorOutline) -> Result<OperatorPart<P>, Error>,
    ) -> Result<Part<P>, Error> {
        let worker = self.worker;
        let mut dataflows = Vec::new();
        for (index, outlines) in self.dataflows {
            let operators = outlines.into_iter();
            let operators = operators.map(|outline| operator(worker, index, outline));
            let operators = operators.collect::<Result<_, _>>()?;
            dataflows.push(DataflowPart { index, operators });
        }
        Ok(Part {
            attempt: self.attempt,
            worker,
            peers: self.peers,
            begun: self.begun,
            dataflows,
        })
    }
}

impl OperatorOutline {
    fn into_part<P: Payload>(self, pieces: Vec<Piece>, queued: Vec<Queued<P>>) -> OperatorPart<P> {
        let held = self.held.into_iter();
        let held = held.map(|(port, time, count)| Held {
            port,
            time: Point::from(time),
            count,
        });
        OperatorPart {
            identity: self.identity,
            name: self.name,
            form: Arc::new(Form {
                kind: self.kind,
                inputs: self.inputs,
            }),
            finished: self.finished,
            held: held.collect(),
            latest: self.latest,
            queued,
            state: self.division.map(|division| division.with(pieces)),
            position: self.position,
        }
    }
}

impl QueuedOutline {
    fn with<P: Payload>(&self, batch: P) -> Queued<P> {
        Queued {
            port: self.port,
            time: Point::from(self.time.clone()),
            batch,
            pact: match self.pact {
                Moves::Pipeline => PactKind::Pipeline,
                Moves::Exchange => PactKind::Exchange,
                Moves::Broadcast => PactKind::Broadcast,
            },
            reroutes: false,
        }
    }
}

fn outline<P: Payload>(operator: &OperatorPart<P>) -> OperatorOutline {
    let held = operator.held.iter();
    let held = held.map(|held| (held.port, held.time.coords().to_vec(), held.count));
    let queued = operator.queued.iter().map(|queued| QueuedOutline {
        port: queued.port,
        time: queued.time.coords().to_vec(),
        pact: match queued.pact {
            PactKind::Pipeline => Moves::Pipeline,
            PactKind::Exchange => Moves::Exchange,
            PactKind::Broadcast => Moves::Broadcast,
        },
    });
    OperatorOutline {
        identity: operator.identity.clone(),
        name: operator.name.clone(),
        kind: operator.form.kind.clone(),
        inputs: operator.form.inputs.clone(),
        finished: operator.finished,
        held: held.collect(),
        latest: operator.latest.clone(),
        queued: queued.collect(),
        division: operator.state.as_ref().map(Division::of),
        pieces: operator
            .state
            .as_ref()
            .map_or(0, |state| state.pieces().len()),
        position: operator.position,
    }
}

/// A piece that a checkpoint has. It is read when it is needed.
struct Stored {
    reader: Reader,
    section: SectionRef,
}

impl Content for Stored {
    fn write(&self, out: &mut dyn Write) -> UserResult<()> {
        for page in self.reader.pages(&self.section)? {
            out.write_all(&page?)?;
        }
        Ok(())
    }
}

/// The sections of a checkpoint: by worker, operator and part.
type Sections = HashMap<(usize, String, String), SectionRef>;

/// The outlines and the other sections of a checkpoint.
fn sections(reader: &Reader) -> Result<(Vec<Outline>, Sections), Error> {
    let mut sections = HashMap::new();
    let mut outlines = Vec::new();
    for found in reader.sections()? {
        if found.label.version > VERSION {
            return Err(pointstamp_store::Error::Newer {
                object: found.section.pack,
                version: found.label.version,
                known: VERSION,
            }
            .into());
        }
        if found.label.part == OUTLINE {
            let bytes = reader.read(&found.section)?;
            let outline: Outline = postcard::from_bytes(&bytes).map_err(|error| {
                Error::Malformed(format!("the outline of {}: {error}", found.section.pack))
            })?;
            outlines.push(outline);
        } else {
            let worker = found.worker as usize;
            let key = (worker, found.label.operator, found.label.part);
            sections.insert(key, found.section);
        }
    }
    Ok((outlines, sections))
}

/// A checkpoint while the parts of workers are read.
struct Reading<'a> {
    reader: &'a Reader,
    sections: Sections,
    known: Known,
}

impl Reading<'_> {
    fn find(&mut self, worker: usize, operator: &str, part: String) -> Result<SectionRef, Error> {
        let key = (worker, operator.to_owned(), part);
        self.sections.remove(&key).ok_or_else(|| {
            let (worker, operator, part) = key;
            Error::Malformed(format!(
                "the checkpoint has no section '{part}' of operator {operator} of worker {worker}"
            ))
        })
    }

    fn operator<P: Payload>(
        &mut self,
        worker: usize,
        dataflow: usize,
        outline: OperatorOutline,
    ) -> Result<OperatorPart<P>, Error> {
        let of = format!("{dataflow}/{}", outline.identity);
        let mut pieces = Vec::new();
        for number in 0..outline.pieces {
            let section = self.find(worker, &of, format!("state {number}"))?;
            let piece = Piece::new(Stored {
                reader: self.reader.clone(),
                section: section.clone(),
            });
            self.known.insert(piece.number(), (piece.clone(), section));
            pieces.push(piece);
        }
        let mut queued = Vec::new();
        for (number, one) in outline.queued.iter().enumerate() {
            let section = self.find(worker, &of, format!("queued {number}"))?;
            let bytes = joined(&[self.reader.read(&section)?]);
            let failed = |cause| Error::Operator {
                operator: outline.identity.clone(),
                cause,
            };
            queued.push(one.with(P::decode(bytes).map_err(failed)?));
        }
        Ok(outline.into_part(pieces, queued))
    }
}

/// Reads the parts of all workers, in the order of workers, and the known pieces.
pub(crate) fn read<P: Payload>(reader: &Reader) -> Result<(Vec<Part<P>>, Known), Error> {
    let (outlines, sections) = sections(reader)?;
    let known = Known::new();
    let mut reading = Reading {
        reader,
        sections,
        known,
    };
    let mut parts = Vec::new();
    for outline in outlines {
        parts.push(outline.into_part(|worker, dataflow, operator| {
            reading.operator(worker, dataflow, operator)
        })?);
    }
    parts.sort_by_key(|part| part.worker);
    Ok((parts, reading.known))
}
