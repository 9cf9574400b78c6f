import type { RequestHead } from "../grammar/contract.ts";

/** Maximum characters of a key. Clients send UUIDs, which have 36. */
const IDEMPOTENCY_KEY_CHARACTERS = 256;

/** Visible ASCII without quotes, backslashes and commas. A comma would also join two headers. */
const PLAIN = /^[\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]+$/;
/** A text of structured fields (RFC 9651, section 3.3.3): printable ASCII, in which a backslash precedes quotes and backslashes. */
const QUOTED = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])+)"$/;

/**
 * The key of the header `Idempotency-Key` (https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header-07, section 2.1). The
 * draft has it in quotes. Many clients send it without, which means the same key. Undefined without the header, and `invalid` for a value that
 * is empty, longer than 256 characters or not such a text.
 */
export function idempotencyKeyOf(head: Pick<RequestHead, "header">): { readonly key: string } | "invalid" | undefined {
  const sent = head.header("idempotency-key");
  if (sent === undefined) return undefined;
  // Every character of a quoted key may have a backslash.
  if (sent.length > 2 * IDEMPOTENCY_KEY_CHARACTERS + 2) return "invalid";
  const text = sent.trim();
  const key = PLAIN.test(text) ? text : QUOTED.exec(text)?.[1]?.replaceAll(/\\(["\\])/g, "$1");
  return key === undefined || key.length > IDEMPOTENCY_KEY_CHARACTERS ? "invalid" : { key };
}
