import type { EventDecision, RecordedCall } from "./recorded-call.ts";
import type { ports } from "@portico/core";
import { LeftMessages } from "./left-messages.ts";
import type { TurnEvent } from "./turn.ts";

/** The parts of a turn that can be stored if it does not reach its end: the text so far, the called tools, and their results. */
export class Produced {
  /** How people decided about its calls. */
  readonly decided = new DecidedCalls();
  /** The IDs of the user's messages that steered it. */
  readonly steeredBy: string[] = [];
  readonly #left = new LeftMessages();
  readonly #texts: string[] = [];
  readonly #calls = new Map<string, ports.TurnToolCall>();
  /** The IDs of calls without a result. */
  readonly #open = new Set<string>();
  #message: string | undefined;
  #seq = 0;

  /** The number of the last message. */
  get seq(): number {
    return this.#seq;
  }

  /** The agent's words so far. */
  get output(): string {
    return this.#texts.join("");
  }

  get toolCalls(): readonly RecordedCall[] {
    return this.decided.ofCalls([...this.#calls.values()]);
  }

  /** Calls without a result. */
  get openCalls(): readonly ports.TurnToolCall[] {
    return this.toolCalls.filter(({ callId }) => this.#open.has(callId));
  }

  /** The messages that stay in the conversation. */
  get messages(): readonly ports.ConversationMessage[] {
    return this.decided.ofMessages(this.#left.messages);
  }

  add(event: TurnEvent): void {
    if (event.event !== "query:message") return;
    const { message } = event.data;
    this.#left.add(message);
    this.#seq = message.seq;
    switch (message.type) {
      case "text":
        if (this.#message !== undefined && this.#message !== message.id) this.#texts.push("\n\n");
        this.#message = message.id;
        this.#texts.push(message.delta ?? "");
        return;
      case "tool_call": {
        const call = message.content as Omit<ports.TurnToolCall, "isError">;
        // Until its result exists, it is unknown whether the call took effect.
        this.#calls.set(call.callId, { ...call, isError: true });
        this.#open.add(call.callId);
        return;
      }
      case "steering":
        return void this.steeredBy.push((message.content as { messageId: string }).messageId);
      case "approval":
        return this.decided.add(message.content);
      case "tool_result": {
        const { callId, result } = message.content as { callId: string; result: ports.ToolResult };
        const call = this.#calls.get(callId);
        this.#open.delete(callId);
        if (call) this.#calls.set(callId, { ...call, isError: result.isError });
        return;
      }
    }
  }
}

/** The decisions of people about the calls of a turn, as its events tell them. */
export class DecidedCalls {
  readonly #decisions: EventDecision[] = [];

  /** The content of an event of type `approval`. */
  add(content: unknown): void {
    const decision = content as EventDecision | { readonly status: "waiting" };
    if (decision.status !== "waiting") this.#decisions.push(decision);
  }

  /** All calls of the turn, as they were executed. */
  ofCalls(calls: readonly ports.TurnToolCall[]): readonly RecordedCall[] {
    const take = this.#taker();
    return calls.map((call): RecordedCall => {
      const decision = take(call);
      if (!decision) return call;
      const { arguments: executed, ...rest } = decision;
      return executed === undefined
        ? { ...call, decision: rest }
        : { ...call, arguments: executed, proposed: call.arguments, decision: rest };
    });
  }

  /** The messages of the turn. Their calls keep the arguments of the model, which reads them again in later turns. */
  ofMessages(messages: readonly ports.ConversationMessage[]): readonly ports.ConversationMessage[] {
    if (this.#decisions.length === 0) return messages;
    const take = this.#taker();
    return messages.map((message) => ({
      ...message,
      parts: message.parts.map((part) => {
        const decision = part.type === "tool_call" ? take(part) : undefined;
        return decision ? { ...part, decision } : part;
      }),
    }));
  }

  /** Each decision counts for one call: engines may give several calls one ID. */
  #taker() {
    const left = [...this.#decisions];
    return ({ callId, toolId }: Pick<ports.TurnToolCall, "callId" | "toolId">): ports.CallDecision | undefined => {
      const at = left.findIndex((decision) => (decision.toolCallId ?? decision.callId) === callId && decision.toolId === toolId);
      if (at === -1) return undefined;
      const { status, decidedBy, decidedAt, comment, arguments: args } = left.splice(at, 1)[0]!;
      return {
        status,
        ...(decidedBy !== undefined && { decidedBy }),
        ...(decidedAt !== undefined && { decidedAt }),
        ...(comment !== undefined && { comment }),
        ...(args !== undefined && { arguments: args }),
      };
    };
  }
}
