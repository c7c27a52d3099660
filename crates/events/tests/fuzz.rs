//! The fuzz targets, without a fuzzer: each format's corpus and mutations of it.

#[path = "common/check.rs"]
#[allow(unreachable_pub, reason = "the fuzz targets use it too")]
mod check;
#[path = "../../../fuzz/mutate.rs"]
mod mutate;

use fanin_events::Format;

fn fuzz(folder: &str, format: Format) {
    mutate::mutate(folder, &[], 1, |input| check::check(input, format));
}

#[test]
fn atlas() {
    fuzz("atlas", Format::Atlas);
}

#[test]
fn frag() {
    fuzz("frag", Format::Frag);
}

#[test]
fn mdf() {
    fuzz("mdf", Format::Mdf);
}

#[test]
fn rdh() {
    fuzz("rdh", Format::Rdh);
}
