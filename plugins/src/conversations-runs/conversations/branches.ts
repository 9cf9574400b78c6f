import type { ports } from "@portico/core";
import { MOST_BRANCH_JUMPS } from "../limits.ts";

/**
 * Messages are stored in the order in which they were written, and are never changed. A jump says that a message does not follow the message before
 * it in that order, but an earlier one.
 */
export interface Jump {
  /** Sequence number of the first message after the jump. It may not be written yet. */
  readonly at: number;
  /** Sequence number of the message that it follows. 0: it begins the conversation. */
  readonly after: number;
  /** The branch that begins or continues here. The first branch is 1, and begins without a jump. */
  readonly branch: number;
}

/** The branches of a conversation. A conversation with one branch has no such record. */
export interface ConversationBranches {
  /** In the order of `at`. The branch of the last one is the chosen branch. */
  readonly jumps: readonly Jump[];
}

export type Branches = ReturnType<typeof createBranches>;

/** The branches of the conversations of an instance, by conversation. */
export function createBranches(records: ports.Records) {
  const collection = records.collection<ConversationBranches>({ name: "conversation-branches" });
  return {
    find: (conversationId: string): Promise<ports.Stored<ConversationBranches> | undefined> => collection.get(conversationId),
    write: collection.write,
  };
}

/** Consecutive messages, by their first and last sequence numbers. */
export interface MessageRange {
  readonly first: number;
  readonly last: number;
}

/** Messages between two jumps. It is empty if the first one is not written yet. */
interface Segment extends MessageRange, Omit<Jump, "at"> {}

function segmentsOf(jumps: readonly Jump[], count: number): readonly Segment[] {
  const begins: readonly Jump[] = [{ at: 1, after: 0, branch: 1 }, ...jumps];
  return begins.map(({ at, after, branch }, index) => ({
    ...{ first: at, after, branch },
    last: (begins[index + 1]?.at ?? count + 1) - 1,
  }));
}

/** The branch that the next message of the conversation continues. */
export const chosenBranch = (jumps: readonly Jump[]): number => jumps.at(-1)?.branch ?? 1;

/** The messages of a branch among the first `count` of its conversation, the newest range first. Undefined if there is no such branch. */
export function pathOf(jumps: readonly Jump[], branch: number, count: number): readonly MessageRange[] | undefined {
  const segments = segmentsOf(jumps, count);
  const leaf = segments.findLast((segment) => segment.branch === branch);
  if (!leaf) return undefined;
  const path: MessageRange[] = [];
  let { last } = leaf;
  for (let segment: Segment | undefined = leaf; segment; segment = segmentAt(segments, last)) {
    if (last >= segment.first) path.push({ first: segment.first, last });
    last = segment.after;
  }
  return path;
}

/** The newest `limit` messages of a path, in the order in which they were written, and whether older ones exist. */
export function newestOf(
  path: readonly MessageRange[],
  { last, limit }: { readonly last: number; readonly limit: number },
): { readonly ranges: readonly MessageRange[]; readonly hasOlder: boolean } {
  const ranges: MessageRange[] = [];
  let left = limit;
  for (const range of path) {
    const end = Math.min(range.last, last);
    if (end < range.first) continue;
    if (left === 0) return { ranges: ranges.reverse(), hasOlder: true };
    const first = Math.max(range.first, end - left + 1);
    ranges.push({ first, last: end });
    left -= end - first + 1;
    if (first > range.first) return { ranges: ranges.reverse(), hasOlder: true };
  }
  return { ranges: ranges.reverse(), hasOlder: false };
}

/** A message of the shown branch that other messages could stand in the place of. */
export interface Siblings {
  readonly sequence: number;
  /** Which of them is shown, from 1. */
  readonly position: number;
  /** For each of them, in the order in which they were written, a branch that has it: the shown one, or the one that was continued last. */
  readonly branches: readonly number[];
}

/** The messages with siblings in the path of a branch. */
export function siblingsOn(jumps: readonly Jump[], branch: number, count: number): readonly Siblings[] {
  const path = pathOf(jumps, branch, count) ?? [];
  const segments = segmentsOf(jumps, count);
  const isShown = (sequence: number) => path.some(({ first, last }) => first <= sequence && sequence <= last);
  return [...new Set(jumps.map(({ after }) => after))].flatMap((parent): Siblings[] => {
    const children = childrenOf(segments, parent);
    const shown = children.find(isShown);
    if (shown === undefined || children.length < 2) return [];
    const branches = children.map((child) => (child === shown ? branch : newestBelow(segments, child)));
    return [{ sequence: shown, position: children.indexOf(shown) + 1, branches }];
  });
}

/** The messages that follow a message. */
function childrenOf(segments: readonly Segment[], parent: number): readonly number[] {
  const own = segmentAt(segments, parent);
  const next = own ? own.first <= parent && parent < own.last : segments[0]!.last > 0;
  const jumped = segments.slice(1).filter(({ after, first, last }) => after === parent && first <= last);
  return [...(next ? [parent + 1] : []), ...jumped.map(({ first }) => first)];
}

/** The branch that was continued last among those that have this message. */
function newestBelow(segments: readonly Segment[], sequence: number): number {
  const own = segmentAt(segments, sequence)!;
  const below = new Set([own]);
  let newest = own;
  for (const segment of segments) {
    const parent = segmentAt(segments, segment.after);
    if (!parent || !below.has(parent) || (parent === own && segment.after < sequence)) continue;
    below.add(segment);
    newest = segment;
  }
  return newest.branch;
}

/** The segment of a message, if the message is written. */
function segmentAt(segments: readonly Segment[], sequence: number): Segment | undefined {
  return sequence === 0 ? undefined : segments.findLast(({ first }) => first <= sequence);
}

/**
 * The jumps after which the next message begins a new branch, in the place of the message `sequence`. `count` is how many messages there are.
 * Undefined if a conversation cannot have more.
 */
export function branchOff(jumps: readonly Jump[], sequence: number, count: number): readonly Jump[] | undefined {
  const after = jumps.find(({ at }) => at === sequence)?.after ?? sequence - 1;
  const branch = Math.max(1, ...jumps.map((jump) => jump.branch)) + 1;
  return withNext(jumps, { at: count + 1, after, branch });
}

/** Whether a conversation has this branch. */
export const hasBranch = (jumps: readonly Jump[], branch: number): boolean =>
  branch === 1 || jumps.some((jump) => jump.branch === branch);

/** The jumps after which the next message continues this branch. Undefined if a conversation cannot have more. */
export function continueWith(jumps: readonly Jump[], branch: number, count: number): readonly Jump[] | undefined {
  const written = jumps.filter(({ at }) => at <= count);
  if (branch === chosenBranch(written)) return written;
  const leaf = segmentsOf(written, count).findLast((segment) => segment.branch === branch)!;
  return withNext(written, { at: count + 1, after: leaf.last, branch });
}

/** A jump to a message that was never written is replaced. */
function withNext(jumps: readonly Jump[], next: Jump): readonly Jump[] | undefined {
  const written = jumps.filter(({ at }) => at < next.at);
  return written.length < MOST_BRANCH_JUMPS ? [...written, next] : undefined;
}
