/** One primary per (partition, term), by what is committed and by who answers; and serving implies that possession was proved. */
import type { Answer } from '../../zaris/model/client-wire.ts';
import { memberName, type NodeId } from '../../zaris/model/ids.ts';
import type { Notice } from '../../zaris/node/contract.ts';
import type { Checker, CheckerContext, Stepped } from './context.ts';

export class OnePrimaryChecker implements Checker {
  private readonly context: CheckerContext;
  /** "partition/term" → member. */
  private readonly primaries = new Map<string, string>();
  private readonly proved = new Set<string>();
  /** Who answered last, by partition: the same one, nearly always. */
  private readonly last: { term: number; nodeId: string; incarnation: number }[] = [];

  constructor(context: CheckerContext) {
    this.context = context;
  }

  answered(step: Stepped, answer: Answer): void {
    if (answer.partition === undefined || answer.member === undefined || answer.version === undefined) return;
    const primary = step.node.running?.node.planes.data.primary(answer.partition);
    if (primary === undefined || primary.deposed) return;
    const { partition, member } = answer;
    const { nodeId, incarnation } = member;
    const last = this.last[partition];
    if (last !== undefined && last.term === primary.term && last.nodeId === nodeId && last.incarnation === incarnation)
      return;
    this.last[partition] = { term: primary.term, nodeId, incarnation };
    this.saw(step.processName, `${partition}/${primary.term}`, memberName(member));
  }

  noticed(from: NodeId, notice: Notice, isKnown: boolean): void {
    if (isKnown) return;
    const { name, fields } = notice;
    if (name === 'possession-proved')
      this.proved.add(`${String(fields['partition'])}/${String(fields['term'])} ${String(fields['member'])}`);
    if (!name.startsWith('edge-') || typeof fields['primary'] !== 'string') return;
    const place = `${String(fields['partition'])}/${String(fields['term'])}`;
    this.saw(from, place, fields['primary']);
    if (fields['serving'] === true && !this.proved.has(`${place} ${fields['primary']}`)) {
      this.context.breach(from, `${fields['primary']} serves partition/term ${place} without having proved possession`);
    }
  }

  private saw(where: string, place: string, member: string): void {
    const known = this.primaries.get(place);
    if (known === undefined) this.primaries.set(place, member);
    else if (known !== member)
      this.context.breach(where, `partition/term ${place} has two primaries: ${known} and ${member}`);
  }
}
