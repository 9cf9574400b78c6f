/** One way in which a secret is written inside other texts. */
export interface SecretForm {
  readonly text: string;
  /** Whether the character before it carries a part of the secret, too. */
  readonly isShared: { readonly before: boolean; readonly after: boolean };
  /** Whether it is base64, behind which padding may stand. */
  readonly isEncoded: boolean;
}

/** Longer texts are looked for as they are: their other forms would take many times their memory. */
export const FORMS_CHARACTERS = 4096;

const ALONE = { before: false, after: false };

/**
 * All forms in which a secret is found: as it is, in JSON, in URLs and forms, in base64 and base64url at any place of a longer text, in hex.
 * Each is told once.
 */
export function secretForms(secret: string): readonly SecretForm[] {
  const forms = new Map<string, SecretForm>();
  const add = (form: SecretForm) => {
    if (form.text.length > 0 && !forms.has(form.text)) forms.set(form.text, form);
  };
  const addPlain = (text: string) => add({ text, isShared: ALONE, isEncoded: false });
  addPlain(secret);
  addPlain(JSON.stringify(secret).slice(1, -1));
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

/** As paths and queries have it, and as forms do; in letters of either case behind `%`. None where that changes nothing. */
function inUrls(text: string): readonly string[] {
  if (/^[\w.-]*$/.test(text)) return [];
  // A lone surrogate has no such form.
  const known = text.toWellFormed();
  const escaped = [encodeURIComponent(known), new URLSearchParams([["", known]]).toString().slice(1)];
  return escaped.flatMap((each) => [each, each.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase())]);
}

/**
 * What base64 makes of these bytes wherever they stand in a longer text: behind a multiple of three bytes, one more, or two more. Characters
 * that neighbours have a part in are different each time: the form has those between them.
 */
function encodedForms(bytes: Buffer): readonly SecretForm[] {
  const shifted = Buffer.concat([Buffer.alloc(2), bytes]);
  return [0, 1, 2].map((offset) => {
    const encoded = shifted
      .subarray(2 - offset)
      .toString("base64")
      .replace(/=+$/, "");
    const [skipped, isLast] = [[0, 2, 3][offset]!, (offset + bytes.length) % 3 === 0];
    return {
      text: encoded.slice(skipped, isLast ? undefined : -1),
      isShared: { before: offset > 0, after: !isLast },
      isEncoded: true,
    };
  });
}
