//! Events as columns in an HDF5 file, for h5py, awkward and all other readers of HDF5.
//!
//! The file is written without the HDF5 library, which is in C. It has superblock version 2, object headers of version 2, and
//! one contiguous dataset for each column ("HDF5 File Format Specification", version 3.0). Event i has the fragments
//! `fragment_start[i]..fragment_start[i + 1]`, fragment j the bytes `byte_start[j]..byte_start[j + 1]` of `bytes`.

use std::io::Write;

use crate::convert::{ConvertError, Converted};
use crate::{Events, ReadError};

/// The format's value for "no address".
const UNDEFINED: u64 = u64::MAX;
const SUPERBLOCK_BYTES: usize = 48;
const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

/// Message types (section IV.A.2 of the specification).
mod message {
    pub(super) const DATASPACE: u8 = 0x01;
    pub(super) const LINK_INFO: u8 = 0x02;
    pub(super) const DATATYPE: u8 = 0x03;
    pub(super) const FILL_VALUE: u8 = 0x05;
    pub(super) const LINK: u8 = 0x06;
    pub(super) const LAYOUT: u8 = 0x08;
    pub(super) const GROUP_INFO: u8 = 0x0a;
}

/// One dataset: unsigned little-endian numbers of `width` bytes each.
struct Hdf5Column {
    name: &'static str,
    width: u64,
    count: u64,
    /// The numbers as bytes; empty for `bytes`, which is written directly from the input.
    data: Vec<u8>,
}

impl Hdf5Column {
    fn new(name: &'static str, width: u64) -> Self {
        Self { name, width, count: 0, data: Vec::new() }
    }

    fn push(&mut self, value: u64) {
        self.data.extend_from_slice(&value.to_le_bytes()[..self.width as usize]);
        self.count += 1;
    }

    fn size(&self) -> u64 {
        self.width * self.count
    }
}

/// Writes the events of a file as HDF5: `l1_id`, `fragment_start`, `source`, `status`, `byte_start`, `bytes`, and
/// `run` and `bc_id` where all events have them.
///
/// # Errors
/// If the input contradicts its format, or the output cannot be written.
pub fn to_hdf5(bytes: &[u8], mut out: impl Write) -> Result<Converted, ConvertError> {
    let (columns, converted) = columns(bytes)?;
    let size = |column: &Hdf5Column| dataset_header(column, 0).len() as u64;
    // The superblock comes first, then the group's header, the headers of the datasets, and their data.
    let group_at = SUPERBLOCK_BYTES as u64;
    let placeholder: Vec<_> = columns.iter().map(|column| (column.name, 0)).collect();
    let mut at = group_at + group_header(&placeholder).len() as u64;
    let mut links = Vec::new();
    for column in &columns {
        links.push((column.name, at));
        at += size(column);
    }
    let mut headers = group_header(&links);
    for column in &columns {
        headers.extend(dataset_header(column, at));
        at += column.size();
    }
    out.write_all(&superblock(group_at, at))?;
    out.write_all(&headers)?;
    for column in &columns {
        out.write_all(&column.data)?;
    }
    // The last column.
    for event in Events::open(bytes)? {
        for fragment in event?.fragments {
            out.write_all(fragment.bytes)?;
        }
    }
    out.flush()?;
    Ok(converted)
}

fn columns(bytes: &[u8]) -> Result<(Vec<Hdf5Column>, Converted), ReadError> {
    let mut l1_id = Hdf5Column::new("l1_id", 8);
    let mut run = Hdf5Column::new("run", 4);
    let mut bc_id = Hdf5Column::new("bc_id", 4);
    let mut fragment_start = Hdf5Column::new("fragment_start", 8);
    let mut source = Hdf5Column::new("source", 4);
    let mut status = Hdf5Column::new("status", 4);
    let mut byte_start = Hdf5Column::new("byte_start", 8);
    let mut converted = Converted::default();
    fragment_start.push(0);
    byte_start.push(0);
    for event in Events::open(bytes)? {
        let event = event?;
        l1_id.push(event.id.l1_id);
        event.id.run.into_iter().for_each(|value| run.push(u64::from(value)));
        event.id.bc_id.into_iter().for_each(|value| bc_id.push(u64::from(value)));
        converted.events += 1;
        for fragment in &event.fragments {
            source.push(u64::from(fragment.source));
            status.push(u64::from(fragment.status));
            converted.fragments += 1;
            converted.fragment_bytes += fragment.bytes.len() as u64;
            byte_start.push(converted.fragment_bytes);
        }
        fragment_start.push(converted.fragments);
    }
    let payload = Hdf5Column { name: "bytes", width: 1, count: converted.fragment_bytes, data: Vec::new() };
    let mut columns = vec![l1_id];
    // A missing value would need an invented number, so an incomplete column is left out.
    columns.extend([run, bc_id].into_iter().filter(|column| column.count == converted.events));
    columns.extend([fragment_start, source, status, byte_start, payload]);
    Ok((columns, converted))
}

fn superblock(group_at: u64, end: u64) -> Vec<u8> {
    let mut block = SIGNATURE.to_vec();
    // Version 2, eight bytes for addresses and for lengths, no flags.
    block.extend([2, 8, 8, 0]);
    for address in [0, UNDEFINED, end, group_at] {
        block.extend(address.to_le_bytes());
    }
    with_checksum(block)
}

fn group_header(links: &[(&str, u64)]) -> Vec<u8> {
    let mut messages = Vec::new();
    // All links are in the header itself: there is neither a heap nor an index of names.
    let link_info: Vec<u8> = [0, 0].into_iter().chain([0xff; 16]).collect();
    push_message(&mut messages, message::LINK_INFO, &link_info);
    push_message(&mut messages, message::GROUP_INFO, &[0, 0]);
    for (name, address) in links {
        // Version 1, a hard link, a name of ASCII letters with its length in one byte.
        let mut link = vec![1, 0, name.len() as u8];
        link.extend(name.as_bytes());
        link.extend(address.to_le_bytes());
        push_message(&mut messages, message::LINK, &link);
    }
    object_header(&messages)
}

fn dataset_header(column: &Hdf5Column, data_at: u64) -> Vec<u8> {
    let mut messages = Vec::new();
    // Version 2, one dimension of fixed size, no flags, simple.
    let mut dataspace = vec![2, 1, 0, 1];
    dataspace.extend(column.count.to_le_bytes());
    push_message(&mut messages, message::DATASPACE, &dataspace);
    // Version 1, fixed point; little-endian, unsigned, all bits used.
    let mut datatype = vec![0x10, 0, 0, 0];
    datatype.extend((column.width as u32).to_le_bytes());
    datatype.extend([0, 0]);
    datatype.extend((column.width as u16 * 8).to_le_bytes());
    push_message(&mut messages, message::DATATYPE, &datatype);
    // Version 3, allocated late, written if set, not set.
    push_message(&mut messages, message::FILL_VALUE, &[3, 0x0a]);
    // Version 3, contiguous.
    let mut layout = vec![3, 1];
    layout.extend(if column.count == 0 { UNDEFINED } else { data_at }.to_le_bytes());
    layout.extend(column.size().to_le_bytes());
    push_message(&mut messages, message::LAYOUT, &layout);
    object_header(&messages)
}

fn push_message(messages: &mut Vec<u8>, kind: u8, data: &[u8]) {
    messages.push(kind);
    messages.extend((data.len() as u16).to_le_bytes());
    messages.push(0);
    messages.extend(data);
}

fn object_header(messages: &[u8]) -> Vec<u8> {
    let mut header = b"OHDR".to_vec();
    // Version 2, four bytes for the size of the messages, no times.
    header.extend([2, 2]);
    header.extend((messages.len() as u32).to_le_bytes());
    header.extend(messages);
    with_checksum(header)
}

fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = lookup3(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// Computes Bob Jenkins' `lookup3` hash, `hashlittle` with initial value 0: the checksum of HDF5's metadata.
fn lookup3(bytes: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let (mut a, mut b, mut c) = (start, start, start);
    let word = |chunk: &[u8], at: usize| {
        let mut padded = [0; 4];
        let rest = &chunk[at.min(chunk.len())..];
        let len = rest.len().min(4);
        padded[..len].copy_from_slice(&rest[..len]);
        u32::from_le_bytes(padded)
    };
    let mut chunks = bytes.chunks(12).peekable();
    while let Some(chunk) = chunks.next() {
        a = a.wrapping_add(word(chunk, 0));
        b = b.wrapping_add(word(chunk, 4));
        c = c.wrapping_add(word(chunk, 8));
        if chunks.peek().is_some() {
            for (rotation_a, rotation_b, rotation_c) in [(4, 6, 8), (16, 19, 4)] {
                a = a.wrapping_sub(c) ^ c.rotate_left(rotation_a);
                c = c.wrapping_add(b);
                b = b.wrapping_sub(a) ^ a.rotate_left(rotation_b);
                a = a.wrapping_add(c);
                c = c.wrapping_sub(b) ^ b.rotate_left(rotation_c);
                b = b.wrapping_add(a);
            }
        } else {
            c = (c ^ b).wrapping_sub(b.rotate_left(14));
            a = (a ^ c).wrapping_sub(c.rotate_left(11));
            b = (b ^ a).wrapping_sub(a.rotate_left(25));
            c = (c ^ b).wrapping_sub(b.rotate_left(16));
            a = (a ^ c).wrapping_sub(c.rotate_left(4));
            b = (b ^ a).wrapping_sub(a.rotate_left(14));
            c = (c ^ b).wrapping_sub(b.rotate_left(24));
        }
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookup3_of_known_texts() {
        // The author's published values.
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }

    /// Finds the dataset with this name as a reader does: superblock, group, link, header, layout.
    fn dataset<'a>(file: &'a [u8], name: &str) -> Option<&'a [u8]> {
        let number = |at: usize, len: usize| {
            let mut padded = [0; 8];
            padded[..len].copy_from_slice(&file[at..at + len]);
            u64::from_le_bytes(padded)
        };
        // Type and body of each message of the object header at `at`, whose checksum must hold.
        let messages = |at: usize| {
            assert_eq!(&file[at..at + 6], b"OHDR\x02\x02");
            let end = at + 10 + number(at + 6, 4) as usize;
            assert_eq!(number(end, 4) as u32, lookup3(&file[at..end]));
            let mut found = Vec::new();
            let mut next = at + 10;
            while next < end {
                let len = number(next + 1, 2) as usize;
                found.push((file[next], next + 4..next + 4 + len));
                next += 4 + len;
            }
            found
        };
        assert_eq!((&file[..8], number(44, 4) as u32), (&SIGNATURE[..], lookup3(&file[..44])));
        assert_eq!(number(28, 8), file.len() as u64);
        let link = messages(number(36, 8) as usize).into_iter().find(|(kind, body)| {
            *kind == message::LINK && &file[body.start + 3..body.end - 8] == name.as_bytes()
        })?;
        let header = messages(number(link.1.end - 8, 8) as usize);
        let layout = &header.iter().find(|(kind, _)| *kind == message::LAYOUT).unwrap().1;
        let (at, len) = (number(layout.start + 2, 8), number(layout.start + 10, 8) as usize);
        Some(if at == UNDEFINED { &[] } else { &file[at as usize..at as usize + len] })
    }

    #[test]
    fn every_column_lies_where_the_headers_say() {
        let input = crate::sample::bes3();
        let mut file = Vec::new();
        let converted = to_hdf5(&input, &mut file).unwrap();
        assert_eq!((converted.events, converted.fragments), (10, 420));
        let numbers = |name| -> Vec<u64> {
            let column = dataset(&file, name).unwrap();
            column.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect()
        };
        let (l1_ids, starts, places) = (numbers("l1_id"), numbers("fragment_start"), numbers("byte_start"));
        let bytes = dataset(&file, "bytes").unwrap();
        let sources = dataset(&file, "source").unwrap();
        for (number, event) in Events::open(&input).unwrap().enumerate() {
            let event = event.unwrap();
            assert_eq!(l1_ids[number], event.id.l1_id);
            let first = starts[number] as usize;
            assert_eq!(starts[number + 1] as usize - first, event.fragments.len());
            for (place, fragment) in (first..).zip(event.fragments) {
                assert_eq!(&bytes[places[place] as usize..places[place + 1] as usize], fragment.bytes);
                assert_eq!(sources[place * 4..place * 4 + 4], fragment.source.to_le_bytes());
            }
        }
        assert_eq!(dataset(&file, "run").unwrap().len(), 40);
        // BESIII's headers have no bunch crossing: the column is left out, not filled with invented numbers.
        assert_eq!(dataset(&file, "bc_id"), None);
    }
}
