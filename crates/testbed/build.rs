//! Compiles the BPF programs of `bpf/` with clang, if the feature `bpf` is on.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAMS: [&str; 3] = ["dctcp", "m21", "static_window"];
/// Compilers to try, in order; `CLANG` comes before them.
const COMPILERS: [&str; 4] = ["clang", "clang-16", "clang-15", "clang-14"];

fn main() {
    println!("cargo:rerun-if-changed=../../bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    if env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    let clang = compiler();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    // libbpf-sys brings the headers of the libbpf that it builds.
    let headers = env::var_os("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    let machine = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    for program in PROGRAMS {
        let source = Path::new("../../bpf").join(format!("{program}.bpf.c"));
        let status = Command::new(&clang)
            .args(["-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-c"])
            .arg("-I")
            .arg(&headers)
            // <asm/types.h> lies in the machine's own folder on Debian.
            .arg(format!("-I/usr/include/{machine}-linux-gnu"))
            .arg(&source)
            .arg("-o")
            .arg(out.join(format!("{program}.bpf.o")))
            .status();
        assert!(status.is_ok_and(|status| status.success()), "{clang} cannot compile {}", source.display());
    }
}

fn compiler() -> String {
    if let Ok(clang) = env::var("CLANG") {
        return clang;
    }
    let runs = |name: &&&str| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    COMPILERS.iter().find(runs).map_or_else(
        || panic!("the feature bpf needs clang (Debian packages clang-14 libelf-dev zlib1g-dev); CLANG may name another"),
        |name| (*name).to_owned(),
    )
}
