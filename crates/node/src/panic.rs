//! A panic in any thread ends the process.

/// Ends the process (SIGABRT) after the message of a panic, in whatever thread. A process that lost the thread of its disk or
/// of a unit would still answer `/readyz`, and stall the run.
pub fn abort_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    use super::*;

    /// Set in the process that panics.
    const CHILD: &str = "FANIN_TEST_PANICS";

    #[test]
    fn a_panic_in_a_side_thread_ends_the_process() {
        if std::env::var_os(CHILD).is_some() {
            abort_on_panic();
            let _ = std::thread::spawn(|| panic!("in a side thread")).join();
            std::process::exit(0);
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "panic::tests::a_panic_in_a_side_thread_ends_the_process", "--nocapture"]);
        let output = command.env(CHILD, "1").output().unwrap();
        assert_eq!(output.status.signal(), Some(rustix::process::Signal::ABORT.as_raw()));
        assert!(String::from_utf8_lossy(&output.stderr).contains("in a side thread"));
    }
}
