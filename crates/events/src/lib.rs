//! Event and fragment formats: real files in, real files out.
//!
//! A raw-data file is read from a byte slice. Events and fragments borrow from that slice, without copies:
//!
//! ```
//! use fanin_events::{Events, sample};
//!
//! let file = sample::km3net();
//! for event in Events::open(&file)? {
//!     let event = event?;
//!     println!("{}: {} fragments, {}", event.id.l1_id, event.fragments.len(), event.fragment_bytes());
//! }
//! # Ok::<(), fanin_events::ReadError>(())
//! ```
//!
//! Readers stop at the first byte that contradicts the format, and report its offset. [`verify()`] continues after it, and
//! checks more than reading needs: trailers, checksums, L1 IDs. With false sizes in a file, a reader takes no more memory than
//! the size of the file justifies.

#![forbid(unsafe_code)]

pub mod atlas;
pub mod checksum;
pub mod convert;
mod error;
mod event;
pub mod file;
pub mod frag;
pub mod hdf5;
pub mod mdf;
pub mod models;
pub mod rdh;
mod reader;
pub mod sample;
pub mod sizes;
pub mod summary;
mod table;
mod verify;
mod words;

pub use error::{Fault, ReadError};
pub use event::{Event, EventId, Fragment};
pub use reader::{Events, Format, UnknownName};
pub use summary::{FileSummary, SizeMoments, SizeShape};
pub use table::SizesTableError;
pub use verify::{FAULTS_KEPT, L1IdOffset, Report, verify};
