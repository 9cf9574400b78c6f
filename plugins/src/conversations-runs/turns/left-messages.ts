import type { ports } from "@portico/core";
import { LEFT_RESULTS_CHARACTERS } from "../limits.ts";
import type { TurnMessage } from "./turn.ts";

type Call = Extract<ports.MessagePart, { type: "tool_call" }>;
type ResultPart = Extract<ports.MessagePart, { type: "tool_result" }>;

/** One answer of a model with the results of its calls, as far as they came. */
interface Round {
  readonly said: ports.MessagePart[];
  /** By callId. */
  readonly calls: Map<string, Call>;
  readonly results: Map<string, ResultPart>;
  /** What the user said after it. */
  readonly steering: ports.ConversationMessage[];
}

/** The messages of a broken turn that stay in its conversation, made from its events: its text, its calls, and their known results. */
export class LeftMessages {
  readonly #rounds: Round[] = [];
  #text: { readonly id: string; readonly part: { type: "text"; text: string } } | undefined;
  #characters = 0;

  add(message: TurnMessage): void {
    switch (message.type) {
      case "text":
        return this.#say(message.id, message.delta ?? "");
      case "tool_call":
        return this.#call(message.content as Omit<Call, "type">);
      case "tool_result":
        return this.#result(message.content as Pick<ResultPart, "callId" | "result">);
      case "steering":
        return this.#steer((message.content as { readonly text: string }).text);
    }
  }

  /** As providers take them: each call with a result, that of an open one saying that its effect is unknown. */
  get messages(): readonly ports.ConversationMessage[] {
    return this.#rounds.flatMap(({ said, calls, results, steering }): ports.ConversationMessage[] => {
      const answers = [...calls.values()].map((call) => results.get(call.callId) ?? unknown(call));
      return [
        ...(said.length > 0 ? [{ role: "assistant" as const, parts: said }] : []),
        ...(answers.length > 0 ? [{ role: "tool" as const, parts: answers }] : []),
        ...steering,
      ];
    });
  }

  #say(id: string, delta: string): void {
    if (this.#text?.id === id) return void (this.#text.part.text += delta);
    if (delta === "") return;
    const part = { type: "text" as const, text: delta };
    this.#round().said.push(part);
    this.#text = { id, part };
  }

  #steer(text: string): void {
    const round = this.#rounds.at(-1) ?? this.#round();
    round.steering.push({ role: "user", parts: [{ type: "text", text }] });
    this.#text = undefined;
  }

  #call({ callId, toolId, name, arguments: args }: Omit<Call, "type">): void {
    const round = this.#round();
    this.#text = undefined;
    // Arguments that were too long for an event are a note. Providers accept only objects.
    const isObject = typeof args === "object" && args !== null && !Array.isArray(args);
    const call: Call = { type: "tool_call", callId, toolId, name, arguments: isObject ? args : {} };
    round.said.push(call);
    round.calls.set(callId, call);
  }

  #result({ callId, result }: Pick<ResultPart, "callId" | "result">): void {
    const round = this.#rounds.findLast(({ calls, results }) => calls.has(callId) && !results.has(callId));
    if (!round) return;
    const { toolId, name } = round.calls.get(callId)!;
    this.#characters += result.content.reduce((sum, part) => sum + (part.type === "text" ? part.text : part.data).length, 0);
    const stored = this.#characters > LEFT_RESULTS_CHARACTERS ? { ...leftOut, isError: result.isError } : result;
    round.results.set(callId, { type: "tool_result", callId, toolId, name, result: stored });
  }

  /** The answer that is arriving. When every call of it has its result, the following events belong to the next answer. */
  #round(): Round {
    const last = this.#rounds.at(-1);
    if (last && last.steering.length === 0 && (last.calls.size === 0 || last.results.size < last.calls.size)) return last;
    const round: Round = { said: [], calls: new Map(), results: new Map(), steering: [] };
    this.#rounds.push(round);
    return round;
  }
}

const leftOut = { content: [{ type: "text" as const, text: "[left out: the results of this turn were too long to keep]" }] };

function unknown({ callId, toolId, name }: Call): ResultPart {
  const text = "The turn ended before this call answered. Its effect is unknown: it may or may not have been done.";
  return { type: "tool_result", callId, toolId, name, result: { content: [{ type: "text", text }], isError: true } };
}
