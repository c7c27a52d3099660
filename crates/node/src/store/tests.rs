//! A logger's files on a disk of which single calls fail.

use std::collections::BTreeMap;
use std::time::Instant;

use fanin_dataflow::L1Id;
use fanin_events::Events;
use fanin_message::SimulatedNetwork;
use rustix::io::Errno;

use super::*;
use crate::data::{Chunk, append};
use crate::journal::EarlierLines as _;
use crate::machine::{SimulatedFile, SimulatedMachine, TurnTask};

/// The files of a machine, and the calls that fail.
#[derive(Debug, Default)]
struct TestDisk {
    files: BTreeMap<PathBuf, Vec<u8>>,
    failing: Vec<&'static str>,
}

impl TestDisk {
    fn call(&self, name: &str) -> io::Result<()> {
        if self.failing.contains(&name) { Err(Errno::IO.into()) } else { Ok(()) }
    }
}

type SharedTask = Arc<Mutex<dyn TurnTask>>;

#[derive(Debug, Clone, Default)]
struct TestMachine {
    disk: Arc<Mutex<TestDisk>>,
    store: Arc<Mutex<Option<SharedTask>>>,
}

impl TestMachine {
    fn call(&self, name: &str) -> io::Result<()> {
        self.disk.lock().unwrap().call(name)
    }

    /// Writes events as one group. Returns the results, without changes of the disk's state.
    fn write(&self, store: &EventStore, events: &[u32]) -> Vec<Stored> {
        events.iter().for_each(|&event| store.write(job(event)));
        let task = self.store.lock().unwrap().clone().unwrap();
        task.lock().unwrap().turn(Duration::ZERO);
        std::iter::from_fn(|| store.poll()).filter(|stored| !matches!(stored, Stored::Disk(_))).collect()
    }

    /// Returns the events of all finished files, in order.
    fn events(&self) -> Vec<u32> {
        let disk = self.disk.lock().unwrap();
        let stored = disk.files.iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "data"));
        let mut found: Vec<u32> = stored
            .flat_map(|(_, bytes)| Events::open(bytes).unwrap().map(|event| event.unwrap().id.l1_id as u32))
            .collect();
        found.sort_unstable();
        found
    }
}

impl SimulatedMachine for TestMachine {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn since_1970(&self) -> Duration {
        Duration::ZERO
    }

    fn boot(&self) -> String {
        unreachable!("a store writes no journal")
    }

    fn network(&self) -> Box<dyn SimulatedNetwork> {
        unreachable!("a store has no connections")
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn SimulatedFile>> {
        self.call("open")?;
        let mut disk = self.disk.lock().unwrap();
        if matches!(mode, OpenMode::Read | OpenMode::Write) && !disk.files.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let file = disk.files.entry(path.to_owned()).or_default();
        if mode == OpenMode::Create {
            file.clear();
        }
        Ok(Box::new(TestFile { disk: Arc::clone(&self.disk), path: path.to_owned() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call("rename")?;
        let mut disk = self.disk.lock().unwrap();
        let bytes = disk.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        disk.files.insert(to.to_owned(), bytes);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call("remove")?;
        self.disk.lock().unwrap().files.remove(path).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let disk = self.disk.lock().unwrap();
        Ok(disk.files.keys().filter(|path| path.parent() == Some(folder)).cloned().collect())
    }

    fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        self.call("sync_folder")
    }

    fn run_store(&self, task: SharedTask) {
        *self.store.lock().unwrap() = Some(task);
    }
}

#[derive(Debug)]
struct TestFile {
    disk: Arc<Mutex<TestDisk>>,
    path: PathBuf,
}

impl TestFile {
    fn with<T>(&self, name: &str, work: impl FnOnce(&mut Vec<u8>) -> T) -> io::Result<T> {
        let mut disk = self.disk.lock().unwrap();
        disk.call(name)?;
        disk.files.get_mut(&self.path).map(work).ok_or(io::ErrorKind::NotFound.into())
    }
}

impl SimulatedFile for TestFile {
    fn size(&self) -> io::Result<u64> {
        self.with("size", |file| file.len() as u64)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        self.with("read", |file| {
            let rest = &file[file.len().min(offset as usize)..];
            let read = rest.len().min(bytes.len());
            bytes[..read].copy_from_slice(&rest[..read]);
            read
        })
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.with("write", |file| {
            let end = offset as usize + bytes.len();
            file.resize(file.len().max(end), 0);
            file[offset as usize..end].copy_from_slice(bytes);
            bytes.len()
        })
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.with("set_size", |file| file.resize(size as usize, 0))
    }

    fn sync(&self) -> io::Result<()> {
        self.with("sync", |_| ())
    }
}

fn job(event: u32) -> WriteJob<Data> {
    let mut bytes = Vec::new();
    append(&mut bytes, 7, 0, &[event as u8; 300]);
    WriteJob {
        id: StoreId(event.into()),
        event: L1Id(event.into()),
        collector: 0,
        stream: EventStream::Physics,
        missing: 0,
        payload: Data::new(Chunk::from(bytes)),
    }
}

fn start(machine: &TestMachine) -> EventStore {
    start_after(machine, &LastAcknowledged::default())
}

fn start_after(machine: &TestMachine, earlier: &LastAcknowledged) -> EventStore {
    let machine = HostMachine::Simulated(Arc::new(machine.clone()));
    let config = StoreConfig {
        folder: PathBuf::from("/data"),
        process: "logger-0".to_owned(),
        file_bytes: 1 << 20,
        run: 1,
    };
    EventStore::start(&machine, config, earlier, Arc::new(|| ())).unwrap()
}

/// The events of a failed group go to another logger. None may be stored here, too, even if the disk refused to cut the
/// group off at first.
#[test]
fn a_group_that_cannot_be_cut_off_is_cut_off_later() {
    let failed = |events: &[u32]| -> Vec<Stored> {
        events.iter().map(|&event| Stored::Failed(StoreId(event.into()))).collect()
    };
    let safe = |event: u32| vec![Stored::Safe(StoreId(event.into()))];
    for first_is_safe in [true, false] {
        let machine = TestMachine::default();
        let store = start(&machine);
        if first_is_safe {
            assert_eq!(machine.write(&store, &[1]), safe(1));
        }
        machine.disk.lock().unwrap().failing = vec!["sync", "set_size", "remove"];
        assert_eq!(machine.write(&store, &[2, 3]), failed(&[2, 3]));
        // The disk takes writes again, but the group is still in the file: no event is stored behind it.
        machine.disk.lock().unwrap().failing = vec!["set_size", "remove"];
        assert_eq!(machine.write(&store, &[4]), failed(&[4]));
        machine.disk.lock().unwrap().failing.clear();
        assert_eq!(machine.write(&store, &[5]), safe(5));
        drop(store);
        drop(start(&machine));
        let stored = if first_is_safe { vec![1, 5] } else { vec![5] };
        assert_eq!(machine.events(), stored);
    }
}

const UNFINISHED: &str = "/data/logger-0-physics-00000.data.writing";
const KEPT: &str = "/data/logger-0-physics-00000.damaged";

/// Returns the unfinished file of a logger that died after it had stored events 1 to 4.
fn unfinished() -> Vec<u8> {
    let machine = TestMachine::default();
    let store = start(&machine);
    (1..5).for_each(|event| drop(machine.write(&store, &[event])));
    let bytes = machine.disk.lock().unwrap().files[Path::new(UNFINISHED)].clone();
    drop(store);
    bytes
}

/// Returns a machine with an unfinished file of these bytes.
fn machine_with(bytes: &[u8]) -> TestMachine {
    let machine = TestMachine::default();
    machine.disk.lock().unwrap().files.insert(UNFINISHED.into(), bytes.to_vec());
    machine
}

/// Returns what the journal of a logger says that acknowledged event `last` of the physics stream.
fn acknowledged(last: u32) -> LastAcknowledged {
    let mut earlier = LastAcknowledged::default();
    for line in ["# fanin journal 1 logger-0 boot a epoch-us 1", &format!("5 {last} stored 0 physics 0")] {
        earlier.take_line(line);
    }
    earlier
}

#[test]
fn a_damaged_byte_of_an_unfinished_file_costs_its_event_alone() {
    let whole = unfinished();
    let places: Vec<_> = scan(&whole).events.iter().map(scan::range).collect();
    assert_eq!(places.len(), 4);
    let mut kept = 0;
    for place in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x10;
        let machine = machine_with(&bytes);
        drop(start_after(&machine, &acknowledged(4)));
        let found = machine.events();
        for (event, range) in (1..5).zip(&places) {
            assert!(found.contains(&event) || range.contains(&place), "byte {place} cost event {event}");
        }
        let disk = machine.disk.lock().unwrap();
        for (path, bytes) in disk.files.iter().filter(|(path, _)| path.extension().unwrap() == "data") {
            assert!(sound(bytes).is_ok(), "byte {place}: {}", path.display());
        }
        let copy = disk.files.get(Path::new(KEPT));
        assert!(found.len() == 4 || copy == Some(&bytes), "byte {place}: {found:?}");
        kept += usize::from(copy.is_some());
        assert_eq!(disk.files.len(), 1 + usize::from(copy.is_some()), "{:?}", disk.files.keys());
    }
    assert!(kept > 4 * 300, "{kept} bytes are protected");
}

#[test]
fn a_torn_end_is_cut_off_and_copied_unless_the_journal_proves_it_new() {
    let whole = unfinished();
    let torn = &whole[..whole.len() - 7];
    let other_boot = {
        let mut earlier = acknowledged(3);
        earlier.take_line("# fanin journal 1 logger-0 boot b epoch-us 2");
        earlier
    };
    for (earlier, copies) in [(acknowledged(3), 0), (acknowledged(4), 1), (other_boot, 1)] {
        let machine = machine_with(torn);
        drop(start_after(&machine, &earlier));
        assert_eq!(machine.events(), [1, 2, 3]);
        let disk = machine.disk.lock().unwrap();
        assert_eq!(disk.files.len(), 1 + copies);
        assert!(copies == 0 || disk.files[Path::new(KEPT)] == torn);
    }
}

/// An event that no logger can write must not go round for ever: its other fragments are stored, and it is named.
#[test]
fn an_invalid_event_ends_in_the_debug_stream() {
    let machine = TestMachine::default();
    let store = start(&machine);
    let invalid = || {
        let mut bytes = Vec::new();
        (7..10).for_each(|source| append(&mut bytes, source, 0, &[source as u8; 30]));
        bytes[16 + 30 + 20] ^= 1;
        WriteJob { payload: Data::new(Chunk::from(bytes)), ..job(5) }
    };
    let turn = |job: WriteJob<Data>| {
        store.write(job);
        machine.write(&store, &[])
    };
    let (failed, id) = (vec![Stored::Failed(StoreId(5))], StoreId(5));
    assert_eq!((turn(invalid()), turn(invalid())), (failed.clone(), failed.clone()));
    assert_eq!(turn(invalid()), [Stored::StandIn { id, fragments: 1 }]);
    // A right copy of another event is stored as it is.
    assert_eq!((turn(invalid()), turn(job(5))), (failed.clone(), vec![Stored::Safe(id)]));
    assert_eq!(turn(invalid()), failed, "the count begins anew");
    drop(store);
    let disk = machine.disk.lock().unwrap();
    let debug = disk.files.iter().find(|(path, _)| path.to_str().unwrap().contains("-debug-")).unwrap().1;
    assert!(sound(debug).is_ok());
    let events: Vec<_> = Events::open(debug).unwrap().map(Result::unwrap).collect();
    let found = events[0].fragments.iter().map(|part| (part.source, part.status, part.bytes.len()));
    assert_eq!(found.collect::<Vec<_>>(), [(7, 0, 30), (8, crate::data::STAND_IN, 0), (9, 0, 30)]);
    assert_eq!((events.len(), events[0].id.l1_id), (1, 5));
}

/// Wherever a start ends, the next one finds all events, and the copy of the damaged file.
#[test]
fn an_interrupted_repair_is_repeated() {
    let mut bytes = unfinished();
    let second = scan::range(&scan(&bytes).events[1]);
    bytes[second.end - 20] ^= 1;
    for failing in ["open", "write", "sync", "rename", "sync_folder", "remove", "set_size"] {
        let machine = machine_with(&bytes);
        machine.disk.lock().unwrap().failing = vec![failing];
        let host = HostMachine::Simulated(Arc::new(machine.clone()));
        let config =
            StoreConfig { folder: "/data".into(), process: "logger-0".into(), file_bytes: 1 << 20, run: 1 };
        drop(EventStore::start(&host, config, &acknowledged(4), Arc::new(|| ())));
        machine.disk.lock().unwrap().failing.clear();
        drop(start_after(&machine, &acknowledged(4)));
        assert_eq!(machine.events(), [1, 3, 4], "{failing}");
        let disk = machine.disk.lock().unwrap();
        assert_eq!(disk.files[Path::new(KEPT)], bytes);
        assert_eq!(disk.files.len(), 2, "{failing}: {:?}", disk.files.keys());
    }
}

/// The number that a metric shows. A copy of a copy's number has a number of its own in front.
#[test]
fn copies_of_damaged_files_count_until_they_are_deleted() {
    let mut bytes = unfinished();
    let second = scan::range(&scan(&bytes).events[1]);
    bytes[second.end - 20] ^= 1;
    let machine = machine_with(&bytes);
    machine.disk.lock().unwrap().files.insert("/data/logger-0-debug-00007.2.damaged".into(), vec![1]);
    machine.disk.lock().unwrap().files.insert("/data/logger-1-debug-00007.damaged".into(), vec![1]);
    let store = start_after(&machine, &acknowledged(4));
    assert_eq!(store.damaged_copies(), 2);
    machine.disk.lock().unwrap().files.remove(Path::new(KEPT));
    assert_eq!(store.damaged_copies(), 1);
    drop(store);
    assert_eq!(start_after(&machine, &acknowledged(4)).damaged_copies(), 1);
}

/// A number is used once, even if only a copy of its file is left.
#[test]
fn the_number_of_a_copy_is_not_taken_again() {
    let mut bytes = unfinished();
    bytes.truncate(100);
    let machine = machine_with(&bytes);
    let store = start(&machine);
    machine.write(&store, &[9]);
    drop(store);
    let disk = machine.disk.lock().unwrap();
    let names: Vec<_> = disk.files.keys().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["logger-0-physics-00000.damaged", "logger-0-physics-00001.data"]);
}

#[test]
fn only_a_disk_without_space_or_quota_is_full() {
    let state = |errno: Errno| DiskState::of(&errno.into());
    assert_eq!(state(Errno::NOSPC), DiskState::Full);
    assert_eq!(state(Errno::DQUOT), DiskState::Full);
    for errno in [Errno::MFILE, Errno::NFILE, Errno::IO, Errno::ROFS, Errno::FBIG, Errno::ACCESS] {
        assert_eq!(state(errno), DiskState::Failing(errno.into()));
    }
}
