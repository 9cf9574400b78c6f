import type { ports } from "@portico/core";
import type { ToldDecision } from "../approvals/approval.ts";
import type { RecordedCall } from "./recorded-call.ts";

/** The decisions of people about the calls of a turn, as its events tell them. */
export class DecidedCalls {
  readonly #told: ToldDecision[] = [];

  /** The content of an event of type `approval`. */
  add(content: unknown): void {
    const told = content as ToldDecision | { readonly status: "waiting" };
    if (told.status !== "waiting") this.#told.push(told);
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
    if (this.#told.length === 0) return messages;
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
    const left = [...this.#told];
    return ({ callId, toolId }: Pick<ports.TurnToolCall, "callId" | "toolId">): ports.CallDecision | undefined => {
      const at = left.findIndex((told) => (told.toolCallId ?? told.callId) === callId && told.toolId === toolId);
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
