//! The engine: capabilities, streams, scopes, operators, and the worker that schedules them.
//!
//! Dataflows are built from a [`Scope`](scope::Scope) by connecting [`Stream`](stream::Stream)s with operators, and
//! run by a [`Worker`](worker::Worker) on each thread. Every stream carries batches of one
//! [`Payload`](payload::Payload) type, with timestamps in N^k under the product order; the engine moves batches and
//! never looks at a record. The times that may still arrive at each place are known exactly, from the pointstamps of
//! all workers (`pointstamp_progress`).
//!
//! The modules are in layers, each of which uses the ones before it: the running parts (`run`), the state that the
//! workers of a process share ([`cluster`]), the loop of one of them ([`worker`]), the construction of dataflows
//! (`build`), and the operators that need no user code ([`operators`]). An operator under construction needs its
//! worker; the loop needs nothing of construction, so it is in the lower layer. [`observe`] reports events;
//! [`inspect`] describes the present state.
//!
//! ```
//! use pointstamp_engine::execute::execute;
//! use pointstamp_engine::operators::{Input, Probe};
//! use pointstamp_engine::pact::Pact;
//! use pointstamp_order::Point;
//! use pointstamp_progress::Mode;
//!
//! // Two workers; every number goes to the worker of its remainder.
//! let sums = execute::<Vec<u64>, u64>(2, Mode::Demand, |worker| {
//!     let (input, probe) = (Input::new(), Probe::new());
//!     let sum = std::rc::Rc::new(std::cell::Cell::new(0));
//!     let total = sum.clone();
//!     worker.dataflow("sums", 1, |scope| {
//!         let numbers = input.attach(scope)?;
//!         let route = |batch: Vec<u64>, parts: &mut [Vec<Vec<u64>>]| {
//!             let peers = parts.len() as u64;
//!             for (i, part) in parts.iter_mut().enumerate() {
//!                 part.push(batch.iter().copied().filter(|x| x % peers == i as u64).collect());
//!             }
//!             Ok(())
//!         };
//!         let builder = scope.operator("sum")?;
//!         let port = builder.new_input(&numbers, Pact::exchange(route))?;
//!         let (_, sums) = builder.new_output()?;
//!         builder.build(move || {
//!             while let Some((_, batch)) = port.next()? {
//!                 total.set(total.get() + batch.iter().sum::<u64>());
//!             }
//!             Ok(false)
//!         });
//!         probe.attach(&sums)?;
//!         Ok(())
//!     })?;
//!     if worker.index() == 0 {
//!         input.send((0..10).collect()).unwrap();
//!     }
//!     input.close();
//!     worker.step_while(|| !probe.is_done())?;
//!     Ok(sum.get())
//! })
//! .unwrap();
//! assert_eq!(sums, vec![0 + 2 + 4 + 6 + 8, 1 + 3 + 5 + 7 + 9]);
//! ```

#![forbid(unsafe_code)]

mod build;
pub mod cluster;
pub mod cut;
pub mod error;
pub mod execute;
pub mod host;
mod identity;
pub mod inspect;
pub mod observe;
pub mod operators;
pub mod panics;
pub mod payload;
mod piece;
mod run;
pub mod worker;

pub use build::{operator, retention, scope, stream};
pub use run::{activation, capability, pact, port, progress, wakeups};
