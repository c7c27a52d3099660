//! What a system needs before its processes start: a folder, and a scenario that is found from there.

use std::path::Path;

use fanin_scenario::SizeModel;

use super::error::LaunchError;
use super::options::SystemLaunch;

/// The first line of the file that marks a folder as one of this module's.
pub(super) const OURS: &str = "# Made by `fanin run`; the folder is emptied by the next run into it.\n";

/// Makes the folder of a run, or empties that of an earlier run.
pub(super) fn prepare(folder: &Path) -> Result<(), LaunchError> {
    let io = |error| LaunchError::Io { path: folder.to_owned(), error };
    let file = folder.join("system.toml");
    let ours = std::fs::read_to_string(&file).is_ok_and(|text| text.starts_with(OURS));
    let is_empty = || std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    if folder.exists() && !is_empty() {
        if !ours {
            return Err(LaunchError::NotOurs { path: folder.to_owned() });
        }
        std::fs::remove_dir_all(folder).map_err(io)?;
    }
    std::fs::create_dir_all(folder.join("log")).map_err(io)
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
    fn files_beside_a_scenario_are_found_from_elsewhere() {
        let folder = std::env::temp_dir().join(format!("fanin-launch-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("choose.py"), "").unwrap();
        std::os::unix::fs::symlink("choose.py", folder.join("link.py")).unwrap();
        let sets = [r#"live.processor=["python3", "choose.py", "link.py", "--cut=3"]"#.to_owned()];
        let loaded = fanin_scenario::load("replay", &sets).unwrap_or_else(|errors| panic!("{errors}"));
        let launch = SystemLaunch {
            loaded: &loaded,
            folder: Path::new("elsewhere"),
            scenario_folder: &folder,
            data: None,
            program: Path::new("fanin"),
            restart: false,
            metrics: false,
        };
        let text = absolute(&launch);
        let (script, link) = (folder.join("choose.py"), folder.join("link.py"));
        let wanted = format!("[\"python3\", {script:?}, {link:?}, \"--cut=3\"]");
        assert!(text.contains(&wanted), "no {wanted} in\n{text}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
