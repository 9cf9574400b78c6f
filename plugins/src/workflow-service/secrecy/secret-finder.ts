import { type SecretForm, secretForms } from "./secret-forms.ts";
import { TextTree } from "./text-tree.ts";

/** A secret that is looked for. */
export interface KnownSecret {
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
