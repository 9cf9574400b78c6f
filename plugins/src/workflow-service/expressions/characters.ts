import type { Environment } from "@marcbachmann/cel-js/evaluator";
import { Refused } from "./cel-value.ts";
import type { Spend } from "./library-function.ts";

/** Functions of CEL that count characters. The library counts a character beyond 16 bits as two. */
export function registerCharacters(language: Environment, spend: Spend): void {
  const add = (signature: string, call: (text: string, ...rest: any[]) => unknown) =>
    language.registerFunction(signature, (text: string, ...rest: unknown[]) => {
      if (isWide(text)) spend(text.length >> 4);
      return call(text, ...rest);
    });
  add("string.characterSubstring(int): string", (text, start: bigint) => text.slice(unitAt(text, start)));
  add("string.characterSubstring(int, int): string", (text, start: bigint, end: bigint) => {
    if (end < start) throw outOfRange();
    return text.slice(unitAt(text, start), unitAt(text, end));
  });
  add("string.indexOfCharacters(string): int", (text, part: string) => charactersBefore(text, text.indexOf(part)));
  add("string.indexOfCharacters(string, int): int", (text, part: string, from: bigint) =>
    part === "" ? from : charactersBefore(text, text.indexOf(part, unitWithin(text, from))),
  );
  add("string.lastIndexOfCharacters(string): int", (text, part: string) => charactersBefore(text, text.lastIndexOf(part)));
  add("string.lastIndexOfCharacters(string, int): int", (text, part: string, from: bigint) =>
    part === "" ? from : charactersBefore(text, text.lastIndexOf(part, unitWithin(text, from))),
  );
  add("string.characterSplit(string): list<string>", (text, separator: string) => partsOf(text, separator));
  add("string.characterSplit(string, int): list<string>", (text, separator: string, limit: bigint) => {
    const parts = partsOf(text, separator);
    if (limit < 0n || parts.length <= limit) return parts;
    const most = Number(limit);
    return most === 0 ? [] : [...parts.slice(0, most - 1), parts.slice(most - 1).join(separator)];
  });
}

/** The parts of a text between the separators. An empty separator is between all characters. */
export function partsOf(text: string, separator: string): string[] {
  return separator === "" ? [...text] : text.split(separator);
}

/** The character at a position, or an empty text at the end. Throws Refused for other positions. */
export function characterAt(text: string, position: bigint): string {
  const unit = unitAt(text, position);
  return unit === text.length ? "" : String.fromCodePoint(text.codePointAt(unit)!);
}

/** Whether a text has characters beyond 16 bits, which JavaScript counts as two. */
function isWide(text: string): boolean {
  return /[\uD800-\uDBFF]/.test(text);
}

/** The UTF-16 unit at which a character begins; the end of the text is a position, too. */
function unitAt(text: string, position: bigint): number {
  if (position < 0n || position > text.length) throw outOfRange();
  if (!isWide(text)) return Number(position);
  let unit = 0;
  for (let left = Number(position); left > 0; left--) {
    if (unit >= text.length) throw outOfRange();
    unit += text.codePointAt(unit)! > 0xffff ? 2 : 1;
  }
  return unit;
}

/** As `unitAt`, without the end of the text. */
function unitWithin(text: string, position: bigint): number {
  const unit = unitAt(text, position);
  if (unit === text.length) throw outOfRange();
  return unit;
}

/** The number of characters before a UTF-16 unit; -1 stays. */
function charactersBefore(text: string, unit: number): bigint {
  if (unit <= 0 || !isWide(text)) return BigInt(unit);
  let count = 0;
  for (let at = 0; at < unit; count++) at += text.codePointAt(at)! > 0xffff ? 2 : 1;
  return BigInt(count);
}

function outOfRange(): Refused {
  return new Refused("an index is out of range");
}
