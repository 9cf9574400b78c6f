export type Protocol = "messages" | "chat-completions";

export const PROTOCOLS = { messages: "Messages", "chat-completions": "Chat Completions" } as const;

/** An image of a user's message, in memory. */
export interface TurnImage {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: number;
  readonly base64: string;
  /** An address that shows it from memory. */
  readonly preview: string;
}

export interface TextPart {
  readonly type: "text";
  text: string;
}

export interface ThinkingPart {
  readonly type: "thinking";
  text: string;
  /** The provider checks it when the thought is sent back. A thought without it is sent back only if the provider accepts that. */
  signature?: string;
  /** A thought that the provider encrypted. */
  readonly data?: string;
}

export interface ToolPart {
  readonly type: "tool";
  readonly id: string;
  readonly name: string;
  /** JSON as text. It grows while the answer arrives. */
  arguments: string;
  /** What the user typed. */
  result: string;
  /** The tool failed, and the result says why. */
  isError?: boolean;
}

export type AnswerPart = TextPart | ThinkingPart | ToolPart;

/** Tokens of one call. `input` includes the tokens of the cache. A field is absent if it was not reported. */
export interface AnswerUsage {
  readonly input?: number;
  readonly cachedInput?: number;
  readonly cacheWrite?: number;
  readonly output?: number;
}

/** How a call went. */
export interface AnswerFacts {
  readonly outcome: "completed" | "stopped" | "failed";
  /** Milliseconds to the first part of a streamed answer. */
  readonly firstMs?: number;
  readonly totalMs: number;
  readonly usage: AnswerUsage;
  readonly stopReason?: string;
  /** Fields of the request that the conversion left out. */
  readonly dropped?: string;
  /** In `currency`. Absent if there is no price, or the usage was not reported. */
  readonly cost?: number;
  readonly currency?: string;
}

export interface UserTurn {
  readonly role: "user";
  readonly key: number;
  text: string;
  images: TurnImage[];
}

export interface AssistantTurn {
  readonly role: "assistant";
  readonly key: number;
  parts: AnswerPart[];
  /** Absent for an answer that is arriving, for a message that the user wrote, and for a model that was not called. */
  facts?: AnswerFacts;
  /** Who answers, if two models do. */
  by?: string;
  /** Why the call failed, if two models were called. */
  problem?: string;
  /** The answer of the second model to the same message. */
  beside?: AssistantTurn;
}

export type Turn = UserTurn | AssistantTurn;

/** The conversation of each of two models: each has its own answers. */
export function conversationsOf(turns: readonly Turn[]): readonly [readonly Turn[], readonly Turn[]] {
  return [turns, turns.map((turn) => (turn.role === "assistant" ? (turn.beside ?? turn) : turn))];
}

/** Whether the model would be told anything by this turn. */
export function isEmpty(turn: Turn): boolean {
  if (turn.role === "user") return turn.text.trim() === "" && turn.images.length === 0;
  return !turn.parts.some((part) => part.type === "tool" || (part.type === "text" && part.text.trim() !== ""));
}

/** The turns up to the last one that the model can answer: a message of the user, or the results of all tools. */
export function answerable(turns: readonly Turn[]): readonly Turn[] {
  const end = turns.findLastIndex((turn) => {
    if (turn.role === "user") return !isEmpty(turn);
    const tools = turn.parts.filter(({ type }) => type === "tool");
    return tools.length > 0 && withoutResult([turn]).length === 0;
  });
  return turns.slice(0, end + 1);
}

/** Tool calls whose result the user has not typed. */
export function withoutResult(turns: readonly Turn[]): readonly ToolPart[] {
  const parts = turns.flatMap((turn) => (turn.role === "assistant" ? turn.parts : []));
  return parts.filter((part): part is ToolPart => part.type === "tool" && part.result.trim() === "");
}

/** Why none of these conversations can be sent. Undefined if one can. */
export function whyNoneOf(conversations: readonly (readonly Turn[])[]): string | undefined {
  const open = conversations.find((turns) => withoutResult(turns).length > 0);
  if (open) return whyNot(open);
  const reasons = conversations.map(whyNot);
  return reasons.includes(undefined) ? undefined : reasons[0];
}

/** Why the conversation cannot be sent. Undefined if it can. */
export function whyNot(turns: readonly Turn[]): string | undefined {
  const [tool] = withoutResult(turns);
  if (tool) return `First type the result of ${tool.name}.`;
  const last = turns.findLast((turn) => !isEmpty(turn));
  if (!last) return "First write a message.";
  const hasResults = last.role === "assistant" && last.parts.some(({ type }) => type === "tool");
  return last.role === "user" || hasResults ? undefined : "Write the next message.";
}
