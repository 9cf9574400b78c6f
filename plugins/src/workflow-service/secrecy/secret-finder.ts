import { withoutEnd } from "@portico/core";

/** A secret that is looked for. */
interface KnownSecret {
  readonly text: string;
  /** Its name, if it is a configured secret. */
  readonly name?: string | undefined;
}

/** The position of a secret in a text, from `start` to before `end`. */
export interface Finding {
  readonly start: number;
  readonly end: number;
  readonly secret: KnownSecret;
  /** Whether it is in its plain form, not encoded. */
  readonly isPlain: boolean;
}

/** Shorter secrets are not masked: they would occur in most texts, and could be guessed. */
export const SHORTEST_SECRET = 4;

/** Number of characters that are hashed to exclude most positions of a text quickly. */
const KEY_CHARACTERS = 4;
const SIEVE = 4096;

interface Entry {
  readonly form: SecretForm;
  readonly secret: KnownSecret;
}

/**
 * Finds secrets in texts, in all their forms. Its time grows with the text, and hardly with the number of secrets. Secrets can be added at
 * any time. A finder with a `base` also finds the secrets of the base.
 */
export class SecretFinder {
  readonly #base: SecretFinder | undefined;
  readonly #entries = new TextTree<Entry>();
  /** A hash filter: 0 means that no secret begins with characters of this hash. */
  readonly #sieve = new Uint8Array(SIEVE);
  readonly #known = new Set<string>();
  #longest = 0;

  constructor(base?: SecretFinder) {
    this.#base = base;
  }

  /** Whether it has no secrets. */
  get isEmpty(): boolean {
    return this.#known.size === 0 && (this.#base?.isEmpty ?? true);
  }

  /** The characters of the longest form. */
  get longest(): number {
    return Math.max(this.#longest, this.#base?.longest ?? 0);
  }

  has(text: string): boolean {
    return this.#known.has(text) || (this.#base?.has(text) ?? false);
  }

  /** Adds a secret. Secrets that are too short or already known are ignored. */
  add(secret: KnownSecret): void {
    const { text } = secret;
    if (text.length < SHORTEST_SECRET || this.has(text)) return;
    this.#known.add(text);
    for (const form of secretForms(text)) {
      if (form.text.length < KEY_CHARACTERS) continue;
      this.#entries.add(form.text, { form, secret });
      this.#sieve[keyAt(form.text, 0)] = 1;
      this.#longest = Math.max(this.#longest, form.text.length);
    }
  }

  /** Whether a text contains a secret. */
  isIn(text: string): boolean {
    return this.#first(text, 0) < text.length;
  }

  /** All occurrences of secrets, from the left. At one position the longest comes first. Occurrences may overlap. */
  *find(text: string): Generator<Finding, void> {
    for (let at = this.#first(text, 0); at < text.length; at = this.#first(text, at + 1)) {
      const entries = this.#entriesAt(text, at).sort((one, other) => other.form.text.length - one.form.text.length);
      for (const entry of entries) yield findingOf(entry, text, at);
    }
  }

  /** The first position from `from` on at which a secret starts. The text's length if no secret follows. */
  #first(text: string, from: number): number {
    if (this.isEmpty) return text.length;
    const last = text.length - KEY_CHARACTERS;
    for (let at = from; at <= last; at++) {
      if (this.#mayBegin(keyAt(text, at)) && this.#entriesAt(text, at).length > 0) return at;
    }
    return text.length;
  }

  #mayBegin(key: number): boolean {
    return this.#sieve[key] === 1 || (this.#base !== undefined && this.#base.#mayBegin(key));
  }

  #entriesAt(text: string, at: number): Entry[] {
    return [...this.#entries.at(text, at), ...(this.#base ? this.#base.#entriesAt(text, at) : [])];
  }
}

/** Includes the characters at its borders that encode a part of the secret. */
function findingOf({ form, secret }: Entry, text: string, at: number): Finding {
  const { isShared, isEncoded } = form;
  const start = isShared.before && isEncodedAt(text, at - 1) ? at - 1 : at;
  let end = at + form.text.length;
  if (isShared.after && isEncodedAt(text, end)) end++;
  while (isEncoded && text[end] === "=") end++;
  return { start, end, secret, isPlain: form.text === secret.text };
}

function isEncodedAt(text: string, at: number): boolean {
  return /^[A-Za-z0-9+/_-]$/.test(text[at] ?? "");
}

/** The hash of the characters at a position, below SIEVE. */
function keyAt(text: string, at: number): number {
  const pair = Math.imul(text.charCodeAt(at), 0x9e3779b1) ^ Math.imul(text.charCodeAt(at + 1), 0x85ebca6b);
  const key = pair ^ Math.imul(text.charCodeAt(at + 2), 0xc2b2ae35) ^ Math.imul(text.charCodeAt(at + 3), 0x27d4eb2f);
  return (key ^ (key >>> 15)) & (SIEVE - 1);
}

/** One form in which a secret occurs inside other texts. */
interface SecretForm {
  readonly text: string;
  /** Whether the adjacent characters also encode a part of the secret. */
  readonly isShared: { readonly before: boolean; readonly after: boolean };
  /** Whether it is base64, which may be followed by padding. */
  readonly isEncoded: boolean;
}

/** Longer secrets are searched only in plain and JSON form, because all forms would take many times their memory. */
const FORMS_CHARACTERS = 4096;

/** No name of a host is longer. */
const MOST_HOST_CHARACTERS = 253;

const ALONE = { before: false, after: false };

/**
 * All forms in which a secret is found: plain and in JSON, each also as UTF-8 bytes, as a part of a URL's host, in URLs and form data, in base64 and base64url at any offset of a longer text, and in
 * hex. Each form is returned once.
 */
function secretForms(secret: string): readonly SecretForm[] {
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

interface Branch<T> {
  /** The characters between the parent branch and this branch. */
  label: string;
  value: T | undefined;
  /** Child branches by the first character of their label. */
  branches: Map<number, Branch<T>> | undefined;
}

/** A radix tree: values by texts. It finds the texts that begin at a position of another text. Common prefixes are stored once. */
class TextTree<T> {
  readonly #root: Branch<T> = { label: "", value: undefined, branches: undefined };

  /** Adds a value. A text that already exists keeps its value. */
  add(text: string, value: T): void {
    let branch = this.#root;
    let rest = text;
    while (rest !== "") {
      branch.branches ??= new Map();
      const next = branch.branches.get(rest.charCodeAt(0));
      if (!next) {
        branch.branches.set(rest.charCodeAt(0), { label: rest, value, branches: undefined });
        return;
      }
      const common = commonLength(next.label, rest);
      if (common < next.label.length) split(next, common);
      branch = next;
      rest = rest.slice(common);
    }
    branch.value ??= value;
  }

  /** Values of the texts that begin at a position, the shortest first. */
  *at(text: string, offset: number): Generator<T, void> {
    let branch: Branch<T> | undefined = this.#root;
    for (let end = offset; ;) {
      branch = branch.branches?.get(text.charCodeAt(end));
      // Slices are compared as blocks. `startsWith` compares single characters.
      if (!branch || text.slice(end, end + branch.label.length) !== branch.label) return;
      end += branch.label.length;
      if (branch.value !== undefined) yield branch.value;
    }
  }
}

/** Splits a branch after this number of characters. The rest becomes its child. */
function split<T>(branch: Branch<T>, length: number): void {
  const below: Branch<T> = { ...branch, label: branch.label.slice(length) };
  branch.label = branch.label.slice(0, length);
  branch.value = undefined;
  branch.branches = new Map([[below.label.charCodeAt(0), below]]);
}

function commonLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && length < other.length && one.charCodeAt(length) === other.charCodeAt(length)) length++;
  return length;
}
