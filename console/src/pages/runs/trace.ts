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

/** A part of a turn, with what its receipt knows of it. */
export interface Step {
  readonly key: string;
  readonly title: string;
  readonly entry: Entry;
  /** Its number, if the model was called again because earlier calls failed. */
  readonly attempt: number;
  /** Of the first model call: the input of the turn. Of a call of a tool: the arguments. */
  readonly input?: unknown;
  /** Of a call of a tool whose arguments a person changed: those of the model. */
  readonly proposed?: unknown;
  /** Of a call of a tool that waited for a person. */
  readonly comment?: string | undefined;
  /** Of the last model call: the output of the turn. */
  readonly output?: string;
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

/** The parts of a turn, in the order in which they began. `receipt` is undefined if the user may not see it. */
export function toSteps({ entries }: Trace, receipt: Receipt | undefined): readonly Step[] {
  const ordered = entries.toSorted((one, other) => one.start_ms - other.start_ms);
  const models = ordered.filter(({ kind }) => kind === "model");
  const called = [...(receipt?.tool_calls ?? [])] as readonly Readonly<Record<string, unknown>>[];
  const used = new Set<unknown>();
  let failed = 0;
  return ordered.map((entry, index) => {
    const { kind, name, error } = entry;
    const attempt = kind === "model" ? failed + 1 : 1;
    if (kind === "model") failed = error === undefined ? 0 : failed + 1;
    const call = kind === "tool" ? called.find((each) => !used.has(each) && isOf(each, name)) : undefined;
    if (call) used.add(call);
    const isLast = index === ordered.length - 1;
    return {
      key: `${index}`,
      title: titleOf(entry),
      entry,
      attempt,
      ...(receipt && entry === models[0] && { input: receipt.input }),
      ...(call && {
        input: call["arguments"] ?? call,
        proposed: call["proposed_arguments"],
        comment: (call["decision"] as ReceiptDecision | undefined)?.comment,
      }),
      ...(receipt && entry === models.at(-1) && receipt.output !== "" && { output: receipt.output }),
      ...(isLast && receipt?.failure && { failure: receipt.failure }),
    };
  });
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
