/** What `--help` says beside the options: examples and exit codes. */

export const examples: readonly (readonly [string, string])[] = [
  ['$0 --duration 2m --rf 3', 'A quick look: two minutes, three copies, five containers'],
  ['$0 --duration 4h --rf 3', 'A night: the same for four hours'],
  ['$0 --duration 10m --seed 0x5eed --faults kill,pause', 'Only kills and pauses, drawn from a given seed'],
  ['$0 --schedule results/latest/schedule.json', 'Play the faults of the last run again'],
  ['$0 verify latest', 'Judge the last run again from its ledger'],
];

export const epilogue = `A run starts a cluster in containers, writes through the real client, injects faults, and keeps every operation in
results/RUN/ledger.sqlite. At the end it reads everything back and writes results/RUN/report.html (also .md and .json).
Ctrl-C ends a run early: what there is is judged and saved. A second Ctrl-C stops at once and removes the containers.

Exit codes, in order of precedence:
    1  violated       an acknowledged write was lost, or another promise was broken
   70  harness fault  this program failed; the run says nothing about the store
    4  environment    no engine, no image, or the host cannot do it
  130  interrupted    by a signal; judged and saved
    2  not recovered  the store did not come back after the last fault was healed
    3  inconclusive   evidence is missing, so nothing is certified
    0  certified      no acknowledged write was lost, and the evidence is complete
   64  usage          the command line makes no sense; nothing was started`;
