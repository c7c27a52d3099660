#!/bin/sh
# Boots systemd as the first process of namespaces of its own: machine.sh FOLDER.
# Its files are an overlay over this machine's, kept in memory, so that nothing outside changes.
set -e
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/root"
root=$1/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$root"
mount -t proc proc "$root/proc"
# Settings that the kernel has once for all namespaces stay as they are.
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs none "$root/run"
mount -t tmpfs none "$root/tmp"
mount -t tmpfs none "$root/dev"
mkdir "$root/dev/shm" "$root/dev/pts" "$root/dev/mqueue" "$root/dev/hugepages"
mount -t tmpfs none "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
mount -t mqueue mqueue "$root/dev/mqueue"
mount -t hugetlbfs hugetlbfs "$root/dev/hugepages" 2>/dev/null || true
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for name in null zero full random urandom tty; do
    touch "$root/dev/$name"
    mount --bind "/dev/$name" "$root/dev/$name"
done
# None of this machine's own services, mounts and settings.
rm -rf "$root"/etc/systemd/system/*.wants "$root"/etc/sysctl.d "$root"/etc/systemd/journald.conf
: >"$root/etc/fstab"
for name in systemd-modules-load.service systemd-remount-fs.service systemd-journald-audit.socket \
    systemd-random-seed.service sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount \
    sys-fs-fuse-connections.mount dev-hugepages.mount dev-mqueue.mount proc-sys-fs-binfmt_misc.automount; do
    ln -sf /dev/null "$root/etc/systemd/system/$name"
done
exec env -i container=fanin-test "PATH=$PATH" chroot "$root" \
    /lib/systemd/systemd --system --unit=sysinit.target --show-status=no --log-target=journal
