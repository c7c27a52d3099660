//! The preparations of a system before its processes start: a folder, and a scenario that is found from there.

use std::path::Path;

use fanin_scenario::SizeModel;

use super::error::LaunchError;
use super::lock::{FolderLock, move_aside};
use super::options::SystemLaunch;

/// The first line of the file that marks a folder as one of this module's.
pub(super) const OURS: &str = "# Made by `fanin run`; a later run into this folder moves it aside.\n";

/// Beginning of that line, the same in all versions.
const OURS_BEGINS: &str = "# Made by `fanin run`";

/// Makes the folder of a run and locks it. Moves the files of an earlier run aside if they hold stored events, unless
/// `overwrite` says to delete them.
///
/// # Errors
/// If another run has the folder, or if it holds files of other origin.
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
    let has_events = std::fs::read_dir(folder.join("data")).is_ok_and(|mut entries| entries.next().is_some());
    let lock = if has_events && !overwrite {
        let aside = move_aside(folder).map_err(io)?;
        tracing::info!(to = %aside.display(), "moved the stored events of an earlier run aside");
        FolderLock::take(folder)?
    } else if FolderLock::is_alone_in(folder) {
        lock
    } else {
        std::fs::remove_dir_all(folder).map_err(io)?;
        FolderLock::take(folder)?
    };
    std::fs::create_dir_all(folder.join("log")).map_err(io)?;
    Ok(lock)
}

/// The scenario with the places of its data and of its processors' files written out, because its file is moved.
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
        // A bare first word is a program that PATH has. Links stay: a virtual environment's interpreter is one, and knows by
        // its name where its modules are.
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
