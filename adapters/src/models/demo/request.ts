/** The parts of a Messages request that the demo model uses. */
export interface DemoRequest {
  readonly model?: string;
  readonly max_tokens?: number | null;
  readonly messages: readonly unknown[];
  /** The following fields are untrusted and may have any type. */
  readonly stream?: unknown;
  readonly tools?: unknown;
  readonly tool_choice?: unknown;
  readonly output_config?: unknown;
}

/** A request body, or a message for its author about an error in it. */
export function parseDemoRequest(body: string): DemoRequest | string {
  const value = parseJson(body);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return "The body is not a JSON object";
  const { model, messages, max_tokens: limit } = value as Readonly<Record<string, unknown>>;
  if (model !== undefined && (typeof model !== "string" || model === "")) return "model: expected a string that is not empty";
  if (!Array.isArray(messages) || messages.length === 0) return "messages: expected at least one message";
  if (limit !== undefined && limit !== null && !(Number.isInteger(limit) && (limit as number) > 0))
    return "max_tokens: expected a positive whole number";
  return value as DemoRequest;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
