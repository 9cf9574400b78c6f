import type { CollectionShape } from "./collection-shape.ts";
import { isStorableText, readField } from "./field-path.ts";

const ID_LENGTH = 512;
/** SQLite's JSON functions refuse deeper nesting, so all adapters refuse it. */
const NESTING = 1000;

/** A record as it is stored, and as it will be read. */
export interface RecordText {
  readonly text: string;
  readonly value: object;
}

/** Whether an ID is valid: 1-512 characters that every store can keep. */
export function isRecordId(id: string): boolean {
  return typeof id === "string" && id.length > 0 && id.length <= ID_LENGTH && isStorableText(id);
}

/**
 * Write a record as JSON. Throws TypeError if it is not a JSON object, nests too deep, or has an indexed field that cannot be
 * ordered. No message contains the record.
 */
export function toRecordText(shape: CollectionShape, given: object): RecordText {
  const text: string | undefined = JSON.stringify(given);
  if (!text?.startsWith("{")) throw new TypeError(`A record of ${shape.name} must be a JSON object`);
  if (nestsTooDeep(text)) throw new TypeError(`A record of ${shape.name} nests deeper than ${NESTING}`);
  const value = JSON.parse(text) as object;
  for (const field of shape.fields) {
    if (!isIndexable(readField(value, field))) {
      throw new TypeError(`The indexed field ${field} of a record of ${shape.name} must be a text, a number, a boolean or null`);
    }
  }
  return { text, value };
}

/**
 * Only the text, for a record that is not read at once. For a plain object with plain fields, the JSON result is known without
 * parsing it again. Almost every record is one.
 */
export function toText(shape: CollectionShape, given: object): string {
  const isPlain = !("toJSON" in given) && shape.fields.every((field) => isPlainField(given, field));
  if (!isPlain) return toRecordText(shape, given).text;
  const text = JSON.stringify(given);
  if (!text.startsWith("{")) throw new TypeError(`A record of ${shape.name} must be a JSON object`);
  if (nestsTooDeep(text)) throw new TypeError(`A record of ${shape.name} nests deeper than ${NESTING}`);
  return text;
}

/** Whether an indexed field is a top-level field with a value that JSON keeps unchanged and an index can hold. */
function isPlainField(given: object, field: string): boolean {
  if (field.includes(".")) return false;
  const value = (given as Record<string, unknown>)[field];
  if (typeof value === "string") return isStorableText(value);
  return value === undefined || value === null || typeof value === "boolean" || Number.isFinite(value);
}

function isIndexable(value: unknown): boolean {
  if (typeof value === "string") return isStorableText(value);
  return value === null || typeof value !== "object";
}

function nestsTooDeep(text: string): boolean {
  // Each level needs two characters, so almost no record is scanned.
  if (text.length <= NESTING * 2) return false;
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (quoted) {
      if (code === 0x5c) at++;
      else if (code === 0x22) quoted = false;
    } else if (code === 0x22) quoted = true;
    else if (code === 0x7b || code === 0x5b) {
      if (++depth > NESTING) return true;
    } else if (code === 0x7d || code === 0x5d) depth--;
  }
  return false;
}
