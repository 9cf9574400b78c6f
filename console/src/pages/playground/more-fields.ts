export interface ReadFields {
  readonly fields: Readonly<Record<string, unknown>>;
  /** What is wrong with the text. */
  readonly problem?: string;
}

/** Other parts of the page set them. */
const TAKEN = ["model", "messages", "stream", "system", "tools"];

/** Reads further fields of a request. An empty text is no fields. */
export function readMoreFields(text: string): ReadFields {
  if (text.trim() === "") return { fields: {} };
  const value = parsed(text);
  if (value === undefined) return { fields: {}, problem: "Invalid JSON" };
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return { fields: {}, problem: 'Write a JSON object: { "top_p": 0.9 }' };
  const taken = TAKEN.filter((name) => Object.hasOwn(value, name));
  if (taken.length > 0) return { fields: {}, problem: `Set on this page: ${taken.join(", ")}` };
  return { fields: value as Readonly<Record<string, unknown>> };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
