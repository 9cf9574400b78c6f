/** Thrown when a rendered prompt would pass the characters that it may have. */
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
 * The prompt of an event (specification 4.4): each `{{key}}` of the template becomes the payload's own top-level field of that very name.
 * Texts, numbers and booleans become text, objects and arrays JSON; where the field is missing or null, the placeholder stays. What was put
 * in is not looked at again. Lone surrogates become U+FFFD, so that every store and every provider takes the result.
 *
 * Throws PromptTooLong once the result passes `most` characters, before it is put together.
 */
export function renderTemplate(template: string, payload: Readonly<Record<string, unknown>>, most: number): string {
  // 32,768 characters hold 6,500 placeholders: an object that all of them name is written once, and a long field is not copied to find out
  // that the result is too long.
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

/** The fields that a template names, in the order in which they first stand there: what `renderTemplate` looks for in a payload. */
export function templateFields(template: string): readonly string[] {
  return [...new Set([...template.matchAll(PLACEHOLDER)].map(([, key = ""]) => key))];
}

/** Undefined for a field that is missing or null. What an object inherits is no field. */
function fieldText(payload: Readonly<Record<string, unknown>>, key: string): string | undefined {
  const value = Object.hasOwn(payload, key) ? payload[key] : undefined;
  if (value === undefined || value === null) return undefined;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
