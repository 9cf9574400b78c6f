import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { loopAgentEngine, type LoopOptions } from "@portico/adapters/agent-engines/loop";
import { memoryAgents } from "@portico/adapters/agents/memory";
import { tokenIdentity } from "@portico/adapters/identity/tokens";
import { memoryStore } from "@portico/adapters/stores/memory";
import { type PriceTable, recordUsage } from "@portico/adapters/usage/records";
import { type Adapter, type App, createApp, type ports, Secret } from "@portico/core";
import type { CallResult } from "@portico/core/client";
import { type SchemaChecks, withoutByteOrderMark } from "@portico/core/kit";
import { conversationsRuns } from "@portico/plugins/conversations-runs";
import { MEMORY_TOOLS, noClients } from "@portico/plugins/conversations-runs/agent-turns";
import type { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import { silentTelemetry } from "../cases/silent-telemetry.ts";
import { type AgentCase, type AgentCases, TURN_ENDS } from "./case-file.ts";
import { turnDifferences } from "./check-turn.ts";
import type { FoundTurn } from "./found-turn.ts";
import type { Judge, SaidTurn } from "./judge.ts";
import { type ModelScript, scriptedModel, withoutPauses } from "./scripted-model.ts";
import { scriptedTools, withDelegates } from "./scripted-tools.ts";

type Contract = typeof conversationsRunsContract;
type Answer<Name extends keyof Contract> = CallResult<Contract[Name]>;

/** The tested agent. */
export interface TestedAgent {
  readonly id: string;
  readonly definition: ports.AgentDefinition;
  /** Its `agent.json`. */
  readonly text: string;
  /** Reads the files of its skills. */
  readonly skillFile: NonNullable<ports.Agents["skillFile"]>;
}

/** A model that answers in place of the case. */
export interface PlayedModel {
  readonly provider: string;
  readonly model: string;
  /** The provider. */
  readonly adapter: Adapter;
}

/** How the cases of an agent are executed. */
export interface AgentCaseGiven {
  readonly agent: TestedAgent;
  /** Default: the model gives the answers of the case. */
  readonly played?: PlayedModel | undefined;
  /** Tools that the file of the cases defines. */
  readonly tools: AgentCases["tools"];
  readonly checks: SchemaChecks;
  /** Checks the criteria in words. Default: they are not checked. */
  readonly judge?: Judge | undefined;
  /** The instance's options of turns and their engine, and its prices. */
  readonly turns?: Pick<Parameters<typeof conversationsRuns>[0], "toolPolicy">;
  readonly loop?: LoopOptions;
  readonly prices?: PriceTable | undefined;
  /** Real time of the case, in milliseconds; default: a minute. */
  readonly limitMs?: number;
  readonly signal?: AbortSignal;
}

/** The end of one case. */
export interface TestedAgentCase {
  readonly name: string;
  readonly isOk: boolean;
  /** One line for each difference from the expectation. */
  readonly differences: readonly string[];
  /** What all turns did together, with the end of the last one. Absent if no turn ended. */
  readonly found?: FoundTurn;
}

const TOKEN = "the token of a test that listens nowhere";
const CASE_MS = 60_000;
const NEVER = new AbortController().signal;
/** Between two looks at a turn, in milliseconds. */
const LOOK_MS = 1;
const LOOK_AT_REAL_MS = 20;
/** The provider and the model of an agent that names none. */
const SCRIPTED = "scripted";

/** Runs one case with the engine of the service, in memory. Without a real model, nothing outside of the process is called. */
export async function runAgentCase(test: AgentCase, given: AgentCaseGiven): Promise<TestedAgentCase> {
  const {
    agent,
    played: real,
    tools: definitions,
    checks,
    judge,
    turns,
    loop = {},
    prices,
    signal = NEVER,
    limitMs = CASE_MS,
  } = given;
  const { provider = SCRIPTED, model = SCRIPTED } = agent.definition;
  // The tools of a memory are executed on an empty one, unless the case answers one of them.
  const remembered = MEMORY_TOOLS.filter((toolId) => Object.hasOwn(test.tools, toolId));
  const named = [...agent.definition.tools, ...remembered];
  const answers = test.model ?? [];
  const text = withChanges(agent.text, {
    ...(real && { provider: real.provider, model: real.model }),
    ...(remembered.length > 0 && { memory: false, tools: named }),
  });
  const missed = new Set<string>();
  const script: ModelScript = { calls: 0, toolCalls: 0 };
  const tools = scriptedTools({ definitions, answers: test.tools, named, missed: (toolId) => missed.add(toolId) });
  const app = await createApp({
    name: "agent-test",
    adapters: [
      ...memoryStore(),
      silentTelemetry(),
      recordUsage({ prices }),
      tokenIdentity({ tokens: [{ token: new Secret(TOKEN), userId: "tester", role: "owner" }] }),
      withDelegates(withSkills(memoryAgents({ agents: new Map([[agent.id, text]]) }), agent)),
      ...(real
        ? [loopAgentEngine(loop), real.adapter]
        : [withoutPauses(loopAgentEngine(loop)), scriptedModel({ id: provider, model, answers, names: tools.names, script })]),
      ...tools.adapters,
      noClients(),
    ],
    plugins: [conversationsRuns({ ...turns })],
  });
  try {
    const lookMs = real ? LOOK_AT_REAL_MS : LOOK_MS;
    const played = await playTurns(app, {
      ...{ lookMs, test, agentId: agent.id, checks, judge, signal },
      // The protocol has no word for an unknown usage: it says 0 tokens.
      isUsageKnown: real !== undefined || answers.some(({ usage }) => usage),
      decidedBefore: new Map(),
      endsAt: performance.now() + limitMs,
    });
    const differences = [
      ...[...missed].map((toolId) => `tools.${toolId}: the case has no answer for this tool`),
      ...(real ? [] : scriptDifferences(script.calls, answers.length)),
      ...played.differences,
    ];
    if (!played.found) return { name: test.name, isOk: false, differences };
    const { said } = played;
    differences.push(...(await turnDifferences(test.expect, played.found, { checks, judge, said, signal })));
    return { name: test.name, isOk: differences.length === 0, differences, found: played.found };
  } finally {
    await app.close();
  }
}

function scriptDifferences(calls: number, answers: number): readonly string[] {
  if (calls === answers) return [];
  return calls > answers
    ? [`model[${answers}]: the case has no answer for this call of the model`]
    : [`model: the case has ${answers} answers, and the model was called ${calls} times`];
}

interface Playing {
  readonly test: AgentCase;
  readonly agentId: string;
  readonly checks: SchemaChecks;
  readonly judge: Judge | undefined;
  readonly lookMs: number;
  readonly isUsageKnown: boolean;
  /** How many calls of each tool were decided. */
  readonly decidedBefore: Map<string, number>;
  readonly endsAt: number;
  readonly signal: AbortSignal;
}

interface Played {
  readonly differences: readonly string[];
  readonly said: readonly SaidTurn[];
  readonly found?: FoundTurn;
}

/** One turn for each message, in one conversation. A turn that waits for a person ends the case. */
async function playTurns(app: App, playing: Playing): Promise<Played> {
  const { test, agentId, checks, judge, signal } = playing;
  const differences: string[] = [];
  const said: SaidTurn[] = [];
  let together: FoundTurn | undefined;
  let conversationId: string | undefined;
  for (const [at, message] of test.messages.entries()) {
    const { text, expect } = typeof message === "string" ? { text: message } : message;
    const told = (words: readonly string[]) => words.map((each) => `messages[${at}]: ${each}`);
    const body = { prompt: text, clientRequestId: randomUUID(), ...(conversationId !== undefined && { conversationId }) };
    const { status, body: asked } = await call<"ask">(app, `/api/agents/${agentId}/ask`, body);
    if (status !== 200)
      return { said, differences: [...differences, ...told([`The message is refused: ${JSON.stringify(asked)}`])] };
    conversationId = asked.conversationId;
    const found = await endOfTurn(app, asked.runId, at, playing);
    if (typeof found === "string")
      return { said, differences: [...differences, ...told([found])], ...(together && { found: together }) };
    said.push({ message: text, answer: found.output });
    const isLast = at === test.messages.length - 1;
    const expected = expect ?? (isLast ? undefined : { status: "completed" as const, atMost: {} });
    if (expected) differences.push(...told(await turnDifferences(expected, found, { checks, judge, said, signal })));
    together = together ? added(together, found) : found;
    if (found.status === "waiting") break;
  }
  return { said, differences, ...(together && { found: together }) };
}

/** The turn with this number of a run when it has ended or waits for a person, or why it cannot end. */
async function endOfTurn(app: App, runId: string, number: number, playing: Playing): Promise<FoundTurn | string> {
  const { test, decidedBefore, lookMs, isUsageKnown, endsAt, signal } = playing;
  const path = `/api/runs/${runId}`;
  while (performance.now() < endsAt) {
    signal.throwIfAborted();
    const { total = 0, receipts } = (await call<"receipts">(app, `${path}/receipt?limit=1`)).body;
    if (total > number) {
      const [traced] = (await call<"trace">(app, `${path}/trace?limit=1`)).body.turns;
      return foundTurn(receipts[0]!, traced, isUsageKnown);
    }
    const waiting = (await call<"approvals">(app, "/api/approvals")).body.approvals
      .filter((each) => each.runId === runId)
      // Calls of one answer wait since the same time.
      .sort((one, other) => (one.callId < other.callId ? -1 : 1));
    for (const { callId, toolId } of waiting) {
      const given = test.approvals[toolId];
      if (given === undefined) return waitingTurn(waiting);
      const number = decidedBefore.get(toolId) ?? 0;
      const decision = Array.isArray(given) ? given[Math.min(number, given.length - 1)]! : given;
      const decided = await call<"decideApproval">(
        app,
        `${path}/approvals/${encodeURIComponent(callId)}`,
        typeof decision === "string" ? { decision } : decision,
      );
      decidedBefore.set(toolId, number + 1);
      if (decided.status !== 200) return `approvals.${toolId}: the decision is refused: ${JSON.stringify(decided.body)}`;
    }
    await pause(lookMs, undefined, { signal });
  }
  return "The turn does not end in time";
}

type Receipt = Answer<"receipts">["receipts"][number];
type Traced = Answer<"trace">["turns"][number];

function foundTurn(receipt: Receipt, traced: Traced | undefined, isUsageKnown: boolean): FoundTurn {
  const { output, failure, interruption_reason: reason, tool_calls: calls, duration_ms: durationMs = 0 } = receipt;
  const end = reason ?? "completed";
  const status = failure ? "failed" : isTurnEnd(end) ? "completed" : "interrupted";
  const { usage, entries = [] } = traced?.trace ?? {};
  return {
    status,
    ...(status === "completed" && { end }),
    ...(failure && { error: failure }),
    output,
    calls: (calls as readonly StoredCall[]).map(toFoundCall),
    modelCalls: entries.filter(({ kind }) => kind === "model").length,
    ...(isUsageKnown && { inputTokens: usage?.inputTokens, outputTokens: usage?.outputTokens, cost: usage?.cost }),
    durationMs,
  };
}

/** The other reasons are those of interruptions. */
function isTurnEnd(reason: string): boolean {
  return (TURN_ENDS as readonly string[]).includes(reason);
}

interface StoredCall {
  readonly tool_id: string;
  readonly arguments: unknown;
  readonly is_error: boolean;
}

function toFoundCall({ tool_id: tool, arguments: args, is_error: isError }: StoredCall) {
  return { tool, arguments: args, isError };
}

/** A turn that waits has no receipt: only the calls that wait are known. */
function waitingTurn(waiting: Answer<"approvals">["approvals"]): FoundTurn {
  const calls = waiting.map(({ toolId, arguments: args }) => ({ tool: toolId, arguments: args, isError: false }));
  return { status: "waiting", output: "", calls, modelCalls: 0, durationMs: 0 };
}

function added(before: FoundTurn, last: FoundTurn): FoundTurn {
  const sum = (one: number | undefined, other: number | undefined) =>
    one === undefined || other === undefined ? (one ?? other) : one + other;
  return {
    ...last,
    calls: [...before.calls, ...last.calls],
    modelCalls: before.modelCalls + last.modelCalls,
    inputTokens: sum(before.inputTokens, last.inputTokens),
    outputTokens: sum(before.outputTokens, last.outputTokens),
    cost: sum(before.cost, last.cost),
    durationMs: before.durationMs + last.durationMs,
  };
}

/** The same `agent.json` with other values. */
function withChanges(text: string, changes: object): string {
  if (Object.keys(changes).length === 0) return text;
  const definition = JSON.parse(withoutByteOrderMark(text)) as object;
  return JSON.stringify({ ...definition, ...changes });
}

function withSkills(adapter: Adapter, { id, skillFile }: TestedAgent): Adapter {
  const { spec } = adapter;
  const open: typeof spec.open = async (...opening) => {
    const agents = (await spec.open(...opening)) as ports.Agents;
    return {
      ...agents,
      skillFile: async (of: string, ...file: [string, string]) => (of === id ? skillFile(of, ...file) : undefined),
    };
  };
  return { ...adapter, spec: { ...spec, open } };
}

async function call<Name extends keyof Contract>(app: App, path: string, body?: object) {
  const answer = await app.surface("agent").fetch(
    new Request(`http://agent.test${path}`, {
      method: body ? "POST" : "GET",
      headers: { "x-agent-service-token": TOKEN, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    }),
  );
  return { status: answer.status, body: (await answer.json()) as Answer<Name> };
}
