import CircleCheck from "~icons/lucide/circle-check";
import Hourglass from "~icons/lucide/hourglass";
import Play from "~icons/lucide/play";
import Send from "~icons/lucide/send";
import Sparkles from "~icons/lucide/sparkles";
import UserRound from "~icons/lucide/user-round";
import Wrench from "~icons/lucide/wrench";
import type { CallResult } from "@portico/core/client";
import type { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import type { Component } from "svelte";
import type { Tone } from "../../blocks/StatusBadge.svelte";
import type { WaterfallRow } from "../../blocks/waterfall.ts";
import type { ReceiptDecision } from "./decision.ts";
import type { Receipt } from "./receipts.svelte.ts";
import { describeDuration } from "../../blocks/duration.ts";
import { writeCost } from "../../blocks/write-cost.ts";

export type Trace = NonNullable<CallResult<typeof conversationsRunsContract.trace>["turns"][number]["trace"]>;
type Entry = Trace["entries"][number];
/** A message of a turn, as its receipt keeps it. */
export type TurnMessage = CallResult<typeof conversationsRunsContract.receiptSteps>["steps"][number];

/** A part of a turn, with what its receipt knows of it. */
export interface Step {
  readonly key: string;
  readonly title: string;
  readonly entry: Entry;
  /** Its number, if the model was called again because earlier calls failed. */
  readonly attempt: number;
  /** Of a call of a tool: the arguments. */
  readonly input?: unknown;
  /** Of a model call: the messages that were new to it. */
  readonly prompt?: string | undefined;
  /** Of a call of a tool whose arguments a person changed: those of the model. */
  readonly proposed?: unknown;
  /** Of a call of a tool that waited for a person. */
  readonly comment?: string | undefined;
  /** Of a model call: its answer. Of a call of a tool: what it returned. */
  readonly output?: string | undefined;
  /** Of the last part of a turn that failed. */
  readonly failure?: { readonly code: string; readonly message: string };
}

const TITLES: Readonly<Record<Exclude<Entry["kind"], "model" | "tool">, string>> = {
  admission: "Accepted",
  queue: "Waited in the queue",
  start: "Began",
  wait: "Waited for a person",
  delivery: "Delivered",
};
const TONES: Readonly<Record<Entry["kind"], Tone>> = {
  admission: "neutral",
  queue: "neutral",
  start: "neutral",
  model: "active",
  tool: "good",
  wait: "warn",
  delivery: "neutral",
};

const ICONS: Readonly<Record<Entry["kind"], Component>> = {
  admission: CircleCheck,
  queue: Hourglass,
  start: Play,
  model: Sparkles,
  tool: Wrench,
  wait: UserRound,
  delivery: Send,
};

const count = new Intl.NumberFormat();

/**
 * The parts of a turn, in the order in which they began. `receipt` is undefined if the user may not see it, and `messages` as long as they are not
 * loaded.
 */
export function toSteps(
  { entries, left_out = 0 }: Trace,
  receipt: Receipt | undefined,
  messages: readonly TurnMessage[] = [],
): readonly Step[] {
  const ordered = entries.toSorted((one, other) => one.start_ms - other.start_ms);
  const models = ordered.filter(({ kind }) => kind === "model");
  const called = [...(receipt?.tool_calls ?? [])] as readonly Readonly<Record<string, unknown>>[];
  const used = new Set<unknown>();
  // If parts were left out, the messages cannot be assigned.
  const answers = left_out > 0 || messages.length === 0 ? [] : answersOf(receipt?.input, messages);
  const results = new Set(messages.filter(({ kind }) => kind === "result"));
  let answered = 0;
  let failed = 0;
  return ordered.map((entry, index) => {
    const { kind, name, error } = entry;
    const attempt = kind === "model" ? failed + 1 : 1;
    if (kind === "model") failed = error === undefined ? 0 : failed + 1;
    const call = kind === "tool" ? called.find((each) => !used.has(each) && isOf(each, name)) : undefined;
    if (call) used.add(call);
    const isLast = index === ordered.length - 1;
    const answer = kind === "model" ? answers[answered] : undefined;
    if (kind === "model" && error === undefined) answered++;
    // Call IDs may repeat: each result counts for one call.
    const result = call && [...results].find(({ call_id }) => call_id === call["id"]);
    if (result) results.delete(result);
    return {
      key: `${index}`,
      title: titleOf(entry),
      entry,
      attempt,
      ...(answer && { prompt: answer.prompt }),
      ...(!answer && receipt && entry === models[0] && { prompt: receipt.input }),
      ...(call && {
        input: call["arguments"] ?? call,
        proposed: call["proposed_arguments"],
        comment: (call["decision"] as ReceiptDecision | undefined)?.comment,
        output: result?.text,
      }),
      ...(answer && error === undefined && { output: answer.text }),
      ...(!answer && receipt && entry === models.at(-1) && receipt.output !== "" && { output: receipt.output }),
      ...(isLast && receipt?.failure && { failure: receipt.failure }),
    };
  });
}

/** The answers of a turn, each with the messages that were new to its model call. */
function answersOf(
  input: string | undefined,
  messages: readonly TurnMessage[],
): readonly { readonly prompt: string; readonly text?: string }[] {
  const answers: { prompt: string; text?: string }[] = [];
  let fresh = input === undefined ? [] : [input];
  for (const { kind, text = "" } of messages) {
    if (kind !== "answer") {
      fresh.push(text);
      continue;
    }
    answers.push({ prompt: fresh.join("\n\n"), ...(text !== "" && { text }) });
    fresh = [];
  }
  // Of a call without an answer.
  if (fresh.length > 0) answers.push({ prompt: fresh.join("\n\n") });
  return answers;
}

/** What the model calls of a turn used, as text. Empty if it is not known. */
export function totalsOf({ entries, usage = {}, left_out = 0 }: Trace): string {
  const calls = entries.filter(({ kind }) => kind === "model").length;
  const { inputTokens, outputTokens, cost, currency } = usage;
  const used = [
    inputTokens !== undefined && `${count.format(inputTokens)} tokens in`,
    outputTokens !== undefined && `${count.format(outputTokens)} out`,
    cost !== undefined && writeCost(cost, currency),
  ].filter((part) => part !== false);
  const called = left_out > 0 ? [] : [calls === 1 ? "1 model call" : `${count.format(calls)} model calls`];
  return used.length === 0 ? "" : [...called, ...used].join(" · ");
}

/** The part at which a turn failed: the last one with an error, or else its end. */
export function failingStep(steps: readonly Step[], hasFailed: boolean): string | undefined {
  return (steps.findLast(({ entry }) => entry.error !== undefined) ?? (hasFailed ? steps.at(-1) : undefined))?.key;
}

/** The lines of a turn's waterfall. */
export function toRows(steps: readonly Step[]): readonly WaterfallRow[] {
  const whole = Math.max(1, ...steps.map(({ entry }) => entry.start_ms + entry.duration_ms));
  return steps.map(({ key, title, entry, attempt, failure }) => {
    const { kind, start_ms, duration_ms, first_token_ms = 0, error } = entry;
    const isBad = error !== undefined || failure !== undefined;
    const from = Math.min((start_ms / whole) * 100, 100);
    return {
      key,
      title: attempt > 1 ? `${title}, attempt ${attempt}` : title,
      about: factsOf(entry),
      ...(isBad && { status: error ?? failure?.code ?? "failed" }),
      tone: isBad ? "bad" : TONES[kind],
      icon: ICONS[kind],
      took: describeDuration(duration_ms),
      bar: {
        from,
        width: Math.min((duration_ms / whole) * 100, 100 - from),
        first: duration_ms > 0 ? Math.min((first_token_ms / duration_ms) * 100, 100) : 0,
      },
    };
  });
}

function isOf({ name, tool_id }: Readonly<Record<string, unknown>>, wanted: string | undefined): boolean {
  return name === wanted || tool_id === wanted;
}

function titleOf({ kind, name = "unknown" }: Entry): string {
  if (kind === "model") return `Model ${name}`;
  return kind === "tool" ? `Tool ${name}` : TITLES[kind];
}

/** Times, tokens and the cost of a part, as text. */
export function factsOf(entry: Entry): string {
  const { start_ms, duration_ms, first_token_ms, input_tokens, output_tokens, cost, currency, dropped } = entry;
  return [
    `${describeDuration(duration_ms)}, after ${describeDuration(start_ms)}`,
    first_token_ms !== undefined && `first token after ${describeDuration(first_token_ms)}`,
    input_tokens !== undefined && `${count.format(input_tokens)} tokens in`,
    output_tokens !== undefined && `${count.format(output_tokens)} out`,
    cost !== undefined && writeCost(cost, currency),
    dropped !== undefined && `left out for this model: ${dropped}`,
  ]
    .filter((fact) => fact !== false)
    .join(" · ");
}
