#!/usr/bin/env bash
# Runs a command on a Slurm of its own: one node, this machine. It ends with the command, and leaves nothing behind.
#   scripts/slurm.sh COMMAND [ARGUMENT...]     for example: scripts/slurm.sh sbatch --wait job.sh
# Needs munged, slurmctld, slurmd and slurm-client (Debian: munge slurmctld slurmd slurm-client), and no privileges.
# A Slurm that this machine has already is neither used nor touched. Exit code 3 where it does not start.
set -euo pipefail
(($#)) || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }

# shellcheck source=scripts/batch.sh
source "$(dirname "${BASH_SOURCE[0]}")/batch.sh"
need "apt-get install munge slurmctld slurmd slurm-client" munged munge slurmctld slurmd sinfo scancel

readonly START_SECONDS=30 STOP_SECONDS=10
folder=$(mktemp -d "${TMPDIR:-/tmp}/fanin-slurm-XXXXXX")
chmod 755 "$folder"
mkdir -m 755 "$folder/munge" "$folder/state" "$folder/spool"
daemons=()

has_no_job() { [[ -z "$(timeout 1 squeue --noheader 2>/dev/null)" ]]; }

stop() {
    local code=$? pid
    trap - EXIT INT TERM
    # Jobs end with the Slurm that runs them.
    timeout "$STOP_SECONDS" scancel --user="$(id -un)" --full 2>/dev/null || true
    await "$STOP_SECONDS" has_no_job || true
    # The last started goes first: slurmd still talks to slurmctld, and both to munged.
    for pid in $(printf '%s\n' "${daemons[@]}" | tac); do
        end "$pid" TERM "$STOP_SECONDS"
    done
    wait 2>/dev/null || true
    rm -rf "$folder"
    exit "$code"
}
stop_at_end

# Waits for a daemon; $1 says what is wrong where it does not come.
start() {
    local what="$1"
    shift
    await "$START_SECONDS" "$@" && return
    say "$what within $START_SECONDS s"
    tail -n 20 "$folder"/*.log >&2 2>/dev/null || true
    exit 3
}

read -r port_control port_node < <(free_ports 2)

head -c 1024 /dev/urandom >"$folder/munge/key"
chmod 600 "$folder/munge/key"
name=$(uname -n)
name=${name%%.*}
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
NodeName=$name NodeAddr=127.0.0.1 CPUs=$(node_cores) RealMemory=$(node_memory) State=UNKNOWN
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
start "munged does not answer" munge --socket="$folder/munge/socket" --no-input
setsid slurmctld -D -f "$SLURM_CONF" >"$folder/slurmctld.out.log" 2>&1 </dev/null &
daemons+=($!)
start "slurmctld does not answer" scontrol ping
setsid slurmd -D -f "$SLURM_CONF" -N "$name" >"$folder/slurmd.out.log" 2>&1 </dev/null &
daemons+=($!)
start "no node is idle" sh -c 'sinfo --noheader --format=%t | grep -qx idle'

code=0
"$@" || code=$?
exit "$code"
