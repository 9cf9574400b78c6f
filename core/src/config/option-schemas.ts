import * as v from "valibot";
import { parseDuration } from "../kit/time-text.ts";
import { secret } from "./shape.ts";

/** The longest wait that a Node.js timer supports. */
const LONGEST_WAIT_MS = 2 ** 31 - 1;

/** A time to wait, in whole milliseconds. At most the longest wait of a timer. */
export function milliseconds(least: number) {
  return v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(LONGEST_WAIT_MS));
}

/** A duration that `parseDuration` reads, from `least` to `most`. `such` has examples, for people. */
export function duration(least: string, most: string, such: string) {
  const [from, to] = [parseDuration(least)!, parseDuration(most)!];
  const fits = (written: string) => {
    const ms = parseDuration(written);
    return ms !== undefined && ms >= from && ms <= to;
  };
  return v.pipe(v.string(), v.check(fits, `a duration from ${least} to ${most}, such as ${such}`));
}

const FOR_EVER = "forever";
const LEAST_KEPT_MS = 60 * 60_000;
/** A hundred years. For longer times, use `forever`. */
const MOST_KEPT_MS = 36_525 * 24 * 60 * 60_000;

/** How long something is kept: a duration that `parseDuration` reads, or `forever`. `keepingMs` converts it. */
export function keeping() {
  return v.pipe(v.string(), v.check(isKeeping, 'a duration of at least an hour, such as 12h or 90d, or "forever"'));
}

/** Milliseconds of a text that `keeping` accepts. Undefined for `forever`. */
export function keepingMs(written: string): number | undefined {
  return written === FOR_EVER ? undefined : parseDuration(written);
}

function isKeeping(written: string): boolean {
  if (written === FOR_EVER) return true;
  const ms = parseDuration(written);
  return ms !== undefined && ms >= LEAST_KEPT_MS && ms <= MOST_KEPT_MS;
}

/** An ID that people choose in a configuration, of a provider or an MCP server. */
export function settingName() {
  return v.pipe(v.string(), v.regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, "1-64 characters: letters, digits, _, . and -"));
}

/** A secret that is one word of a header: a key or a token. */
export function keySecret() {
  return v.pipe(
    secret(),
    v.check((key) => /^[\x21-\x7e]+$/.test(key.reveal()), "a secret of visible ASCII characters, without spaces or line breaks"),
  );
}

/** A secret that is a whole header's value. */
export function headerSecret() {
  return v.pipe(
    secret(),
    v.check(
      (value) => /^[\t\x20-\x7e\x80-\xff]+$/.test(value.reveal()),
      "a secret that is a valid header value, without line breaks",
    ),
  );
}

/**
 * The options of one part, out of a group of settings that also contains those of others: the keys of `entries`. A preset spreads the
 * entries of a part into its schema, and passes the settings on with this function.
 */
export function optionsOf<const E extends v.ObjectEntries, const T extends object>(
  entries: E,
  settings: T,
): Pick<T, keyof E & keyof T> {
  return Object.fromEntries(Object.entries(settings).filter(([key]) => Object.hasOwn(entries, key))) as Pick<
    T,
    keyof E & keyof T
  >;
}
