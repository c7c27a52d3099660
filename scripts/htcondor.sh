#!/usr/bin/env bash
# Runs a command on an HTCondor pool of its own: one node, this machine. It ends with the command, and leaves nothing behind.
#   scripts/htcondor.sh COMMAND [ARGUMENT...]     for example: scripts/htcondor.sh condor_submit job.submit
# Needs HTCondor (Debian 13: condor), on the PATH or in FANIN_HTCONDOR, a folder that scripts/htcondor-fetch.sh fills.
# No privileges: HTCondor takes no jobs of root, so that root runs all of it as `daemon` in a user namespace.
# An HTCondor that this machine has already is neither used nor touched. Exit code 3 where it does not start.
set -euo pipefail
(($#)) || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }

# shellcheck source=scripts/batch.sh
source "$(dirname "${BASH_SOURCE[0]}")/batch.sh"
if ((EUID == 0)); then
    exec unshare --user --map-user="$(id -u daemon)" --map-group="$(id -g daemon)" "$0" "$@"
fi
export PATH="${FANIN_HTCONDOR:+$FANIN_HTCONDOR/usr/bin:$FANIN_HTCONDOR/usr/sbin:}$PATH"
need "apt-get install condor, or scripts/htcondor-fetch.sh" condor_master condor_submit condor_status condor_rm condor_q
release=$(dirname "$(dirname "$(command -v condor_master)")")

readonly START_SECONDS=30 STOP_SECONDS=15
folder=$(mktemp -d "${TMPDIR:-/tmp}/fanin-htcondor-XXXXXX")
mkdir "$folder/log" "$folder/spool" "$folder/execute" "$folder/lock"
master=

has_no_job() { [[ -z "$(condor_q -allusers -autoformat ClusterId 2>/dev/null)" ]]; }

stop() {
    local code=$?
    trap - EXIT INT TERM
    if [[ -n "$master" ]]; then
        timeout "$STOP_SECONDS" condor_rm -all >/dev/null 2>&1 || true
        await "$STOP_SECONDS" has_no_job || true
        # The master ends its daemons, and these end what they run.
        end "$master" QUIT "$STOP_SECONDS"
        wait 2>/dev/null || true
    fi
    rm -rf "$folder"
    exit "$code"
}
stop_at_end

port=$(free_ports 1)
export CONDOR_CONFIG="$folder/condor_config"
cat >"$CONDOR_CONFIG" <<CONF
RELEASE_DIR = $release
LOCAL_DIR = $folder
LOCAL_CONFIG_DIR =
LOCAL_CONFIG_FILE =
BIN = $release/bin
SBIN = $release/sbin
LIB = $release/lib/condor
LIBEXEC = $release/libexec/condor
LOG = $folder/log
SPOOL = $folder/spool
EXECUTE = $folder/execute
LOCK = $folder/lock
RUN = $folder/lock
DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD STARTD
CONDOR_HOST = 127.0.0.1
COLLECTOR_HOST = 127.0.0.1:$port
NETWORK_INTERFACE = 127.0.0.1
ENABLE_IPV6 = False
BIND_ALL_INTERFACES = False
USE_SHARED_PORT = False
UID_DOMAIN = fanin
FILESYSTEM_DOMAIN = fanin
SEC_DEFAULT_AUTHENTICATION = REQUIRED
SEC_DEFAULT_AUTHENTICATION_METHODS = FS
ALLOW_READ = *
ALLOW_WRITE = *
ALLOW_DAEMON = *
ALLOW_ADMINISTRATOR = *
ALLOW_NEGOTIATOR = *
START = True
SUSPEND = False
PREEMPT = False
KILL = False
NUM_CPUS = $(node_cores)
MEMORY = $(node_memory)
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = True
NUM_SLOTS_TYPE_1 = 1
NEGOTIATOR_INTERVAL = 1
NEGOTIATOR_CYCLE_DELAY = 1
NEGOTIATOR_MIN_INTERVAL = 1
SCHEDD_INTERVAL = 1
SCHEDD_MIN_INTERVAL = 1
UPDATE_INTERVAL = 2
CLAIM_WORKLIFE = 0
# Control groups would need privileges, and differ among containers.
BASE_CGROUP =
USE_PID_NAMESPACES = False
MOUNT_UNDER_SCRATCH =
JOB_DEFAULT_REQUESTDISK = 1024
CREATE_CORE_FILES = False
RUNBENCHMARKS = False
CONF

# In a session of its own: a signal to the whole group of this script must not end it before the jobs.
setsid condor_master -f >"$folder/master.log" 2>&1 </dev/null &
master=$!
has_slot() { [[ -n "$(condor_status -autoformat Name 2>/dev/null)" ]] && condor_q >/dev/null 2>&1; }
await "$START_SECONDS" has_slot || {
    say "no slot within $START_SECONDS s"
    tail -n 20 "$folder"/master.log "$folder"/log/*Log >&2 2>/dev/null || true
    exit 3
}

code=0
"$@" || code=$?
exit "$code"
