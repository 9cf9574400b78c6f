import type { CallResult } from "@portico/core/client";
import type { QueryMessage } from "@portico/client";
import type { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import type { ShownDecision } from "../../runs/decision.ts";

export type KeptMessage = CallResult<typeof conversationsRunsContract.messages>["messages"][number];

/** A user's message of the shown branch that others could stand in the place of: which one is shown, and a branch of each. */
export type Siblings = Omit<CallResult<typeof conversationsRunsContract.messages>["branches"][number], "messageId" | "sequence">;

/** Where a stored turn is in its conversation. */
export interface TurnPlace {
  readonly sequence: number;
  /** The id of the user's message. */
  readonly questionId: string;
  /** The id of the last message of the answer. Undefined if the turn left none. */
  readonly answerId?: string | undefined;
  readonly siblings?: Siblings | undefined;
}

/** A file of a message. */
export interface SentFile {
  readonly kind: "media" | "attachment";
  /** A mediaId, or a fileReference. */
  readonly reference: string;
  readonly name: string;
  readonly mimeType: string;
  readonly size: number;
}

/** The parts of an agent's answer. */
export type Piece =
  | { readonly type: "text" | "thinking"; readonly id: string; text: string }
  /** The agent no longer sees what is before this turn, but this summary of it. */
  | { readonly type: "summary"; readonly id: string; readonly text: string }
  | {
      readonly type: "tool";
      readonly id: string;
      readonly name: string;
      readonly arguments: unknown;
      /** The call waits for a person. */
      isWaiting?: boolean | undefined;
      /** How a person decided about it. Its `arguments` are what the tool got in place of those of the model. */
      decision?: CallDecision | undefined;
      /** Undefined while the tool runs, or if it never returned. */
      result?: ToolResult | undefined;
    }
  | { readonly type: "delivery"; readonly id: string; readonly delivery: Delivery }
  /** What the user said while the turn went on. */
  | { readonly type: "steering"; readonly id: string; readonly text: string };

export interface CallDecision extends ShownDecision {
  readonly arguments?: unknown;
}

export interface ToolResult {
  readonly content: readonly ToolContent[];
  readonly isError: boolean;
}
export type ToolContent =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly mimeType: string; readonly data: string };

/** A message that a tool delivered to the user immediately. */
export interface Delivery {
  readonly message?: string | readonly DeliveredBlock[] | undefined;
  readonly text?: string | undefined;
  readonly attachments?: readonly string[] | undefined;
}
/** The blocks that `SendUserMessage` offers to models. */
export type DeliveredBlock =
  | { readonly type: "text" | "heading"; readonly text: string }
  | { readonly type: "code"; readonly text: string; readonly language?: string | undefined }
  | { readonly type: "list"; readonly items: readonly string[]; readonly ordered?: boolean | undefined }
  | { readonly type: "link"; readonly url: string; readonly text?: string | undefined }
  | { readonly type: "table"; readonly columns: readonly string[]; readonly rows: readonly (readonly string[])[] };

/** `kept`: loaded from the conversation, which does not contain how the turn ended. */
export type TurnState =
  | "kept"
  | "submitting"
  | "waiting"
  | "running"
  | "completed"
  | "interrupted"
  | "failed"
  | "unknown"
  | "refused";

/** A user's message, and the agent's answer. */
export interface Turn {
  readonly key: string;
  /** ISO 8601. */
  readonly at: string;
  readonly prompt: string;
  readonly files: readonly SentFile[];
  readonly pieces: readonly Piece[];
  readonly state: TurnState;
}

/** The parts of stored messages that are shown here. */
interface KeptPart {
  readonly type: string;
  readonly text?: string;
  readonly callId?: string;
  readonly name?: string;
  readonly arguments?: unknown;
  readonly decision?: CallDecision;
  readonly result?: ToolResult;
  readonly reference?: string;
  readonly mimeType?: string;
  readonly size?: number;
}

/** The turns of a stored conversation, oldest first. */
export function toTurns(messages: readonly KeptMessage[]): readonly Turn[] {
  const turns: (Turn & { readonly pieces: Piece[] })[] = [];
  for (const message of messages) {
    const parts = message.parts as readonly KeptPart[];
    const last = turns.at(-1);
    if (last && message.steers) {
      last.pieces.push({ type: "steering", id: message.id, text: textOf(parts) });
      continue;
    }
    // Content before the first message of a user belongs to a turn that starts on an earlier page.
    if (message.role === "user" || last === undefined) {
      const begun = { key: message.clientRequestId ?? message.id, at: message.at, state: "kept" as const, pieces: [] };
      const isUser = message.role === "user";
      turns.push({ ...begun, prompt: isUser ? textOf(parts) : "", files: isUser ? parts.flatMap(toFile) : [] });
      if (isUser) continue;
    }
    const { pieces } = turns.at(-1)!;
    for (const [index, part] of parts.entries()) addPart(pieces, part, `${message.id}-${index}`);
  }
  return turns;
}

/** The places of the turns of a stored conversation, by their keys. `siblings` are by the id of their message. */
export function placesOf(
  messages: readonly KeptMessage[],
  siblings: ReadonlyMap<string, Siblings>,
): ReadonlyMap<string, TurnPlace> {
  const places = new Map<string, TurnPlace>();
  let key: string | undefined;
  for (const { id, role, sequence, clientRequestId = id, parts, steers } of messages) {
    if (role === "user" && !steers) places.set((key = clientRequestId), { sequence, questionId: id, siblings: siblings.get(id) });
    const place = key === undefined ? undefined : places.get(key);
    const isSummary = (parts as readonly KeptPart[])[0]?.type === "summary";
    if (role === "assistant" && !isSummary && place) places.set(key!, { ...place, answerId: id });
  }
  return places;
}

/** The words of an answer. */
export function wordsOf(pieces: readonly Piece[]): string {
  return pieces.flatMap((piece) => (piece.type === "text" ? [piece.text] : [])).join("\n\n");
}

function textOf(parts: readonly KeptPart[]): string {
  return parts.flatMap(({ type, text }) => (type === "text" && text ? [text] : [])).join("\n\n");
}

function toFile({ type, reference = "", name = "file", mimeType = "", size = 0 }: KeptPart): SentFile[] {
  if (type === "media_ref") return [{ kind: "media", reference, name, mimeType, size }];
  return type === "file_ref" ? [{ kind: "attachment", reference, name, mimeType, size }] : [];
}

function addPart(
  pieces: Piece[],
  { type, text = "", callId = "", name = "tool", arguments: args, decision, result }: KeptPart,
  id: string,
) {
  if ((type === "text" || type === "thinking") && text !== "") pieces.push({ type, id, text });
  if (type === "summary") pieces.push({ type, id, text });
  if (type === "tool_call") pieces.push({ type: "tool", id: callId, name, arguments: args, decision });
  if (type === "tool_result") answerCall(pieces, callId, result);
}

/** Adds an event of a running turn to its parts. */
export function addMessage(pieces: Piece[], { id, type, delta = "", content }: QueryMessage): void {
  switch (type) {
    case "text":
    case "thinking": {
      const last = pieces.at(-1);
      if (last?.type === type && last.id === id) last.text += delta;
      else pieces.push({ type, id, text: delta });
      return;
    }
    case "tool_call": {
      const call = content as { readonly callId: string; readonly name: string; readonly arguments: unknown };
      pieces.push({ type: "tool", id: call.callId, name: call.name, arguments: call.arguments });
      return;
    }
    case "tool_result": {
      const { callId, result } = content as { readonly callId: string; readonly result: ToolResult };
      return answerCall(pieces, callId, result);
    }
    case "summary":
      pieces.push({ type, id, text: (content as { readonly text: string }).text });
      return;
    case "delivery":
      pieces.push({ type: "delivery", id, delivery: content as Delivery });
      return;
    case "steering":
      pieces.push({ type, id, text: (content as { readonly text: string }).text });
      return;
    case "approval": {
      const { callId, toolCallId = callId, status } = content;
      const call = openCall(pieces, toolCallId);
      if (!call) return;
      call.isWaiting = status === "waiting";
      if (status !== "waiting") call.decision = content;
    }
  }
}

function answerCall(pieces: Piece[], callId: string, result: ToolResult | undefined): void {
  const call = openCall(pieces, callId);
  if (call) call.result = result;
}

/** Call ids may repeat in later model calls: the last call without a result is used. */
function openCall(pieces: readonly Piece[], callId: string): Extract<Piece, { readonly type: "tool" }> | undefined {
  const call = pieces.findLast((piece) => piece.type === "tool" && piece.id === callId && piece.result === undefined);
  return call?.type === "tool" ? call : undefined;
}
