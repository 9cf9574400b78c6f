import { setTimeout as pause } from "node:timers/promises";
import type { Adapter, ports } from "@portico/core";
import { defineModelProvider, ModelRefusal } from "@portico/core/model-protocols";
import type { ScriptedAnswer } from "./case-file.ts";

/** What became of the script of a model. */
export interface ModelScript {
  /** Calls that the model got, also those for which the case has no answer. */
  calls: number;
  /** Calls of tools that it made. */
  toolCalls: number;
}

export interface ScriptedModelOptions {
  /** As the agent names it, so that its prices count. */
  readonly id: string;
  readonly model: string;
  readonly answers: readonly ScriptedAnswer[];
  /** The names by which the model calls tools, by tool id. */
  readonly names: ReadonlyMap<string, string>;
  readonly script: ModelScript;
}

/** A provider whose model gives the answers of a case, one for each call. */
export const scriptedModel = defineModelProvider({
  name: "models/scripted",
  open: (_given, { id, model, answers, names, script }: ScriptedModelOptions) => ({
    id,
    models: [model],
    takes: ["tools", "images", "documents", "thinking", "schema"],
    async *answer() {
      const answer = answers[script.calls++];
      // This kind of refusal is not retried.
      if (!answer) throw new ModelRefusal("invalid-request", "The case has no answer for this call of the model");
      const { thinking, text, calls, stop, usage, error } = answer;
      if (thinking !== undefined) yield { type: "thinking", text: thinking };
      if (text !== undefined) yield text;
      if (error) throw new ModelRefusal(error.kind, error.message, error.status === undefined ? {} : { status: error.status });
      for (const { tool, arguments: args } of calls)
        yield {
          type: "tool-call",
          id: callId(script.toolCalls++),
          name: names.get(tool) ?? tool,
          arguments: args as Record<string, never>,
        };
      if (usage) {
        const { input, output, cachedInput, cacheWrite } = usage;
        yield { type: "usage", usage: { input, output, cacheRead: cachedInput, cacheWrite } };
      }
      if (stop) yield { type: "finish", reason: stop === "refusal" ? "refusal" : "length" };
    },
  }),
});

/** Ids of calls sort in the order of the calls. */
function callId(number: number): string {
  return `call_${String(number).padStart(9, "0")}`;
}

/** Between an attempt and the next one, in milliseconds. */
const SOON_MS = 1;

/** The agent engine, which waits only for a moment before it calls a model again. */
export function withoutPauses(adapter: Adapter): Adapter {
  const { spec } = adapter;
  const open: typeof spec.open = (given, ...more) => {
    const { clock } = given as { readonly clock: ports.Clock };
    const hasty: ports.Clock = {
      now: () => clock.now(),
      after: (ms, run) => clock.after(ms, run),
      sleep: (_ms, signal) => pause(SOON_MS, undefined, { signal }),
    };
    return spec.open({ ...(given as object), clock: hasty } as typeof given, ...more);
  };
  return { ...adapter, spec: { ...spec, open } };
}
