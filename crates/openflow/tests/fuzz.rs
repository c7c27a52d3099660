//! The fuzz target of configurations, without a fuzzer: its corpus and mutations of it.

#[path = "common/hostile.rs"]
#[allow(unreachable_pub, reason = "the fuzz target uses it too")]
mod hostile;
#[path = "../../../fuzz/mutate.rs"]
mod mutate;

#[test]
fn any_text_is_a_configuration() {
    mutate::mutate("switch-config", hostile::WORDS, 1, hostile::check);
}
