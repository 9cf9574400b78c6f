/** Digits of the smallest whole number that a JavaScript number may not hold exactly. */
const FEWEST_DIGITS = 16;
const MANY_DIGITS = /\d{16}/;
/** A whole number with that many digits or more, also in a text. Decimals, such as those of embeddings, do not match. */
const LONG_WHOLE = /(?:^|[\s,:[])-?\d{16,}(?=[\s,\]}]|$)/;

/**
 * Parses a JSON text that was made outside of this product. As `JSON.parse`, except that a whole number beyond ±(2^53 - 1) becomes a text of its
 * digits, because a JavaScript number would change them. Numbers with decimals or an exponent are read as `JSON.parse` reads them.
 * Throws SyntaxError for invalid JSON.
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (!LONG_WHOLE.test(text)) return value;
  const quoted = quoteLongNumbers(text, (number) => (isLargeWhole(number) ? number : undefined));
  return quoted === undefined ? value : JSON.parse(quoted);
}

/**
 * A JSON text in which long numbers are strings: `replace` is called with each number that may have 16 digits or more, and returns the content
 * of its string, or undefined to keep it. Returns undefined if all are kept. The text must be valid JSON.
 */
export function quoteLongNumbers(json: string, replace: (number: string) => string | undefined): string | undefined {
  if (!MANY_DIGITS.test(json)) return undefined;
  let made = "";
  let kept = 0;
  for (let at = 0; at < json.length;) {
    const string = json.indexOf('"', at);
    const end = string < 0 ? json.length : string;
    const between = end - at < FEWEST_DIGITS ? "" : json.slice(at, end);
    for (const { 0: number, index } of between.matchAll(/-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g)) {
      const replaced = number.length < FEWEST_DIGITS ? undefined : replace(number);
      if (replaced === undefined) continue;
      made += `${json.slice(kept, at + index)}"${replaced}"`;
      kept = at + index + number.length;
    }
    at = string < 0 ? json.length : endOfString(json, string) + 1;
  }
  return kept === 0 ? undefined : made + json.slice(kept);
}

/**
 * Whether a JSON text that was written from JavaScript numbers has a whole number beyond ±(2^53 - 1), which may be another one than the one
 * that was meant.
 */
export function hasInexactWhole(json: string): boolean {
  return quoteLongNumbers(json, (number) => (isUnsafeWhole(Number(number)) ? number : undefined)) !== undefined;
}

const isUnsafeWhole = (number: number): boolean => Number.isInteger(number) && !Number.isSafeInteger(number);

function isLargeWhole(number: string): boolean {
  return /^-?\d+$/.test(number) && !Number.isSafeInteger(Number(number));
}

/** The position of the quotation mark that ends the string. */
function endOfString(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); ; end = json.indexOf('"', end + 1)) {
    let before = end;
    while (json[before - 1] === "\\") before--;
    if ((end - before) % 2 === 0) return end;
  }
}

/**
 * Whether lists and objects of a JSON value nest deeper than `most`: `1` has no level, `[1]` one. Many operations on JSON recurse
 * (`JSON.stringify`, `structuredClone`, schemas) and overflow the stack at some thousands of levels. It looks no deeper than
 * `most`. A value that occurs in several places is visited in each of them: limit the size of values that are not trees first.
 */
export function hasMoreLevels(value: unknown, most: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (most === 0) return true;
  if (Array.isArray(value)) {
    for (const each of value) if (hasMoreLevels(each, most - 1)) return true;
    return false;
  }
  for (const key in value) if (hasMoreLevels((value as Record<string, unknown>)[key], most - 1)) return true;
  return false;
}
