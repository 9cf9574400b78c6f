import { secret } from "@portico/core";
import * as v from "valibot";

/** The longest wait that a Node.js timer supports. */
const LONGEST_WAIT_MS = 2 ** 31 - 1;

/** An id of a provider, a binding or an MCP server. */
export function name() {
  return v.pipe(v.string(), v.regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, "1-64 characters: letters, digits, _, . and -"));
}

export function milliseconds(least: number) {
  return v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(LONGEST_WAIT_MS));
}

export function text() {
  return v.pipe(v.string(), v.nonEmpty());
}

/** An origin of web pages. */
export function origin() {
  return v.pipe(v.string(), v.check(isOrigin, "an origin, such as https://app.example"));
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

function isOrigin(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.origin === text;
}
