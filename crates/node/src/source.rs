//! Supplies a readout's fragments: from a raw-data file, a table of sizes, or distributions of sizes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fanin_dataflow::{
    FragmentSet, FragmentSource, L1Id, Purpose, Random, SeedOwner, event_stream, fragment_stream, stream_seed,
};
use fanin_events::models::{SourceModel, relative_event_size};
use fanin_events::sizes::{EventSizes, SizesError, read_models};
use fanin_events::{Events, ReadError, file, sample};
use fanin_scenario::{Scenario, SizeModel};
use fanin_units::Bytes;

use crate::data::{Chunk, Data, append};

/// Number of latest events for which a readout remembers the deleted ones, so that a late request restores none. Takes
/// one bit an event, and covers 11 minutes at 200 Hz; requests are late by seconds.
const DELETED_REMEMBERED: u64 = 1 << 17;
/// Size of the block of random bytes from which the content of generated fragments is copied.
const NOISE_BYTES: usize = 8 << 20;

/// Errors of finding the fragments that readouts serve.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The sizes, or the models of the sources' sizes, cannot be read.
    #[error("readout.fragment_size: {0}")]
    Sizes(#[from] SizesError),
    /// The file cannot be read.
    #[error("live.replay: {}: {error}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the file.
        error: file::FileError,
    },
    /// The file contradicts its format.
    #[error("live.replay: {path}: {error}")]
    Format {
        /// Path of the file.
        path: String,
        /// Error of the reader.
        error: ReadError,
    },
    /// The file has no event.
    #[error("live.replay: there are no events in {path}")]
    Empty {
        /// Path of the file.
        path: String,
    },
    /// A readout would have to serve more sources than it can.
    #[error(
        "{sources} sources on {readouts} readouts are {each} on each; a readout serves at most {max}: \
         set readout.hosts to {needed} or more"
    )]
    TooMany {
        /// Number of all sources.
        sources: usize,
        /// Number of readouts.
        readouts: usize,
        /// Sources of the first readout.
        each: usize,
        /// Sources that one readout may serve.
        max: usize,
        /// Smallest sufficient number of readouts.
        needed: usize,
    },
    /// The file or table has fewer sources than the system has readouts.
    #[error("live.replay: {path} has {sources} sources, too few for {readouts} readouts")]
    TooFew {
        /// Path of the file.
        path: String,
        /// Number of sources in the file.
        sources: usize,
        /// Number of readouts.
        readouts: usize,
    },
}

/// The sources that each readout serves, in the order of its fragments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources(Vec<Vec<u32>>);

impl Sources {
    /// Returns the number of fragments that each readout serves.
    pub fn counts(&self) -> Vec<u16> {
        self.0.iter().map(|sources| sources.len() as u16).collect()
    }

    /// Returns the source of a readout's fragment; zero if the fragment does not exist.
    pub fn name(&self, readout: u16, fragment: u16) -> u32 {
        let sources = self.0.get(usize::from(readout));
        sources.and_then(|sources| sources.get(usize::from(fragment))).copied().unwrap_or_default()
    }

    fn share_out(all: Vec<u32>, readouts: usize) -> Result<Self, SourceError> {
        let max = usize::from(FragmentSet::FRAGMENTS_MAX);
        let (each, more) = (all.len() / readouts, all.len() % readouts);
        let largest = each + usize::from(more > 0);
        if largest > max {
            let needed = all.len().div_ceil(max);
            return Err(SourceError::TooMany { sources: all.len(), readouts, each: largest, max, needed });
        }
        let mut left = all.into_iter();
        let shares =
            (0..readouts).map(|readout| left.by_ref().take(each + usize::from(readout < more)).collect());
        Ok(Self(shares.collect()))
    }
}

/// The fragments that the readouts of a system serve.
#[derive(Debug, Clone)]
pub enum Supply {
    /// The events of a raw-data file, repeated.
    Replay(Arc<Replay>),
    /// Sizes from one distribution, and random bytes.
    Drawn {
        /// Distribution of the sizes.
        model: SizeModel,
        /// Seed of the random stream.
        seed: u64,
    },
    /// Sizes from the events of a table, repeated, and random bytes.
    Listed {
        /// Sizes by event and source.
        sizes: Arc<EventSizes>,
        /// Seed of the random bytes.
        seed: u64,
    },
    /// Sizes from a model for each source, and random bytes.
    Modelled {
        /// Size model of each source.
        models: Arc<BTreeMap<u32, SourceModel>>,
        /// Parameter σ of the relative event size ([`relative_event_size`]).
        sigma: f64,
        /// Seed of the random stream.
        seed: u64,
    },
}

/// The raw-data file of a replay, in memory.
#[derive(Debug)]
pub struct Replay {
    bytes: Vec<u8>,
    /// Ranges of each event's fragments in `bytes`, by source.
    events: Vec<HashMap<u32, Vec<Range<usize>>>>,
}

impl Replay {
    /// Returns the number of events, at least one.
    pub fn events(&self) -> usize {
        self.events.len()
    }
}

/// Returns the data that the readouts of a scenario serve, and the sources of each readout. A relative path starts at
/// `folder`.
///
/// # Errors
/// If a file cannot be read, or its number of sources does not fit the readouts.
pub fn supply(scenario: &Scenario, folder: &Path) -> Result<(Supply, Sources), SourceError> {
    let readouts = scenario.readout.hosts as usize;
    if scenario.live.replay.is_empty()
        && let SizeModel::PerSource { path, sigma } = &scenario.readout.fragment_size
    {
        let models = read_models(path, scenario.readout.hosts, scenario.readout.fragments_per_host)?;
        let models: BTreeMap<u32, SourceModel> =
            models.into_iter().map(|model| (model.source, model)).collect();
        if models.len() < readouts {
            return Err(SourceError::TooFew { path: path.clone(), sources: models.len(), readouts });
        }
        let sources = Sources::share_out(models.keys().copied().collect(), readouts)?;
        let (sigma, seed) = (sigma.as_f64(), scenario.run.seed);
        return Ok((Supply::Modelled { models: Arc::new(models), sigma, seed }, sources));
    }
    let path = match &scenario.readout.fragment_size {
        SizeModel::File { path } if scenario.live.replay.is_empty() => path,
        _ => &scenario.live.replay,
    };
    if path.is_empty() {
        let each = scenario.readout.fragments_per_host;
        let all =
            (0..readouts as u32).flat_map(|readout| (0..each).map(move |n| readout << 16 | n)).collect();
        let sources = Sources::share_out(all, readouts)?;
        let model = scenario.readout.fragment_size.clone();
        return Ok((Supply::Drawn { model, seed: scenario.run.seed }, sources));
    }
    let on_disk = folder.join(path);
    let bytes = match path.as_str() {
        "km3net" if !on_disk.exists() => sample::km3net(),
        "bes3" if !on_disk.exists() => sample::bes3(),
        _ => file::read(&on_disk, file::LIMIT)
            .map_err(|error| SourceError::File { path: on_disk.clone(), error })?,
    };
    if let Some(sizes) = EventSizes::of_table(&on_disk.to_string_lossy(), &bytes)? {
        if sizes.events.is_empty() {
            return Err(SourceError::Empty { path: path.clone() });
        }
        if sizes.sources.len() < readouts {
            return Err(SourceError::TooFew { path: path.clone(), sources: sizes.sources.len(), readouts });
        }
        let sources = Sources::share_out(sizes.sources.clone(), readouts)?;
        return Ok((Supply::Listed { sizes: Arc::new(sizes), seed: scenario.run.seed }, sources));
    }
    let format = |error| SourceError::Format { path: path.clone(), error };
    let mut all = BTreeSet::new();
    let mut events = Vec::new();
    for event in Events::open(&bytes).map_err(format)? {
        let mut by_source: HashMap<u32, Vec<Range<usize>>> = HashMap::new();
        for fragment in event.map_err(format)?.fragments {
            all.insert(fragment.source);
            let start = fragment.offset as usize;
            by_source.entry(fragment.source).or_default().push(start..start + fragment.bytes.len());
        }
        events.push(by_source);
    }
    if events.is_empty() {
        return Err(SourceError::Empty { path: path.clone() });
    }
    if all.len() < readouts {
        return Err(SourceError::TooFew { path: path.clone(), sources: all.len(), readouts });
    }
    let sources = Sources::share_out(all.into_iter().collect(), readouts)?;
    Ok((Supply::Replay(Arc::new(Replay { bytes, events })), sources))
}

/// The fragments of an event on one readout, with their headers, one after the other.
#[derive(Debug, Clone)]
struct HeldFragments {
    chunk: Chunk,
    /// Range of each fragment with its header in `chunk`.
    ranges: Arc<[Range<usize>]>,
}

/// The deleted events among the latest ones: a ring of bits of fixed size.
#[derive(Debug)]
struct DeletedEvents {
    bits: Box<[u64]>,
    /// One more than the highest deleted L1 ID. The bits are for the events before it.
    end: u64,
}

impl DeletedEvents {
    fn new() -> Self {
        Self { bits: vec![0; (DELETED_REMEMBERED / 64) as usize].into(), end: 0 }
    }

    fn place(event: u64) -> (usize, u64) {
        ((event % DELETED_REMEMBERED / 64) as usize, 1 << (event % 64))
    }

    /// Returns true if the event is one of the latest, and was deleted.
    fn contains(&self, event: L1Id) -> bool {
        let (word, bit) = Self::place(event.0);
        event.0 < self.end && self.end - event.0 <= DELETED_REMEMBERED && self.bits[word] & bit != 0
    }

    /// Notes a deleted event. An event older than the latest ones changes nothing.
    fn insert(&mut self, event: L1Id) {
        let end = event.0.saturating_add(1).max(self.end);
        // The new events reuse the bits of the oldest ones.
        for new in self.end.max(end.saturating_sub(DELETED_REMEMBERED))..end {
            let (word, bit) = Self::place(new);
            self.bits[word] &= !bit;
        }
        self.end = end;
        if end - event.0 <= DELETED_REMEMBERED {
            let (word, bit) = Self::place(event.0);
            self.bits[word] |= bit;
        }
    }
}

/// The fragment memory of one readout, and the simulated detector that fills it.
#[derive(Debug)]
pub struct FragmentMemory {
    supply: Supply,
    readout: u16,
    sources: Vec<u32>,
    held: HashMap<L1Id, HeldFragments>,
    deleted: DeletedEvents,
    /// The fragments of each event of a replay, by its place in the file, built once.
    made: HashMap<usize, HeldFragments>,
    noise: Vec<u8>,
}

impl FragmentMemory {
    /// Creates an empty memory for a readout. Without noise, all bytes of a generated fragment are equal.
    ///
    /// # Panics
    /// If the readout does not exist.
    pub fn new(supply: Supply, sources: &Sources, readout: u16, has_noise: bool) -> Self {
        let noise = match supply {
            Supply::Replay(_) => Vec::new(),
            _ if !has_noise => Vec::new(),
            Supply::Drawn { seed, .. } | Supply::Listed { seed, .. } | Supply::Modelled { seed, .. } => {
                let mut random =
                    Random::new(stream_seed(seed, SeedOwner::Readout, readout.into(), Purpose::Content));
                (0..NOISE_BYTES / 8).flat_map(|_| random.bits().to_le_bytes()).collect()
            }
        };
        Self {
            supply,
            readout,
            sources: sources.0[usize::from(readout)].clone(),
            held: HashMap::new(),
            deleted: DeletedEvents::new(),
            made: HashMap::new(),
            noise,
        }
    }

    /// Returns the number of events in the memory.
    pub fn events(&self) -> usize {
        self.held.len()
    }

    /// Returns true if the detector has not delivered the event before.
    pub fn awaits(&self, event: L1Id) -> bool {
        !self.held.contains_key(&event) && !self.deleted.contains(event)
    }

    /// Adds the fragments of an event to the memory, and returns their bytes with headers.
    pub fn deliver(&mut self, event: L1Id) -> Bytes {
        let held = match &self.supply {
            Supply::Replay(replay) => {
                let place = (event.0 % replay.events() as u64) as usize;
                let make = || replayed(replay, place, &self.sources);
                self.made.entry(place).or_insert_with(make).clone()
            }
            Supply::Drawn { model, seed } => self
                .drawn(event, *seed, |_, relative, own| model.draw(relative, own).unwrap_or_default().get()),
            Supply::Listed { sizes, seed } => {
                let listed = &sizes.events[(event.0 % sizes.events.len() as u64) as usize];
                self.drawn(event, *seed, |source, _, _| {
                    sizes.sources.binary_search(&source).map_or(0, |place| listed[place])
                })
            }
            Supply::Modelled { models, sigma, seed } => self.drawn(event, *seed, |source, relative, own| {
                let relative = relative_event_size(*sigma, relative);
                models.get(&source).map_or(0, |model| model.size_bytes(relative, own.normal()))
            }),
        };
        let bytes = held.chunk.len() as u64;
        self.held.insert(event, held);
        Bytes::new(bytes)
    }

    /// Generates fragments whose sizes and bytes depend only on seed, event and readout.
    ///
    /// `size` returns the bytes of a fragment. It receives the source, the event's number from the standard normal
    /// distribution, and the random stream of the readout's fragments of this event.
    fn drawn(&self, event: L1Id, seed: u64, size: impl Fn(u32, f64, &mut Random) -> u64) -> HeldFragments {
        let relative = event_stream(seed, event).normal();
        // Sizes are those of a simulation with this seed: bytes have a stream of their own.
        let stream = |purpose| fragment_stream(seed, self.readout.into(), event, purpose);
        let [mut own, mut content] = [Purpose::Fragment, Purpose::Content].map(stream);
        let mut bytes = Vec::new();
        let ranges = self.sources.iter().map(|&source| {
            let size = size(source, relative, &mut own) as usize;
            let start = bytes.len();
            let room = NOISE_BYTES.saturating_sub(size).max(1) as u32;
            let from = content.below(room) as usize;
            match self.noise.get(from..from + size) {
                Some(noise) => append(&mut bytes, source, 0, noise),
                None => append(&mut bytes, source, 0, &vec![content.bits() as u8; size]),
            }
            start..bytes.len()
        });
        let ranges = ranges.collect();
        HeldFragments { chunk: bytes.into(), ranges }
    }
}

fn replayed(replay: &Replay, place: usize, sources: &[u32]) -> HeldFragments {
    let mut bytes = Vec::new();
    let ranges = sources.iter().map(|source| {
        let start = bytes.len();
        for range in replay.events[place].get(source).into_iter().flatten() {
            append(&mut bytes, *source, 0, &replay.bytes[range.clone()]);
        }
        start..bytes.len()
    });
    let ranges = ranges.collect();
    HeldFragments { chunk: bytes.into(), ranges }
}

impl FragmentSource<Data> for FragmentMemory {
    fn read(&mut self, event: L1Id, wanted: FragmentSet) -> (Data, FragmentSet) {
        let here = FragmentSet::first(self.sources.len() as u16);
        let Some(held) = self.held.get(&event) else { return (Data::default(), wanted) };
        let served = wanted.intersection(here);
        if served == here {
            return (Data::new(held.chunk.clone()), wanted.without(here));
        }
        let mut data = Data::default();
        for fragment in served.iter() {
            let range = held.ranges[usize::from(fragment)].clone();
            fanin_dataflow::FragmentPayload::append(
                &mut data,
                self.readout,
                Data::new(held.chunk.slice(range)),
            );
        }
        (data, wanted.without(here))
    }

    fn delete(&mut self, event: L1Id) {
        self.held.remove(&event);
        self.deleted.insert(event);
    }

    fn delete_up_to(&mut self, event: L1Id) {
        self.held.retain(|&held, _| held > event);
        let first = event.0.saturating_sub(DELETED_REMEMBERED - 1);
        (first..=event.0).for_each(|event| self.deleted.insert(L1Id(event)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::check;

    #[test]
    fn the_latest_deleted_events_are_remembered_in_a_fixed_size() {
        let mut deleted = DeletedEvents::new();
        let size = deleted.bits.len();
        // Every third event stays; neighbours are deleted out of order.
        for event in (0..3 * DELETED_REMEMBERED).map(|event| event ^ 1).filter(|event| event % 3 > 0) {
            deleted.insert(L1Id(event));
        }
        let end = 3 * DELETED_REMEMBERED;
        let of_the_latest = end - DELETED_REMEMBERED..end;
        assert!(of_the_latest.clone().all(|event| deleted.contains(L1Id(event)) == (event % 3 > 0)));
        assert!((0..of_the_latest.start).all(|event| !deleted.contains(L1Id(event))));
        assert!((end..end + DELETED_REMEMBERED).all(|event| !deleted.contains(L1Id(event))));
        // An event that is too old shares its bit with a later one.
        assert!(!deleted.contains(L1Id(of_the_latest.start + 2)) && !deleted.contains(L1Id(2)));
        deleted.insert(L1Id(2));
        assert!(!deleted.contains(L1Id(of_the_latest.start + 2)) && !deleted.contains(L1Id(2)));
        // A jump to a much later event forgets all others.
        deleted.insert(L1Id(10 * DELETED_REMEMBERED));
        assert!(deleted.contains(L1Id(10 * DELETED_REMEMBERED)));
        assert!((0..10 * DELETED_REMEMBERED).all(|event| !deleted.contains(L1Id(event))));
        deleted.insert(L1Id(u64::MAX));
        assert_eq!(deleted.bits.len(), size);
    }

    fn replay() -> (Supply, Sources) {
        let scenario = fanin_scenario::load("replay", &[]).unwrap().scenario;
        supply(&scenario, Path::new(".")).unwrap()
    }

    #[test]
    fn all_sources_are_shared_out_evenly() {
        let (_, sources) = replay();
        let counts = sources.counts();
        assert_eq!((counts.len(), counts.iter().map(|&n| u32::from(n)).sum::<u32>()), (24, 453));
        assert!(counts.iter().all(|count| (18..=19).contains(count)));
    }

    #[test]
    fn a_replay_serves_every_byte_of_the_file() {
        let (supply, sources) = replay();
        let file = sample::km3net();
        let events: Vec<_> = Events::open(&file).unwrap().map(Result::unwrap).collect();
        let mut readouts: Vec<_> =
            (0..24).map(|n| FragmentMemory::new(supply.clone(), &sources, n, true)).collect();
        for (number, event) in events.iter().chain(&events).enumerate() {
            let id = L1Id(number as u64);
            let (mut bytes, mut fragments) = (0, 0);
            for readout in &mut readouts {
                assert!(readout.awaits(id));
                readout.deliver(id);
                let (data, missing) = readout.read(id, FragmentSet::first(128));
                let known = FragmentSet::first(readout.sources.len() as u16);
                assert_eq!(missing, FragmentSet::first(128).without(known));
                let content = check(&data.parts()[0]).unwrap();
                bytes += content.bytes;
                fragments += content.fragments as usize;
                readout.delete(id);
                assert!(!readout.awaits(id));
                assert_eq!(readout.read(id, FragmentSet::first(1)).1, FragmentSet::first(1));
            }
            assert_eq!((bytes, fragments), (event.fragment_bytes().get(), event.fragments.len()));
        }
    }

    /// Returns the supply of two readouts from a table and the keys of its size model.
    fn supplied(name: &str, table: &str, model: &str) -> (Supply, Sources) {
        let path = std::env::temp_dir().join(format!("fanin-{name}-{}.csv", std::process::id()));
        std::fs::write(&path, table).unwrap();
        let sets = [
            "live.replay=\"\"".to_owned(),
            "readout.hosts=2".to_owned(),
            "readout.fragments_per_host=2".to_owned(),
            format!("readout.fragment_size={{ {model}, path = '{}' }}", path.display()),
        ];
        let scenario =
            fanin_scenario::load("replay", &sets).unwrap_or_else(|errors| panic!("{errors}")).scenario;
        let supplied = supply(&scenario, Path::new("."));
        std::fs::remove_file(&path).unwrap();
        supplied.unwrap()
    }

    #[test]
    fn each_source_has_the_sizes_of_its_own_model() {
        let (supply, sources) = supplied(
            "models",
            "source,offset,slope,square,rms\n7,100,0,0,0\n9,300,0,0,0\n8,200,0,0,0\n",
            "distribution = 'per-source', sigma = 0.3",
        );
        assert_eq!(sources.counts(), [2, 1]);
        for (readout, wanted) in [(0, &[(7, 100), (8, 200)][..]), (1, &[(9, 300)])] {
            let mut memory = FragmentMemory::new(supply.clone(), &sources, readout, true);
            memory.deliver(L1Id(3));
            let data = memory.read(L1Id(3), FragmentSet::first(2)).0;
            let sizes: Vec<_> =
                data.fragments().map(Result::unwrap).map(|f| (f.source, f.bytes.len())).collect();
            assert_eq!(sizes, wanted);
        }
    }

    #[test]
    fn a_table_gives_each_source_its_sizes_event_by_event() {
        let (supply, sources) = supplied(
            "table",
            "event,source,bytes\n5,1,100\n5,4,200\n5,9,300\n7,1,150\n7,9,0\n",
            "distribution = 'file'",
        );
        assert_eq!(sources.counts(), [2, 1]);
        for (event, readout, wanted) in
            [(0, 0, &[(1, 100), (4, 200)][..]), (1, 0, &[(1, 150), (4, 0)]), (2, 1, &[(9, 300)])]
        {
            let mut memory = FragmentMemory::new(supply.clone(), &sources, readout, true);
            memory.deliver(L1Id(event));
            let data = memory.read(L1Id(event), FragmentSet::first(2)).0;
            let sizes: Vec<_> =
                data.fragments().map(Result::unwrap).map(|f| (f.source, f.bytes.len())).collect();
            assert_eq!(sizes, wanted, "{event}");
        }
    }

    /// A simulation with this seed has the same events (`the_live_readouts_have_these_sizes` of `sim`).
    #[test]
    fn drawn_fragments_have_the_sizes_of_the_simulation() {
        let sets = [
            "run.seed=1",
            "live.replay=\"\"",
            "readout.hosts=3",
            "readout.fragments_per_host=2",
            "readout.fragment_size={ distribution = 'log-normal', mean = '2 kB', sigma = 0.5, fragment_sd = '200 B' }",
        ];
        let scenario = fanin_scenario::load("replay", &sets.map(str::to_owned)).unwrap().scenario;
        let (supply, sources) = supply(&scenario, Path::new(".")).unwrap();
        let headers = 2 * crate::data::FRAGMENT_HEADER_BYTES as u64;
        let event = |event| {
            let of = |readout| FragmentMemory::new(supply.clone(), &sources, readout, true);
            (0..3).map(|readout| of(readout).deliver(L1Id(event)).get() - headers).sum::<u64>()
        };
        assert_eq!([0, 1, 2].map(event), [17_593, 5_856, 48_728]);
    }

    #[test]
    fn drawn_fragments_are_the_same_each_time_and_can_be_had_one_by_one() {
        let sets = ["live.replay=\"\"", "readout.hosts=3", "readout.fragment_size=2 kB"].map(str::to_owned);
        let scenario = fanin_scenario::load("replay", &sets).unwrap().scenario;
        let (supply, sources) = supply(&scenario, Path::new(".")).unwrap();
        let mut memory = FragmentMemory::new(supply.clone(), &sources, 1, true);
        let mut again = FragmentMemory::new(supply, &sources, 1, true);
        for event in [L1Id(5), L1Id(9)] {
            assert_eq!(memory.deliver(event), again.deliver(event));
            let all = memory.read(event, FragmentSet::first(19)).0;
            assert_eq!(all, again.read(event, FragmentSet::first(19)).0);
            let some = memory.read(event, FragmentSet::from_bits(0b1001)).0;
            let named: Vec<_> = some.fragments().map(|f| f.unwrap().source).collect();
            assert_eq!(named, [1 << 16, 1 << 16 | 3]);
            assert!(all.fragments().all(|fragment| fragment.unwrap().is_sound()));
        }
        assert_ne!(memory.read(L1Id(5), FragmentSet::first(1)), memory.read(L1Id(9), FragmentSet::first(1)));
    }
}
