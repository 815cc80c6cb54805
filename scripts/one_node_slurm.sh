#!/bin/sh
# Start a SLURM cluster of this machine alone, for trying out `hydra/launcher=submitit_slurm` and for its test.
# Needs root and Debian's packages slurm-wlm and munge. Usage: scripts/one_node_slurm.sh FOLDER; then export SLURM_CONF.
set -eu
folder=${1:?"usage: scripts/one_node_slurm.sh FOLDER"}
for program in munged slurmctld slurmd sinfo; do
    command -v "$program" >/dev/null || {
        echo "one_node_slurm: $program is missing: apt-get install slurm-wlm munge" >&2
        exit 1
    }
done
mkdir -p "$folder/state" "$folder/spool"
folder=$(cd "$folder" && pwd)
host=$(hostname)
if ! munge -n >/dev/null 2>&1; then
    mkdir -p /etc/munge /run/munge /var/log/munge /var/lib/munge
    [ -s /etc/munge/munge.key ] || head -c 1024 /dev/urandom >/etc/munge/munge.key
    chown -R munge: /etc/munge /run/munge /var/log/munge /var/lib/munge
    chmod 0400 /etc/munge/munge.key
    chmod 0755 /run/munge
    su -s /bin/sh munge -c "$(command -v munged)"
fi
cat >"$folder/slurm.conf" <<CONF
ClusterName=one
SlurmctldHost=$host
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ReturnToService=2
JobRequeue=1
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
NodeName=$host CPUs=$(nproc) State=UNKNOWN
PartitionName=short Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF="$folder/slurm.conf"
slurmctld -f "$SLURM_CONF"
slurmd -f "$SLURM_CONF"
for _ in 1 2 3 4 5 6 7 8 9 10; do
    sleep 1
    if sinfo -h -o %T 2>/dev/null | grep -q idle; then
        echo "export SLURM_CONF=$SLURM_CONF"
        exit 0
    fi
done
echo "one_node_slurm: the node did not come up; see $folder/slurmd.log and $folder/slurmctld.log" >&2
exit 1
