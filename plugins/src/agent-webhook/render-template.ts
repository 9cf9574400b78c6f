/** Thrown when a rendered prompt would be longer than allowed. */
export class PromptTooLong extends Error {
  override readonly name = "PromptTooLong";
  readonly most: number;

  constructor(most: number) {
    super(`The prompt would be longer than ${most} characters`);
    this.most = most;
  }
}

const PLACEHOLDER = /\{\{([^{}]+)\}\}/g;

/**
 * The prompt of an event (specification 4.4): each `{{key}}` of the template is replaced by the payload's own top-level field of exactly
 * this name. Texts, numbers and booleans become text; objects and arrays become JSON. If the field is missing or null, the placeholder
 * stays. Placeholders inside inserted values are not replaced. Lone surrogates become U+FFFD, so that every store and provider accepts the
 * result.
 *
 * Throws PromptTooLong if the result would have more than `most` characters, before it builds the result.
 */
export function renderTemplate(template: string, payload: Readonly<Record<string, unknown>>, most: number): string {
  // A template of 32,768 characters can have 6,500 placeholders. An object that all of them name is serialized once. A long field is not
  // copied only to find that the result is too long.
  const texts = new Map<string, string | undefined>();
  const pieces: string[] = [];
  let length = 0;
  const add = (piece: string): void => {
    length += piece.length;
    if (length > most) throw new PromptTooLong(most);
    pieces.push(piece);
  };

  let end = 0;
  for (const { 0: placeholder, 1: key = "", index } of template.matchAll(PLACEHOLDER)) {
    if (!texts.has(key)) texts.set(key, fieldText(payload, key));
    add(template.slice(end, index));
    add(texts.get(key) ?? placeholder);
    end = index + placeholder.length;
  }
  add(template.slice(end));
  return pieces.join("").toWellFormed();
}

/** The fields that a template names, in the order of their first occurrence. `renderTemplate` reads exactly these from a payload. */
export function templateFields(template: string): readonly string[] {
  return [...new Set([...template.matchAll(PLACEHOLDER)].map(([, key = ""]) => key))];
}

/** Undefined if the field is missing or null. Inherited properties are not fields. */
function fieldText(payload: Readonly<Record<string, unknown>>, key: string): string | undefined {
  const value = Object.hasOwn(payload, key) ? payload[key] : undefined;
  if (value === undefined || value === null) return undefined;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
