#!/bin/sh
# Slurm @WHICH@: tell the arbiter of mpiio_ext that a job is @STATE@ (docs/howto/arbitrate.md).
# It asks Slurm nothing, runs for milliseconds, and always succeeds: a node is not to be drained for the arbiter's sake.
PATH=/usr/local/bin:/usr/bin:/bin
export PATH
umask 022
folder=@FOLDER@

case "${SLURM_JOB_ID:-}" in
    '' | *[!0-9]*) exit 0 ;;
esac
[ -d "$folder" ] || exit 0
mkdir -p "$folder/scheduler" 2>/dev/null || exit 0

# A value that is a number, or "-".
number() {
    case "${1:-}" in
        '' | *[!0-9]*) printf '%s' - ;;
        *) printf '%s' "$1" ;;
    esac
}

name=$(printf '%s' "${SLURM_JOB_NAME:-}" | tr -c 'A-Za-z0-9._+-' '_' | cut -c 1-63)
nodelist=$(printf '%s' "${SLURM_JOB_NODELIST:-}" | tr -cd 'A-Za-z0-9._,[]-')
draft="$folder/scheduler/.$SLURM_JOB_ID.$(uname -n).$$"
if printf 'mpiox-scheduled 1\nid %s\nstate %s\nnodes %s\nnodelist %s\nprocesses %s\nname %s\n' "$SLURM_JOB_ID" \
    '@STATE@' "$(number "${SLURM_JOB_NUM_NODES:-${SLURM_NNODES:-}}")" "${nodelist:--}" \
    "$(number "${SLURM_NTASKS:-}")" "${name:--}" >"$draft" 2>/dev/null; then
    mv -f "$draft" "$folder/scheduler/$SLURM_JOB_ID" 2>/dev/null
fi
rm -f "$draft" 2>/dev/null
# What nobody has said anything of for a day is over, or says itself again when it ends.
find "$folder/scheduler" -maxdepth 1 -type f -mmin +1440 -exec rm -f {} + 2>/dev/null
exit 0
