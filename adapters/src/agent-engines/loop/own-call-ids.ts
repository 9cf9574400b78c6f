import type { ports } from "@portico/core";

/**
 * Calls with IDs that no other call of the conversation has. Models repeat IDs and leave them empty. Results and approvals belong to
 * a call by its ID, and providers of Messages refuse a conversation in which an ID occurs twice. A new ID has only characters that
 * both protocols accept.
 */
export function ownCallIds<C extends { readonly callId: string }>(
  calls: readonly C[],
  earlier: readonly ports.ConversationMessage[],
): readonly C[] {
  if (calls.length === 0) return calls;
  const used = new Set(earlier.flatMap(({ parts }) => parts.flatMap((part) => (part.type === "tool_call" ? [part.callId] : []))));
  /** The next number for each repeated ID: beginning at 2 for each call would take quadratic time. */
  const next = new Map<string, number>();
  return calls.map((call) => {
    const id = call.callId || "call";
    let callId = id;
    for (let number = next.get(id) ?? 2; used.has(callId); number++) {
      callId = `${id}_${number}`;
      next.set(id, number + 1);
    }
    used.add(callId);
    return callId === call.callId ? call : { ...call, callId };
  });
}
