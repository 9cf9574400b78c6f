import { Buffer } from "node:buffer";
import type { Finding, SecretFinder } from "./secret-finder.ts";

/** The text that replaces a secret. */
export const MASKED = "***";

/** Returns a value without secrets: a copy if a secret was found, otherwise the value itself. */
export type Mask = <T>(value: T) => T;

/** Masks what a finder finds in the texts, numbers and names of a JSON value. */
export function maskJson<T>(value: T, finder: SecretFinder): T {
  return finder.isEmpty ? value : (masked(value, finder) as T);
}

/** Masks the secrets in a text. */
export function maskText(text: string, finder: SecretFinder): string {
  if (!finder.isIn(text)) return text;
  let shown = "";
  let from = 0;
  for (const { start, end } of joined(finder.find(text))) {
    shown += text.slice(from, start) + MASKED;
    from = end;
  }
  return shown + text.slice(from);
}

/** Characters that a secret's form may have around it: one before and one after it, and two of padding. */
const BORDERS = 4;

/** Masks the secrets in the beginning of a longer text. Its end is removed where it may have the first part of a secret. */
export function maskBeginning(text: string, finder: SecretFinder): string {
  if (finder.isEmpty) return text;
  const end = text.length - finder.longest - BORDERS;
  let shown = "";
  let from = 0;
  for (const range of joined(finder.find(text))) {
    if (range.start >= end) break;
    shown += text.slice(from, range.start) + MASKED;
    from = range.end;
  }
  return from < end ? shown + text.slice(from, end) : shown;
}

/** Merges overlapping findings into one range. */
function* joined(findings: Iterable<Finding>): Generator<{ readonly start: number; readonly end: number }, void> {
  let range: { start: number; end: number } | undefined;
  for (const { start, end } of findings) {
    if (range && start < range.end) {
      range.start = Math.min(range.start, start);
      range.end = Math.max(range.end, end);
    } else {
      if (range) yield range;
      range = { start, end };
    }
  }
  if (range) yield range;
}

function masked(value: unknown, finder: SecretFinder): unknown {
  if (typeof value === "string") return maskText(value, finder);
  if (typeof value === "number") return finder.has(String(value)) ? MASKED : value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map((each) => masked(each, finder));
    return items.every((each, at) => each === value[at]) ? value : items;
  }
  const entries = Object.entries(value);
  const shown = entries.map(([key, each]) => [maskText(key, finder), masked(each, finder)] as const);
  return shown.every(([key, each], at) => key === entries[at]![0] && each === entries[at]![1])
    ? value
    : Object.fromEntries(shown);
}

/** Bytes that are searched at once, at least. */
const PIECE = 64 * 1024;

/**
 * Masks the secrets in the bytes of a text, also across pieces of the source. Its memory grows with the longest secret, and not with the
 * source. All encodings that contain ASCII work. Secrets with other characters are found in UTF-8.
 */
export async function* maskBytes(source: AsyncIterable<Uint8Array>, finder: SecretFinder): AsyncGenerator<Uint8Array, void> {
  let pieces: string[] = [];
  let size = 0;
  /** The characters at the beginning of `pieces` that belong to a secret which is already masked. */
  let covered = 0;
  const masked = (isEnd: boolean): Buffer => {
    const text = pieces.join("");
    // What begins later may go on in the next piece.
    const end = isEnd ? text.length : Math.max(0, text.length - finder.longest - BORDERS);
    let shown = "";
    for (const range of joined(finder.find(text))) {
      if (range.start >= end) break;
      if (range.start >= covered) shown += text.slice(covered, range.start) + MASKED;
      covered = Math.max(covered, range.end);
    }
    if (covered < end) shown += text.slice(covered, end);
    covered = Math.max(0, covered - end);
    pieces = [text.slice(end)];
    size = text.length - end;
    return Buffer.from(shown, "latin1");
  };
  for await (const bytes of source) {
    pieces.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1"));
    size += bytes.length;
    // Few searches: each one begins with the rest of the one before.
    if (size >= Math.max(PIECE, 2 * finder.longest)) yield masked(false);
  }
  if (size > 0) yield masked(true);
}
