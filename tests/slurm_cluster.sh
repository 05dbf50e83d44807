#!/bin/sh
# A real Slurm with two nodes on this machine, for the tests: munged, slurmctld and two slurmd.
# Usage: slurm_cluster.sh start|stop FOLDER; then SLURM_CONF=FOLDER/slurm.conf
# Needs Debian's slurm-wlm and munge; as root, or as the user that runs everything.
set -eu
action=$1 folder=$2
PATH=$PATH:/usr/sbin:/sbin
export SLURM_CONF="$folder/slurm.conf"

stop() {
    for pid in "$folder"/*.pid; do
        [ -f "$pid" ] && kill "$(cat "$pid")" 2>/dev/null || true
    done
}

if [ "$action" = stop ]; then
    stop
    exit 0
fi

mkdir -p "$folder/state" "$folder/spool-n1" "$folder/spool-n2"
chmod 755 "$folder"
user=$(id -un)
# Ports are drawn from the process id, so that two test runs don't meet.
base=$((21000 + $$ % 2000 * 4))
dd if=/dev/urandom of="$folder/munge.key" bs=1 count=1024 2>/dev/null
chmod 600 "$folder/munge.key"
munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
    --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munge.seed"
cat > "$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket,cred_expire=5
CredType=cred/munge
SlurmctldPort=$base
SlurmdPort=$((base + 1))
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool-%n
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
SlurmdTimeout=30
KillWait=2
MinJobAge=600
NodeName=n1 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$((base + 2)) CPUs=2
NodeName=n2 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$((base + 3)) CPUs=2
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=urgent Nodes=n1,n2 MaxTime=INFINITE State=UP PriorityTier=9 PreemptMode=OFF
CONF
slurmctld -c
slurmd -c -N n1
slurmd -c -N n2
tries=0
until [ "$(sinfo -h -N -t idle -o %N 2>/dev/null | sort -u | wc -l)" -eq 2 ]; do
    tries=$((tries + 1))
    if [ $tries -gt 150 ]; then
        sinfo -N -l >&2 || true
        tail -n 20 "$folder"/*.log >&2
        stop
        exit 1
    fi
    sleep 0.2
done
