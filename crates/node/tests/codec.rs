//! Every message survives the wire in exactly the bytes that the data flow says; nothing else is taken for one.

use std::sync::Arc;

use fanin_dataflow::{
    EventStream, FRAME_HEADER_BYTES, FinishedEvent, FragmentSet, Hello, L1Id, Message, Outcome, Selection,
    Wanted,
};
use fanin_node::codec::{DecodeError, VERSIONS, decode, encode};
use fanin_node::data::{Chunk, Data};
use fanin_units::{Bytes, Ratio};
use proptest::prelude::*;

fn event() -> impl Strategy<Value = L1Id> {
    any::<u64>().prop_map(L1Id)
}

fn stream() -> impl Strategy<Value = EventStream> {
    any::<bool>().prop_map(|debug| if debug { EventStream::Debug } else { EventStream::Physics })
}

fn version() -> impl Strategy<Value = u16> {
    VERSIONS.lowest..=VERSIONS.highest
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![Just(Outcome::Rejected), Just(Outcome::Accepted), Just(Outcome::Stored), Just(Outcome::Debug),]
}

fn done() -> impl Strategy<Value = FinishedEvent> {
    (event(), outcome()).prop_map(|(event, outcome)| FinishedEvent { event, outcome })
}

fn set() -> impl Strategy<Value = FragmentSet> {
    any::<u128>().prop_map(FragmentSet::from_bits)
}

fn selection() -> impl Strategy<Value = Selection> {
    let share = || (0..=Ratio::ONE.get()).prop_map(Ratio::new);
    let wanted = (any::<u16>(), 1..=u128::MAX)
        .prop_map(|(readout, bits)| Wanted { readout, fragments: FragmentSet::from_bits(bits) });
    prop_oneof![
        Just(Selection::Rest),
        Just(Selection::Region),
        share().prop_map(Selection::Readouts),
        share().prop_map(Selection::Fragments),
        prop::collection::vec(wanted, 0..5).prop_map(|list| Selection::List(Arc::from(list))),
    ]
}

fn data() -> impl Strategy<Value = Data> {
    prop::collection::vec(any::<u8>(), 0..300).prop_map(|bytes| Data::new(Chunk::from(bytes)))
}

fn message() -> impl Strategy<Value = Message<Data>> {
    let hello = (
        prop::collection::vec(any::<u16>(), 0..5),
        prop::collection::vec(event(), 0..5),
        prop::collection::vec(done(), 0..5),
    );
    let events = || prop::collection::vec(event(), 0..9);
    prop_oneof![
        hello.prop_map(|(idle, busy, done)| Message::Hello(Box::new(Hello { idle, busy, done }))),
        events().prop_map(|events| Message::Welcome(events.into())),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Message::Succession(bytes.into())),
        (any::<u16>(), prop::option::of(done())).prop_map(|(unit, done)| Message::Ready { unit, done }),
        done().prop_map(Message::Done),
        (event(), any::<u16>(), any::<bool>(), selection(), data()).prop_map(
            |(event, unit, direct, region, result)| Message::Assign { event, unit, direct, region, result }
        ),
        (any::<u32>(), event(), set()).prop_map(|(tag, event, fragments)| Message::Request {
            tag,
            event,
            fragments
        }),
        (any::<u32>(), event(), set(), data()).prop_map(|(tag, event, missing, payload)| Message::Answer {
            tag,
            event,
            missing,
            payload
        }),
        events().prop_map(|events| Message::Clear(events.into())),
        any::<bool>().prop_map(|stop| Message::Flow { stop }),
        (event(), any::<u64>()).prop_map(|(event, size)| Message::Offer { event, size: Bytes::new(size) }),
        event().prop_map(|event| Message::Grant { event }),
        event().prop_map(|event| Message::Refuse { event }),
        event().prop_map(|event| Message::Withdraw { event }),
        (event(), stream(), any::<u32>(), data())
            .prop_map(|(event, stream, missing, payload)| Message::Event { event, stream, missing, payload }),
        (event(), stream()).prop_map(|(event, stream)| Message::Stored { event, stream }),
    ]
}

/// The bytes after the frame header.
fn body(message: Message<Data>, version: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    let payload = encode(message, version, &mut bytes);
    payload.parts().iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn messages_survive_in_exactly_their_bytes(message in message(), version in version()) {
        let bytes = body(message.clone(), version);
        let (kind, stream) = (message.message_type(), message.stream_id());
        // No simulated network carries the checksums of version 2.
        let checksum = if version > 1 && matches!(message, Message::Succession(_)) { 4 } else { 0 };
        prop_assert_eq!(FRAME_HEADER_BYTES + bytes.len() as u64, message.wire_bytes().get() + checksum);
        prop_assert_eq!(decode(kind, stream, &bytes.into(), version), Ok(message));
    }

    /// A vote or a piece of the shared log is whole, or is no message.
    #[test]
    fn a_damaged_message_about_the_leader_is_noticed(
        content in prop::collection::vec(any::<u8>(), 0..80),
        at in any::<prop::sample::Index>(),
        bit in 0_u8..8,
    ) {
        let mut bytes = body(Message::Succession(content.into()), 2);
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        let decoded = decode(16, 0, &bytes.into(), 2);
        prop_assert!(matches!(decoded, Err(DecodeError::Checksum { .. })), "{:?}", decoded);
    }

    #[test]
    fn random_bytes_give_a_message_or_an_error(
        kind in 0_u32..20,
        stream in any::<u32>(),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        version in version(),
    ) {
        if let Ok(message) = decode(kind, stream, &bytes.clone().into(), version) {
            // A decoded message has exactly the bytes of its frame.
            prop_assert_eq!(message.wire_bytes().get(), FRAME_HEADER_BYTES + bytes.len() as u64);
        }
    }

    #[test]
    fn a_damaged_message_gives_another_or_an_error(message in message(), at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let mut bytes = body(message.clone(), 1);
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
            let _ = decode(message.message_type(), message.stream_id(), &bytes.clone().into(), 1);
            bytes.truncate(at);
            let _ = decode(message.message_type(), message.stream_id(), &bytes.into(), 1);
        }
    }
}

#[test]
fn errors_say_the_actual_and_the_needed_value() {
    let text =
        |kind, stream, bytes: &[u8]| decode(kind, stream, &bytes.to_vec().into(), 2).unwrap_err().to_string();
    assert_eq!(text(16, 0, &[0; 3]), "succession: 4 more bytes for its checksum, 3 left");
    assert_eq!(
        text(16, 0, b"\0\x01\0\0\0"),
        "succession: its checksum is 0x00000001, that of its content 0xd202ef8d"
    );
    assert_eq!(text(17, 0, b""), "message type 17 is not in 1 to 16");
    assert_eq!(text(9, 0, b"x"), "flow: 2 more bytes for the flag, 1 left");
    assert_eq!(text(9, 0, &[2, 0]), "flow: the flag is 2");
    assert_eq!(text(11, 0, &[0; 11]), "grant: 1 bytes after the last field");
    assert_eq!(text(3, 70_000, &[0; 10]), "ready: the unit is 70000");
    let many = [&u32::MAX.to_le_bytes()[..], &[0; 8]].concat();
    assert_eq!(text(1, 0, &many), "hello: 8589934590 more bytes for its lists, 0 left");
    let twice = [&[0; 8][..], &[5, 0, 0, 0, 5, 0, 0, 0]].concat();
    assert_eq!(text(6, 0, &twice), "request: a fragment is 5");
}
