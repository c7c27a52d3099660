//! One run: from a description to what was measured.
