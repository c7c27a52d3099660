//! Compiles the shim over DPDK's inline functions, with the feature `dpdk` only.

fn main() {
    println!("cargo::rerun-if-changed=src/dpdk/shim.c");
    #[cfg(feature = "dpdk")]
    dpdk();
}

#[cfg(feature = "dpdk")]
fn dpdk() {
    let library = match pkg_config::Config::new().atleast_version("22.11").probe("libdpdk") {
        Ok(library) => library,
        Err(error) => {
            println!(
                "cargo::error=the feature `dpdk` needs DPDK 22.11 or newer (Debian: libdpdk-dev): {error}"
            );
            return;
        }
    };
    let mut build = cc::Build::new();
    build.file("src/dpdk/shim.c").includes(&library.include_paths).flag("-march=native").flag("-O3");
    // DPDK's own headers warn.
    build.warnings(false).define("ALLOW_EXPERIMENTAL_API", None);
    build.compile("fanin_dpdk_shim");
}
