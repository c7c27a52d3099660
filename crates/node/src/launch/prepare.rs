//! Prepares a system before its processes start: its folder, and a scenario with absolute paths.

use std::path::Path;

use fanin_scenario::SizeModel;

use super::error::LaunchError;
use super::lock::{FolderLock, move_aside};
use super::options::SystemLaunch;
use crate::journal;

/// First line of `system.toml`, which marks a folder as created by this module.
pub(super) const OURS: &str = "# Made by `fanin run`; a later run into this folder moves it aside.\n";

/// Start of this first line, the same in all versions.
const OURS_BEGINS: &str = "# Made by `fanin run`";

/// Creates and locks the folder of a run. The folder of an earlier run that had an event is renamed if `overwrite` is false.
/// Otherwise its files are deleted.
///
/// # Errors
/// [`LaunchError::InUse`] if another run uses the folder, [`LaunchError::NotOurs`] if it holds files of other origin, and
/// [`LaunchError::Io`].
pub(super) fn prepare(folder: &Path, overwrite: bool) -> Result<FolderLock, LaunchError> {
    let io = |error| LaunchError::Io { path: folder.to_owned(), error };
    let is_foreign = || {
        let text = std::fs::read_to_string(folder.join("system.toml")).unwrap_or_default();
        !FolderLock::is_alone_in(folder) && !text.starts_with(OURS_BEGINS)
    };
    if is_foreign() {
        return Err(LaunchError::NotOurs { path: folder.to_owned() });
    }
    let lock = FolderLock::take(folder)?;
    let mut aside = None;
    let lock = if !overwrite && may_have_events(folder) {
        aside = Some(move_aside(folder).map_err(io)?);
        FolderLock::take(folder)?
    } else if FolderLock::is_alone_in(folder) {
        lock
    } else {
        std::fs::remove_dir_all(folder).map_err(io)?;
        FolderLock::take(folder)?
    };
    std::fs::create_dir_all(folder.join("log")).map_err(io)?;
    // The launcher's log may be in the folder that was just created.
    if let Some(to) = aside {
        tracing::warn!(to = %to.display(), "moved the files of an earlier run aside");
    }
    Ok(lock)
}

/// Returns true if a run had an event, stored or only in a journal, or if its files cannot be read. The journals of a run that
/// stored nothing are the evidence of its losses.
fn may_have_events(folder: &Path) -> bool {
    let has = |folder: &Path, is_event: &dyn Fn(&Path) -> bool| match std::fs::read_dir(folder) {
        Ok(mut entries) => entries.any(|entry| entry.map_or(true, |entry| is_event(&entry.path()))),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    };
    let is_journal = |path: &Path| path.extension().is_some_and(|extension| extension == "journal");
    has(&folder.join("data"), &|_| true)
        || has(folder, &|path| is_journal(path) && journal::has_records(path).unwrap_or(true))
}

/// Returns the scenario as TOML, with absolute paths of its data and of its processor's files. The scenario's file is
/// written into another folder, where relative paths would not resolve.
pub(super) fn absolute(launch: &SystemLaunch<'_>) -> String {
    let mut loaded = launch.loaded.clone();
    let live = &mut loaded.scenario.live;
    if live.replay.is_empty()
        && let SizeModel::File { path } = &loaded.scenario.readout.fragment_size
    {
        live.replay.clone_from(path);
    }
    if let SizeModel::PerSource { path, .. } = &mut loaded.scenario.readout.fragment_size
        && let Ok(place) = Path::new(path.as_str()).canonicalize()
        && place.is_file()
    {
        *path = place.to_string_lossy().into_owned();
    }
    if let Ok(path) = launch.scenario_folder.join(&live.replay).canonicalize()
        && path.is_file()
    {
        live.replay = path.to_string_lossy().into_owned();
    }
    for (place, word) in live.processor.iter_mut().enumerate() {
        // A first word without a slash is a program in PATH. Symbolic links are not resolved: the interpreter of a Python
        // virtual environment is a link, and finds its modules by the link's path.
        if (place > 0 || word.contains('/'))
            && let Ok(path) = std::path::absolute(launch.scenario_folder.join(&*word))
            && path.is_file()
        {
            *word = path.to_string_lossy().into_owned();
        }
    }
    loaded.to_toml()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_evidence_of_a_run_that_stored_nothing_is_moved_aside() {
        let parent = std::env::temp_dir().join(format!("fanin-prepare-{}", std::process::id()));
        let folder = parent.join("live");
        let run = |journal: &str, data: Option<&str>| {
            let lock = prepare(&folder, false).unwrap();
            std::fs::write(folder.join("system.toml"), OURS).unwrap();
            std::fs::write(folder.join("supervisor.journal"), journal).unwrap();
            data.map_or(Ok(()), |text| std::fs::write(folder.join("data"), text)).unwrap();
            drop(lock);
        };
        let header = "# fanin journal 1 supervisor epoch-us 5\n";
        // A run without an event leaves nothing worth keeping.
        run(header, None);
        run(&format!("{header}0 7 assigned 0 0 0 0\n"), None);
        assert!(!parent.join("live.1").exists());
        // A file in place of the folder of stored events stands for one that cannot be read.
        run(header, Some("unreadable"));
        assert!(parent.join("live.1/supervisor.journal").is_file() && !parent.join("live.2").exists());
        drop(prepare(&folder, false).unwrap());
        assert!(parent.join("live.2/supervisor.journal").is_file());
        std::fs::remove_dir_all(&parent).unwrap();
    }

    #[test]
    fn files_next_to_a_scenario_are_found_from_elsewhere() {
        let folder = std::env::temp_dir().join(format!("fanin-launch-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("choose.py"), "").unwrap();
        std::os::unix::fs::symlink("choose.py", folder.join("link.py")).unwrap();
        let sets = [r#"live.processor=["python3", "choose.py", "link.py", "--cut=3"]"#.to_owned()];
        let loaded = fanin_scenario::load("replay", &sets).unwrap_or_else(|errors| panic!("{errors}"));
        let launch = SystemLaunch {
            loaded: &loaded,
            folder: Path::new("elsewhere"),
            overwrite: false,
            scenario_folder: &folder,
            data: None,
            program: Path::new("fanin"),
            restart: false,
            metrics: false,
            ideal_rate: None,
            predicted: Default::default(),
        };
        let text = absolute(&launch);
        let (script, link) = (folder.join("choose.py"), folder.join("link.py"));
        let wanted = format!("[\"python3\", {script:?}, {link:?}, \"--cut=3\"]");
        assert!(text.contains(&wanted), "no {wanted} in\n{text}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
