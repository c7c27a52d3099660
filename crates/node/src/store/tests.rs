//! A logger's files on a disk of which single calls fail.

use std::collections::BTreeMap;
use std::time::Instant;

use fanin_dataflow::L1Id;
use fanin_message::SimulatedNetwork;
use rustix::io::Errno;

use super::*;
use crate::data::{Chunk, append};
use crate::machine::{SimulatedFile, SimulatedMachine};

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

#[derive(Debug, Clone, Default)]
struct TestMachine {
    disk: Arc<Mutex<TestDisk>>,
    store: Arc<Mutex<Option<Arc<Mutex<StoreTask>>>>>,
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

    /// Returns the events of all files, in order.
    fn events(&self) -> Vec<u32> {
        let disk = self.disk.lock().unwrap();
        let mut found: Vec<u32> = (disk.files.values())
            .flat_map(|bytes| Events::open(bytes).unwrap().map(|event| event.unwrap().id.l1_id as u32))
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

    fn list(&self, _folder: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(self.disk.lock().unwrap().files.keys().cloned().collect())
    }

    fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        self.call("sync_folder")
    }

    fn run_store(&self, task: Arc<Mutex<StoreTask>>) {
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
    let machine = HostMachine::Simulated(Arc::new(machine.clone()));
    let config = StoreConfig {
        folder: PathBuf::from("/data"),
        process: "logger-0".to_owned(),
        file_bytes: 1 << 20,
        run: 1,
    };
    EventStore::start(&machine, config, Arc::new(|| ())).unwrap()
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

#[test]
fn only_a_disk_without_space_or_quota_is_full() {
    let state = |errno: Errno| DiskState::of(&errno.into());
    assert_eq!(state(Errno::NOSPC), DiskState::Full);
    assert_eq!(state(Errno::DQUOT), DiskState::Full);
    for errno in [Errno::MFILE, Errno::NFILE, Errno::IO, Errno::ROFS, Errno::FBIG, Errno::ACCESS] {
        assert_eq!(state(errno), DiskState::Failing(errno.into()));
    }
}
