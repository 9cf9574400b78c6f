import { isRecordId } from "../records/record-text.ts";

/** The port's rule for IDs, keys and names. Throws TypeError that names the invalid one, without its value. */
export function checkName(what: string, name: string): string {
  if (isRecordId(name)) return name;
  throw new TypeError(`${what} is 1-512 well-formed characters without U+0000`);
}

/** Work's input as JSON. Throws TypeError if it is not a JSON object. The message does not contain the input. */
export function toInputText(input: object): string {
  const text = toJsonText("The input of work", input);
  if (!text?.startsWith("{")) throw new TypeError("The input of work must be a JSON object");
  return text;
}

/**
 * A value as JSON; undefined if JSON leaves it out. Throws TypeError if it is not JSON. The message does not contain the value.
 */
export function toJsonText(what: string, value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    // Without its cause: a message of `toJSON` may quote the value.
    throw new TypeError(`${what} is not JSON`);
  }
}

/** Parses the result of `toJsonText`. */
export function fromJsonText(text: string | undefined): unknown {
  return text === undefined ? undefined : JSON.parse(text);
}

/** An error as a step stores it and a status shows it. Never throws, for any thrown value. */
export function describeThrown(thrown: unknown): { readonly name: string; readonly message: string } {
  try {
    if (thrown instanceof Error) return { name: String(thrown.name), message: String(thrown.message) };
    return { name: "Error", message: String(thrown) };
  } catch {
    return { name: "Error", message: "The thrown value cannot be described" };
  }
}

/** The error that a stored step throws again. */
export function reviveThrown(text: string | undefined): Error {
  const { name, message } = fromJsonText(text) as ReturnType<typeof describeThrown>;
  return Object.assign(new Error(message), { name });
}
