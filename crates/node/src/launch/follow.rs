//! Follows the supervisor's journal while the system runs, across rotated files, and counts assigned events.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Bytes read at a time.
const BLOCK: usize = 64 << 10;

/// Reads the lines that a supervisor adds to its journal. A file that is deleted or rotated meanwhile is read to its end.
#[derive(Debug)]
pub(super) struct JournalFollower {
    path: PathBuf,
    file: Option<File>,
    /// Bytes of an incomplete line.
    rest: Vec<u8>,
    offset: u64,
    last: Option<u64>,
    assigned: u64,
    epoch: Vec<u8>,
    incarnations: u64,
}

impl JournalFollower {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            rest: Vec::new(),
            offset: 0,
            last: None,
            assigned: 0,
            epoch: Vec::new(),
            incarnations: 0,
        }
    }

    /// Returns the number of events assigned so far, each counted once.
    pub(super) fn assigned(&self) -> u64 {
        self.assigned
    }

    /// Returns the number of the supervisor's incarnations so far that have written a header into the journal.
    pub(super) fn incarnations(&self) -> u64 {
        self.incarnations
    }

    /// Reads the lines added since the last call.
    pub(super) fn poll(&mut self) {
        self.read_on();
        let inode = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let here = std::fs::metadata(&self.path).map(inode);
        let open = self.file.as_ref().and_then(|file| file.metadata().ok()).map(inode);
        if let Ok(here) = here
            && open != Some(here)
        {
            // The old file may have grown between reading it and the call of `metadata`.
            self.read_on();
            (self.file, self.offset) = (File::open(&self.path).ok(), 0);
            self.rest.clear();
            self.read_on();
        }
    }

    fn read_on(&mut self) {
        let Some(mut file) = self.file.take() else { return };
        // A restarted supervisor cuts off the incomplete line of its earlier incarnation.
        if file.metadata().is_ok_and(|metadata| metadata.len() < self.offset) {
            self.offset = self.offset.saturating_sub(self.rest.len() as u64);
            self.rest.clear();
            let _ = file.seek(SeekFrom::Start(self.offset));
        }
        let mut block = vec![0; BLOCK];
        while let Ok(count @ 1..) = file.read(&mut block) {
            self.offset += count as u64;
            self.rest.extend_from_slice(&block[..count]);
            let rest = std::mem::take(&mut self.rest);
            let whole = rest.iter().rposition(|&byte| byte == b'\n').map_or(0, |place| place + 1);
            rest[..whole].split(|&byte| byte == b'\n').for_each(|line| self.note(line));
            self.rest = rest[whole..].to_vec();
        }
        self.file = Some(file);
    }

    /// Counts an assignment (`TIME L1ID assigned …`), or an incarnation: a header line whose epoch differs from the last one.
    fn note(&mut self, line: &[u8]) {
        let mut words = line.split(|&byte| byte == b' ');
        if line.first() == Some(&b'#') {
            let epoch = words.next_back().unwrap_or_default();
            if line.starts_with(b"# fanin journal ") && epoch != self.epoch {
                self.epoch = epoch.to_vec();
                self.incarnations += 1;
            }
            return;
        }
        let event = words.nth(1).and_then(|word| std::str::from_utf8(word).ok()?.parse::<u64>().ok());
        if let (Some(event), Some(b"assigned")) = (event, words.next())
            && self.last.is_none_or(|last| event > last)
        {
            self.last = Some(event);
            self.assigned += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_counted_over_incarnations_rotation_and_deletion() {
        let folder = std::env::temp_dir().join(format!("fanin-follow-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("supervisor.journal");
        let mut follower = JournalFollower::new(path.clone());
        follower.poll();
        assert_eq!((follower.assigned(), follower.incarnations()), (0, 0));
        let text =
            "# fanin journal 1 supervisor epoch-us 7\n1 0 assigned 0 0 1 0\n2 1 assigned 0 1 1 0\n3 0 comp";
        std::fs::write(&path, text).unwrap();
        follower.poll();
        assert_eq!((follower.assigned(), follower.incarnations()), (2, 1));
        // The next incarnation cuts off the incomplete line, and assigns event 1 again.
        let whole = text.rfind('\n').unwrap() + 1;
        let again = "# fanin journal 1 supervisor epoch-us 9\n1 1 reassigned 0\n1 1 assigned 1 0 1 1\n2 2 assigned 0 0 1 0\n";
        File::options().write(true).open(&path).unwrap().set_len(whole as u64).unwrap();
        follower.poll();
        std::fs::write(&path, format!("{}{again}", &text[..whole])).unwrap();
        follower.poll();
        assert_eq!((follower.assigned(), follower.incarnations()), (3, 2));
        // The journal is rotated within the same incarnation.
        std::fs::rename(&path, folder.join("supervisor.00001.journal")).unwrap();
        std::fs::write(&path, "# fanin journal 1 supervisor epoch-us 9\n5 3 assigned 0 0 1 0\n").unwrap();
        follower.poll();
        assert_eq!((follower.assigned(), follower.incarnations()), (4, 2));
        std::fs::remove_dir_all(&folder).unwrap();
        follower.poll();
        assert_eq!(follower.assigned(), 4);
    }
}
