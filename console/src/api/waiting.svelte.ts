import type { CallResult } from "@portico/core/client";
import { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import { workflowServiceContract } from "@portico/plugins/workflow-service/contract";
import { createContext } from "svelte";
import { ListFollower } from "./follow-list.svelte.ts";
import type { Instance } from "./instance.ts";
import { type Loaded, loaded } from "./loaded.svelte.ts";

/** A call of a tool that waits for a person. */
export type Approval = CallResult<typeof conversationsRunsContract.approvals>["approvals"][number];
/** A gate of a workflow that waits for a person. */
export type WaitingGate = CallResult<typeof workflowServiceContract.gates>["gates"][number];

/** Entries that wait, and whether there are more. */
interface Part<T> {
  readonly entries: readonly T[];
  readonly isPart: boolean;
}

const PAGE = 200;
const MOST_CALLS = 5;
/** While no stream tells of changes. */
const REFRESH_MS = 10_000;
/** While streams do: in case that a change was lost. */
const RARELY_MS = 5 * 60_000;
const NONE = { entries: [], isPart: false };

/** One kind of decisions that wait. */
export interface WaitingKind<T> extends Omit<Loaded<Part<T>>, "value"> {
  /** Undefined until they are read. */
  readonly entries: readonly T[] | undefined;
  /** There are more. */
  readonly isPart: boolean;
  /** An entry is decided: it is shown no longer, also if the service still lists it for a moment. */
  decided(entry: T): Promise<void>;
}

/** Everything that waits for a decision of the user. */
export interface Waiting {
  /** The oldest first. */
  readonly calls: WaitingKind<Approval>;
  /** Empty until the user has opened the workflow service, if it does not open with the sign-in. */
  readonly gates: WaitingKind<WaitingGate>;
  readonly count: number;
  readonly isPart: boolean;
}

/** Names a waiting call. Models may use an ID again in the same run. */
export const keyOfCall = ({ runId, callId, askedAt }: Approval): string => `${runId}/${callId}/${askedAt}`;
/** Names a waiting gate. A run may come to the same gate again. */
export const keyOfGate = ({ runId, gate }: WaitingGate): string => `${runId}/${gate.nodeId}/${gate.requestedAt}`;

/** Reads and follows what waits. Once for the whole console, during component initialization. */
export function followWaiting({ client, workflow }: Instance): Waiting {
  const agent = client(conversationsRunsContract);
  const calls = waitingKind(
    (signal) =>
      pages(signal, async (after) => {
        const page = await agent.approvals({ query: { limit: String(PAGE), ...(after !== undefined && { after }) }, signal });
        return { entries: page.approvals, next: page.next };
      }),
    keyOfCall,
    () => (headers, signal) => agent.approvalChanges({ query: {}, headers, signal }),
  );
  const gates = waitingKind(
    async (signal) => {
      if (workflow.state !== "open" && !(workflow.isIncluded && (await workflow.open()))) return NONE;
      const service = workflow.client(workflowServiceContract);
      return pages(signal, async (cursor) => {
        const page = await service.gates({ query: { limit: String(PAGE), ...(cursor !== undefined && { cursor }) }, signal });
        return { entries: page.gates, next: page.next };
      });
    },
    keyOfGate,
    () => {
      if (workflow.state !== "open") return undefined;
      const service = workflow.client(workflowServiceContract);
      return (headers, signal) => service.gateChanges({ query: {}, headers, signal });
    },
  );
  return {
    calls,
    gates,
    get count() {
      return (calls.entries?.length ?? 0) + (gates.entries?.length ?? 0);
    },
    get isPart() {
      return calls.isPart || gates.isPart;
    },
  };
}

/** `stream` returns undefined while the service has no stream. State that it reads is tracked. */
function waitingKind<T>(
  load: (signal: AbortSignal) => Promise<Part<T>>,
  keyOf: (entry: T) => string,
  stream: () => Parameters<ListFollower["follow"]>[0] | undefined,
): WaitingKind<T> {
  const follower = new ListFollower();
  let readAt = 0;
  const read = loaded(
    async (signal) => {
      const part = await load(signal);
      readAt = Date.now();
      const listed = new Set(part.entries.map(keyOf));
      gone = new Set([...gone].filter((key) => listed.has(key)));
      return part;
    },
    REFRESH_MS,
    { whileHidden: true, isDue: () => !follower.isLive || Date.now() - readAt > RARELY_MS },
  );
  /** Decided here, and possibly still listed. */
  let gone = $state.raw<ReadonlySet<string>>(new Set());
  const entries = $derived(read.value?.entries.filter((entry) => !gone.has(keyOf(entry))));
  $effect(() => {
    const open = stream();
    if (!open) return;
    const leaving = new AbortController();
    void follower.follow(open, () => read.refresh(), leaving.signal);
    return () => leaving.abort();
  });
  return {
    get entries() {
      return entries;
    },
    get isPart() {
      return read.value?.isPart === true;
    },
    get error() {
      return read.error;
    },
    get isPending() {
      return read.isPending;
    },
    refresh: read.refresh,
    decided(entry) {
      gone = new Set([...gone, keyOf(entry)]);
      return read.refresh();
    },
  };
}

/** The entries of the first pages. */
async function pages<T>(
  signal: AbortSignal,
  read: (after: string | undefined) => Promise<{ readonly entries: readonly T[]; readonly next?: string | undefined }>,
): Promise<Part<T>> {
  const entries: T[] = [];
  let after: string | undefined;
  for (let call = 0; call < MOST_CALLS; call++) {
    const page = await read(after);
    signal.throwIfAborted();
    entries.push(...page.entries);
    after = page.next;
    if (after === undefined) break;
  }
  return { entries, isPart: after !== undefined };
}

const [useWaiting, provideWaiting] = createContext<Waiting>();
/** Read once for the whole console, which shows it in several places. */
export { provideWaiting, useWaiting };
