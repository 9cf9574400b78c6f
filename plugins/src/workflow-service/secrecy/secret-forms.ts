import { withoutEnd } from "@portico/core";

/** One form in which a secret occurs inside other texts. */
export interface SecretForm {
  readonly text: string;
  /** Whether the adjacent characters also encode a part of the secret. */
  readonly isShared: { readonly before: boolean; readonly after: boolean };
  /** Whether it is base64, which may be followed by padding. */
  readonly isEncoded: boolean;
}

/** Longer secrets are searched only in plain and JSON form, because all forms would take many times their memory. */
export const FORMS_CHARACTERS = 4096;

/** No name of a host is longer. */
const MOST_HOST_CHARACTERS = 253;

const ALONE = { before: false, after: false };

/**
 * All forms in which a secret is found: plain and in JSON, each also as UTF-8 bytes, as a part of a URL's host, in URLs and form data, in base64 and base64url at any offset of a longer text, and in
 * hex. Each form is returned once.
 */
export function secretForms(secret: string): readonly SecretForm[] {
  const forms = new Map<string, SecretForm>();
  const add = (form: SecretForm) => {
    if (form.text.length > 0 && !forms.has(form.text)) forms.set(form.text, form);
  };
  const addPlain = (text: string) => add({ text, isShared: ALONE, isEncoded: false });
  const inJson = JSON.stringify(secret).slice(1, -1);
  addPlain(secret);
  addPlain(inJson);
  addHosts(secret, addPlain);
  addOrigin(secret, addPlain);
  // Their UTF-8 as one character for each byte: how files are searched, and how some servers read headers.
  for (const text of [secret, inJson]) addPlain(Buffer.from(text).toString("latin1"));
  if (secret.length > FORMS_CHARACTERS) return [...forms.values()];
  for (const escaped of inUrls(secret)) addPlain(escaped);
  const bytes = Buffer.from(secret);
  for (const form of encodedForms(bytes)) {
    add(form);
    if (!/[+/]/.test(form.text)) continue;
    add({ ...form, text: form.text.replaceAll("+", "-").replaceAll("/", "_") });
    for (const escaped of inUrls(form.text)) add({ ...form, text: escaped });
  }
  const hex = bytes.toString("hex");
  addPlain(hex);
  addPlain(hex.toUpperCase());
  return [...forms.values()];
}

/** As URLs write it in a host: in lower case, and as a whole host also in Punycode. */
function addHosts(secret: string, add: (text: string) => void): void {
  if (secret.length > MOST_HOST_CHARACTERS) return;
  add(secret.toLowerCase());
  // A host of digits is an address, whose usual spelling has no digits of it.
  if (/[^\x00-\x7f]/.test(secret) && !/[/\\?#@:\s]/.test(secret)) add(URL.parse(`http://${secret}/`)?.hostname ?? "");
}

/** Errors of calls name the origin of an address. That of a secret address is a part of the secret. */
function addOrigin(secret: string, add: (text: string) => void): void {
  const url = /^https?:/i.test(secret) ? URL.parse(secret) : null;
  if (url) add(url.origin);
}

/** The percent-encoded forms for URLs and form data, with upper and lower case after `%`. Empty if encoding does not change the text. */
function inUrls(text: string): readonly string[] {
  if (/^[\w.-]*$/.test(text)) return [];
  // Lone surrogates cannot be percent-encoded.
  const known = text.toWellFormed();
  const escaped = [encodeURIComponent(known), new URLSearchParams([["", known]]).toString().slice(1)];
  return escaped.flatMap((each) => [each, each.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase())]);
}

/**
 * The base64 forms of these bytes inside longer data. The form depends on the offset modulo three. Characters at the borders also encode
 * adjacent bytes and vary, so the form contains only the characters between them.
 */
function encodedForms(bytes: Buffer): readonly SecretForm[] {
  const shifted = Buffer.concat([Buffer.alloc(2), bytes]);
  return [0, 1, 2].map((offset) => {
    const encoded = withoutEnd(shifted.subarray(2 - offset).toString("base64"), "=");
    const [skipped, isLast] = [[0, 2, 3][offset]!, (offset + bytes.length) % 3 === 0];
    return {
      text: encoded.slice(skipped, isLast ? undefined : -1),
      isShared: { before: offset > 0, after: !isLast },
      isEncoded: true,
    };
  });
}
