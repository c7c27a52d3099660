#!/usr/bin/env bash
# Runs a command on a Slurm of its own: one node, this machine. It ends with the command, and leaves nothing behind.
#   scripts/slurm.sh COMMAND [ARGUMENT...]     for example: scripts/slurm.sh sbatch --wait job.sh
# Needs munged, slurmctld, slurmd and slurm-client (Debian: munge slurmctld slurmd slurm-client), and no privileges.
# A Slurm that this machine has already is neither used nor touched. Exit code 3 where it does not start.
set -euo pipefail
(($#)) || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }

say() { printf 'slurm: %s\n' "$*" >&2; }
# Debian keeps the daemons where the path of an ordinary user does not lead.
export PATH="$PATH:/usr/sbin:/sbin"
for program in munged munge slurmctld slurmd sinfo scancel; do
    command -v "$program" >/dev/null || {
        say "$program is missing: apt-get install munge slurmctld slurmd slurm-client"
        exit 3
    }
done

readonly START_SECONDS=30 STOP_SECONDS=10
folder=$(mktemp -d "${TMPDIR:-/tmp}/fanin-slurm-XXXXXX")
chmod 755 "$folder"
mkdir -m 755 "$folder/munge" "$folder/state" "$folder/spool"
daemons=()

stop() {
    local code=$? pid
    trap - EXIT INT TERM
    # Jobs end with the Slurm that runs them.
    timeout "$STOP_SECONDS" scancel --user="$(id -un)" --full 2>/dev/null || true
    for _ in $(seq $((STOP_SECONDS * 10))); do
        [[ -n "$(timeout 1 squeue --noheader 2>/dev/null)" ]] || break
        sleep 0.1
    done
    # The last started goes first: slurmd still talks to slurmctld, and both to munged.
    for pid in $(printf '%s\n' "${daemons[@]}" | tac); do
        kill "$pid" 2>/dev/null || continue
        for _ in $(seq $((STOP_SECONDS * 10))); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$pid" 2>/dev/null || true
    done
    wait 2>/dev/null || true
    rm -rf "$folder"
    exit "$code"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
    say "$1"
    tail -n 20 "$folder"/*.log >&2 2>/dev/null || true
    exit 3
}

# Waits until a command succeeds; $1 names what is awaited.
await() {
    local what="$1"
    shift
    for _ in $(seq $((START_SECONDS * 10))); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.1
    done
    fail "$what within $START_SECONDS s"
}

# Two ports that are free now.
read -r port_control port_node < <(python3 - <<'PYTHON'
import socket

ports = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(port.getsockname()[1] for port in ports))
PYTHON
)

head -c 1024 /dev/urandom >"$folder/munge/key"
chmod 600 "$folder/munge/key"
name=$(uname -n)
name=${name%%.*}
# Two small jobs run at a time on a machine with one core too.
cores=$(nproc)
((cores >= 2)) || cores=2
export SLURM_CONF="$folder/slurm.conf"
# Processes are found by /proc alone: control groups would need privileges, and differ among containers.
cat >"$SLURM_CONF" <<CONF
ClusterName=fanin
SlurmctldHost=$name(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
SlurmctldPort=$port_control
SlurmdPort=$port_node
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
ReturnToService=2
KillWait=3
InactiveLimit=0
MinJobAge=300
SlurmdParameters=config_overrides
NodeName=$name NodeAddr=127.0.0.1 CPUs=$cores RealMemory=$(awk '/MemTotal/ { print int($2 / 1024) }' /proc/meminfo) State=UNKNOWN
PartitionName=local Nodes=$name Default=YES MaxTime=INFINITE State=UP
CONF
# Since Slurm 23.11 slurmd wants a word on control groups even where it uses none.
: >"$folder/cgroup.conf"
release=$(slurmd -V | grep -Eo '[0-9]+\.[0-9]+' | head -n 1)
if [[ "$(printf '%s\n' 23.11 "$release" | sort -V | head -n 1)" == 23.11 ]]; then
    echo 'CgroupPlugin=disabled' >"$folder/cgroup.conf"
fi

# In sessions of their own: a signal to the whole group of this script must not end them before the jobs.
setsid munged --foreground --socket="$folder/munge/socket" --key-file="$folder/munge/key" --pid-file="$folder/munge/pid" \
    --log-file="$folder/munge.log" --seed-file="$folder/munge/seed" --force 2>"$folder/munged.log" </dev/null &
daemons+=($!)
await "munged does not answer" munge --socket="$folder/munge/socket" --no-input
setsid slurmctld -D -f "$SLURM_CONF" >"$folder/slurmctld.out.log" 2>&1 </dev/null &
daemons+=($!)
await "slurmctld does not answer" scontrol ping
setsid slurmd -D -f "$SLURM_CONF" -N "$name" >"$folder/slurmd.out.log" 2>&1 </dev/null &
daemons+=($!)
await "no node is idle" sh -c 'sinfo --noheader --format=%t | grep -qx idle'

code=0
"$@" || code=$?
exit "$code"
