import { createHash } from "node:crypto";
import { orAborted, ports } from "@portico/core";
import type { GatedCall, ToolGate } from "../approvals/tool-gate.ts";
import type { ArgumentsFault } from "../turns/tool-arguments.ts";
import { problemsOf, toolsOf } from "../turns/tool-sources.ts";

/** The tools of one turn. */
export interface TurnTools {
  readonly definitions: readonly ports.TurnTool[];
  /** Never throws, except for the signal's reason and what `written` throws: whatever goes wrong is a result for the model to read. */
  call(call: GatedCall, caller: ports.ToolCaller, signal: AbortSignal): Promise<ports.ToolResult>;
  /** Whether a person must decide about a call first. Rejects with errors of stores. */
  mustWait(call: GatedCall): Promise<boolean>;
}

export interface TurnToolsGiven {
  readonly telemetry: ports.Telemetry;
  /** Resolves when everything that the turn said is written down. A tool runs only after that, so that the record of a call exists before its effect. */
  readonly written: () => Promise<void>;
  readonly argumentsFault: ArgumentsFault;
  /** Which calls run. */
  readonly gate: ToolGate;
  /** For whom the turn runs. */
  readonly userId: string | undefined;
}

/**
 * Those of the sources' tools that the agent names, each with a name of its own for the model. The sources that can have them are asked at once, and
 * only as long as something is missing, so that an unavailable source delays only turns that need it. In other turns it is left out.
 */
export async function gatherTools(
  sources: readonly ports.ToolSource[],
  wanted: readonly string[],
  { telemetry, written, argumentsFault, gate, userId }: TurnToolsGiven,
  signal: AbortSignal,
): Promise<TurnTools> {
  if (wanted.length === 0)
    return { definitions: [], call: async () => problem("There is no such tool"), mustWait: async () => false };
  const offers = new Map<string, Offer>();
  const enough = new AbortController();
  const asked = sources.filter((source) => wanted.some((id) => source.owns?.(id) ?? true));
  const asking = asked.map(async (source) => {
    for (const tool of await listed(source, telemetry.log, AbortSignal.any([signal, enough.signal]), { userId })) {
      if (wanted.includes(tool.id) && !offers.has(tool.id)) offers.set(tool.id, { source, tool });
    }
    if (wanted.every((id) => offers.has(id))) enough.abort();
  });
  const isEnough = new Promise<void>((resolve) => enough.signal.addEventListener("abort", () => resolve(), { once: true }));
  await Promise.race([Promise.all(asking), isEnough]);
  signal.throwIfAborted();

  const chosen = new Map<string, ChosenTool>();
  const names = modelNames([...offers.values()].map(({ tool }) => tool));
  for (const toolId of new Set(wanted)) {
    const offer = offers.get(toolId);
    if (!offer) telemetry.log.warn("A tool of an agent cannot be offered", { tool: toolId, reason: reasonOf(toolId, asked) });
    if (!offer || !gate.offers(offer.tool)) continue;
    chosen.set(toolId, { source: offer.source, tool: { ...offer.tool, name: names.get(toolId)!, lane: laneOf(offer) } });
  }
  const lanes = new ToolLanes();
  return {
    definitions: [...chosen.values()].map(({ tool }) => tool),
    async mustWait(call) {
      const found = chosen.get(call.toolId);
      return found !== undefined && gate.mustWait(found.tool, call);
    },
    async call(call, caller, signal) {
      const { toolId } = call;
      const found = chosen.get(toolId);
      if (!found) return problem("There is no such tool");
      const { source, tool } = found;
      // In its lane from here on, so that no later call overtakes it while stores are asked.
      return lanes.run(tool.lane, signal, async () => {
        const admitted = await gate.admit(tool, call);
        if (admitted.isRefused) return problem(admitted.text);
        const { arguments: args, note } = admitted;
        const fault = await argumentsFault(tool.inputSchema, args, signal);
        if (fault !== undefined) return problem(`The arguments do not fit the tool's schema: ${fault}`);
        await written();
        signal.throwIfAborted();
        const result = await answerOf(source, { toolId, arguments: args, caller }, telemetry, signal);
        return note === undefined ? result : { ...result, content: [{ type: "text", text: note }, ...result.content] };
      });
    },
  };
}

function reasonOf(toolId: string, sources: readonly ports.ToolSource[]): string {
  for (const source of sources.filter((each) => each.owns?.(toolId) ?? true)) {
    const problems = problemsOf(source);
    const problem =
      problems.find((each) => each.toolId === toolId) ?? problems.find(({ kind }) => source.owns && kind === "unavailable");
    if (problem) return problem.message;
  }
  return "No source that can be reached has a tool with this ID";
}

async function answerOf(
  source: ports.ToolSource,
  call: ports.ToolCall,
  telemetry: ports.Telemetry,
  signal: AbortSignal,
): Promise<ports.ToolResult> {
  const trace = telemetry.work({ kind: "tool", tool: call.toolId, source: source.id });
  try {
    const result = await trace.run(() => source.call(call, signal));
    trace.content?.(() => ({ input: call.arguments, output: result.content }));
    trace.end({ error: result.isError ? "tool_error" : undefined });
    return result;
  } catch (error) {
    trace.content?.(() => ({ input: call.arguments }));
    trace.end({ error: signal.aborted ? "aborted" : "tool_failed" });
    signal.throwIfAborted();
    if (error instanceof ports.ToolArgumentsInvalid) return problem(`The arguments do not fit: ${error.message}`);
    telemetry.log.warn("A tool failed", { source: source.id, tool: call.toolId }, error);
    if (error instanceof ports.ToolsNotConnected) return problem(error.message);
    if (error instanceof ports.ToolsUnavailable) return problem("The tool cannot be reached now");
    if (error instanceof ports.ToolNotFound) return problem("There is no such tool any more");
    return problem("The tool failed");
  }
}

/** Everything that turns can be given now, each id once: these, and what the sources list that can be reached. */
export async function listTools(
  own: readonly ports.ToolDefinition[],
  sources: readonly ports.ToolSource[],
  log: ports.Log,
  signal: AbortSignal,
): Promise<readonly ports.ToolDefinition[]> {
  const lists = await Promise.all(sources.map((source) => listed(source, log, signal)));
  signal.throwIfAborted();
  const all = new Map<string, ports.ToolDefinition>();
  for (const tool of [own, ...lists].flat()) if (!all.has(tool.id)) all.set(tool.id, tool);
  return [...all.values()];
}

interface Offer {
  readonly source: ports.ToolSource;
  readonly tool: ports.ToolDefinition;
}

interface ChosenTool {
  readonly source: ports.ToolSource;
  readonly tool: ports.TurnTool;
}

/** A tool that changes something may build on what another tool of its source changed before. */
function laneOf({ source, tool }: Offer): string | undefined {
  return tool.idempotent || tool.concurrent ? undefined : source.id;
}

async function listed(
  source: ports.ToolSource,
  log: ports.Log,
  signal: AbortSignal,
  caller?: Pick<ports.ToolCaller, "userId">,
): Promise<readonly ports.ToolDefinition[]> {
  try {
    return await toolsOf(source, signal, caller);
  } catch (error) {
    if (signal.aborted) return [];
    log.warn("The tools of a source cannot be listed", { source: source.id }, error);
    return [];
  }
}

function problem(text: string): ports.ToolResult {
  return { content: [{ type: "text", text }], isError: true };
}

/** Maximum length in both model protocols. */
const LONGEST = 64;
const HASH_LENGTH = 8;

/**
 * The names by which a model calls tools, by tool id. Tools of different sources may have the same name, or a name that is too long: each of
 * them gets a name that ends in a hash of its id. A name does not depend on the order of the tools.
 */
export function modelNames(tools: readonly Pick<ports.ToolDefinition, "id" | "name">[]): ReadonlyMap<string, string> {
  const uses = new Map<string, number>();
  for (const { name } of tools) uses.set(name, (uses.get(name) ?? 0) + 1);
  return new Map(tools.map(({ id, name }) => [id, name.length <= LONGEST && uses.get(name) === 1 ? name : hashed(id, name)]));
}

function hashed(id: string, name: string): string {
  const hash = createHash("sha256").update(id).digest("hex").slice(0, HASH_LENGTH);
  return `${name.slice(0, LONGEST - HASH_LENGTH - 1)}_${hash}`;
}

/** Calls of a turn that have to wait for each other: those of one lane run one after another, in the order in which they came. */
export class ToolLanes {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs when all earlier calls of the lane have ended, successfully or not. Rejects with the signal's reason, also while it waits. */
  run<T>(lane: string | undefined, signal: AbortSignal, run: () => Promise<T>): Promise<T> {
    if (lane === undefined) return run();
    const before = this.#last.get(lane);
    const running = (async () => {
      await before;
      signal.throwIfAborted();
      return run();
    })();
    this.#last.set(
      lane,
      running.catch(() => {}),
    );
    return orAborted(running, signal);
  }
}
