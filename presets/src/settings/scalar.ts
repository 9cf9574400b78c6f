import * as v from "valibot";

export function text() {
  return v.pipe(v.string(), v.nonEmpty());
}

/** An origin of web pages. */
export function origin() {
  return v.pipe(v.string(), v.check(isOrigin, "an origin, such as https://app.example"));
}

function isOrigin(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.origin === text;
}
