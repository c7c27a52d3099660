//! A test that needs network namespaces is skipped where `fanin run` could not make them.

/// Returns true if this process can make network namespaces and the switches between them; skips the test otherwise.
#[track_caller]
pub(crate) fn privileged() -> bool {
    let missing = fanin_testbed::missing_for_namespaces();
    if let Some(missing) = &missing {
        super::skip::skip(format_args!("network namespaces need {missing}"));
    }
    missing.is_none()
}
