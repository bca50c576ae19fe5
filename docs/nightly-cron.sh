#!/usr/bin/env bash
# A night's certification by cron, on a machine of one's own. One line in root's crontab:
#
#   17 1 * * *  /path/to/this/checkout/docs/nightly-cron.sh
#
# It goes on with a run whose harness died, keeps the newest 30 runs, and writes one line per run to results/nightly.log. Set
# CERTIFY_OPTIONS for other options than --profile nightly, and CERTIFY_MAIL for a mail when a night is not certified.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 70
export PATH="$PATH:/usr/local/bin:/usr/local/sbin:/usr/sbin:/sbin"
export CI=true
mkdir -p results

# One run at a time: two would disturb each other's timing. The lock goes with this process, however it ends.
exec 9>results/.nightly.lock
if ! flock -n 9; then
  echo "$(date -u +%FT%TZ) the run of the night before is still going; none was started" >>results/nightly.log
  exit 75
fi

log="results/nightly-$(date -u +%Y%m%d).out"
# shellcheck disable=SC2086 # the options are words
npm run --silent certify -- ${CERTIFY_OPTIONS:---profile nightly} >"$log" 2>&1 </dev/null
code=$?
if [ "$code" -gt 130 ] || [ "$code" -eq 70 ]; then
  # The harness itself ended: what it left is judged, or goes on where it can.
  npm run --silent certify -- resume latest >>"$log" 2>&1 </dev/null
  code=$?
fi

headline="$(sed -n 's/^ *"headline": "\(.*\)".*$/\1/p' results/latest/verdict.json 2>/dev/null)"
echo "$(date -u +%FT%TZ) exit $code ${headline:-no verdict}" >>results/nightly.log
npm run --silent certify -- trend >>"$log" 2>&1 </dev/null
npm run --silent certify -- prune --keep 30 >>"$log" 2>&1 </dev/null
find results -maxdepth 1 -name 'nightly-*.out' -mtime +60 -delete

if [ "$code" -ne 0 ] && [ -n "${CERTIFY_MAIL:-}" ]; then
  { echo "$headline"; echo; tail -n 60 "$log"; } | mail -s "Certification: exit $code on $(hostname)" "$CERTIFY_MAIL"
fi
exit "$code"
