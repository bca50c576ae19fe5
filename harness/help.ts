/** What `--help` says beside the options: examples and exit codes. */

export const examples: readonly (readonly [string, string])[] = [
  ['$0 --duration 2m --rf 3', 'A quick look: two minutes, three copies, five containers'],
  ['$0 --duration 4h --rf 3', 'A night: the same for four hours'],
  ['$0 --duration 10m --seed 0x5eed --faults kill,pause', 'Only kills and pauses, drawn from a given seed'],
  ['$0 --schedule results/latest/schedule.json', 'Play the faults of the last run again'],
  ["$0 --profile nightly --fail-if 'recovery.p99>5s'", 'A night, with a gate of your own'],
  ['$0 verify latest', 'Judge the last run again from its ledger'],
  ['$0 resume latest', 'Go on with a run whose harness was killed'],
  ['$0 selftest --cluster docker', 'Five deliberately broken stores in containers, each of which must be caught'],
  ['$0 export latest --format jepsen-edn --out history.edn', 'Its history for other checkers'],
];

export const epilogue = `A run starts a cluster in containers, writes through the real client, injects faults, and keeps every operation in
results/RUN/ledger.sqlite. At the end it reads everything back and writes results/RUN/report.html (also .md and .json).
Ctrl-C ends a run early: what there is is judged and saved. A second Ctrl-C stops at once and removes the containers.

A gate (--fail-if) names a number of the run and a limit, joined by and/or: 'recovery.p99>5s or lost>0'. It is read before the run
starts. Where it holds, or its number is missing, the run is inconclusive (exit 3) and never passes; it is no violation.

Exit codes, in order of precedence:
    1  violated       an acknowledged write was lost, or another promise was broken
   70  harness fault  this program failed; the run says nothing about the store
    4  environment    no engine, no image, or the host cannot do it
  130  interrupted    by a signal; judged and saved
    2  not recovered  the store did not come back after the last fault was healed
    3  inconclusive   evidence is missing, so nothing is certified
    0  certified      no acknowledged write was lost, and the evidence is complete
   64  usage          the command line makes no sense; nothing was started`;
