# shellcheck shell=bash
# Functions of scripts/slurm.sh and scripts/htcondor.sh, which source it: a batch system of one node, for the time of a command.

# Debian keeps the daemons where the path of an ordinary user does not lead.
export PATH="$PATH:/usr/sbin:/sbin"

# Prints a message under the name of the script.
say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }

# Exit code 3 where a program is missing: need HINT PROGRAM...
need() {
    local hint="$1" program
    shift
    for program in "$@"; do
        command -v "$program" >/dev/null || { say "$program is missing: $hint"; exit 3; }
    done
}

# Waits until a command succeeds, in tenths of a second: await SECONDS COMMAND...
await() {
    local seconds="$1"
    shift
    for _ in $(seq $((seconds * 10))); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.1
    done
    return 1
}

# Ends a daemon that this script has started, by force after some time: end PID SIGNAL SECONDS
end() {
    kill -"$2" "$1" 2>/dev/null || return 0
    await "$3" has_ended "$1" || kill -KILL "$1" 2>/dev/null || true
}
has_ended() { ! kill -0 "$1" 2>/dev/null; }

# Prints ports that are free now: free_ports COUNT
free_ports() {
    python3 - "$1" <<'PYTHON'
import socket
import sys

ports = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(port.getsockname()[1] for port in ports))
PYTHON
}

# Calls `stop` however the script ends.
stop_at_end() {
    trap stop EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# Cores of the node: two small jobs run at a time on a machine with one core too.
node_cores() { local cores; cores=$(nproc); echo $((cores >= 2 ? cores : 2)); }
# Its memory in MiB.
node_memory() { awk '/MemTotal/ { print int($2 / 1024) }' /proc/meminfo; }
