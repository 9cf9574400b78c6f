import { isRecordId } from "../records/record-text.ts";

/** The port's law of ids, keys and names. Throws TypeError saying which of them broke it, without repeating it. */
export function checkName(what: string, name: string): string {
  if (isRecordId(name)) return name;
  throw new TypeError(`${what} is 1-512 well-formed characters without U+0000`);
}

/** Work's input as JSON. Throws TypeError when it is no JSON object; the message does not repeat it. */
export function toInputText(input: object): string {
  const text = toJsonText("The input of work", input);
  if (!text?.startsWith("{")) throw new TypeError("The input of work must be a JSON object");
  return text;
}

/** A value as JSON, undefined as what JSON leaves out. Throws TypeError when it cannot be one; the message does not repeat it. */
export function toJsonText(what: string, value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    // Without its cause: a message of `toJSON` may quote what it was called on.
    throw new TypeError(`${what} is not JSON`);
  }
}

/** What `toJsonText` wrote. */
export function fromJsonText(text: string | undefined): unknown {
  return text === undefined ? undefined : JSON.parse(text);
}

/** What was thrown, as a step remembers it and a status tells it. Never throws, whatever was thrown. */
export function describeThrown(thrown: unknown): { readonly name: string; readonly message: string } {
  try {
    if (thrown instanceof Error) return { name: String(thrown.name), message: String(thrown.message) };
    return { name: "Error", message: String(thrown) };
  } catch {
    return { name: "Error", message: "What was thrown cannot be described" };
  }
}

/** The error that a remembered step throws again. */
export function reviveThrown(text: string | undefined): Error {
  const { name, message } = fromJsonText(text) as ReturnType<typeof describeThrown>;
  return Object.assign(new Error(message), { name });
}
