import { ports } from "@portico/core";
import { type SensitivePaths, type JsonPath, namesIn, matchingPaths, textsIn, valueAt, withValuesAt } from "./sensitive-paths.ts";
import { SecretFinder } from "./secret-finder.ts";
import { MASKED, maskText } from "./mask.ts";

/** The data that is stored with a concealed value. */
export interface Hidden {
  /** Texts that contain configured secrets, by path: the names of the secrets, and the literal parts around them. */
  readonly references?: Concealed["references"] | undefined;
  /** All other hidden values: a sealed `SealedContent`. */
  readonly sealed?: string | undefined;
}

/** The stored form of a value. `hidden` is a separate member, so that data of callers cannot imitate it. */
export interface StoredForm<T = unknown> {
  readonly value: T;
  readonly hidden?: Hidden | undefined;
}

interface SealedContent {
  readonly values: readonly (readonly [JsonPath, unknown])[];
  readonly secrets: readonly string[];
}

interface StoringOptions {
  /** Finds the secrets; default: the configured secrets. */
  readonly finder?: SecretFinder | undefined;
  /** Places whose values are always secret. */
  readonly sensitive?: SensitivePaths | undefined;
}

/** The context in which values of a run are sealed, so that another run cannot open them. */
export function runContext(runId: string): string {
  return `workflow-run:${runId}`;
}

const NOTHING: SealedContent = { values: [], secrets: [] };

/** Keeps secrets out of stored values. Configured secrets are replaced by references. All other secrets are sealed. */
export class SecretKeeper {
  /** Finds the configured secrets, and their earlier values. */
  readonly finder = new SecretFinder();
  readonly #secrets = new Map<string, { text: string; name: string | undefined }>();
  readonly #sealing: ports.Sealing;

  constructor(secrets: Readonly<Record<string, string>>, sealing: ports.Sealing) {
    this.#sealing = sealing;
    for (const [name, text] of Object.entries(secrets)) this.#set(name, text);
  }

  /** The present values, by name. */
  get secrets(): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.#secrets].map(([name, { text }]) => [name, text]));
  }

  /**
   * Take other values of configured secrets. Secrets of other names are ignored, and those that are missing stay as they are. Earlier values stay
   * secret, for as long as the process runs: stored values and answers of others may contain them.
   */
  replace(next: Readonly<Record<string, string>>): void {
    for (const [name, text] of Object.entries(next)) {
      const present = this.#secrets.get(name);
      if (!present || present.text === text) continue;
      // A reference to the name would be opened with the new value.
      present.name = undefined;
      this.#set(name, text);
    }
  }

  #set(name: string, text: string): void {
    const secret = { name, text };
    this.#secrets.set(name, secret);
    this.finder.add(secret);
  }

  /**
   * Returns the form of a value that may be stored. Without secrets, it is the value itself. It must be opened in the same context. Throws SealingUnavailable.
   */
  async toStored<T>(context: string, value: T, { finder = this.finder, sensitive }: StoringOptions = {}): Promise<StoredForm<T>> {
    if (finder.isEmpty && !sensitive) return { value };
    const concealed = conceal(value, finder, sensitive);
    if (!concealed) return { value };
    const { shown, references, values, secrets } = concealed;
    const content: SealedContent = { values, secrets };
    const sealed = values.length > 0 ? await this.#sealing.seal(context, JSON.stringify(content)) : undefined;
    return {
      value: shown as T,
      hidden: { ...(references.length > 0 && { references }), ...(sealed !== undefined && { sealed }) },
    };
  }

  /**
   * Restores a value, and returns its secrets that are not configured. Throws NodeFailed if it cannot be opened, and SealingUnavailable.
   */
  async open<T>(
    context: string,
    { value, hidden }: StoredForm<T>,
  ): Promise<{ readonly value: T; readonly secrets: readonly string[] }> {
    if (!hidden) return { value, secrets: [] };
    const { references = [], sealed } = hidden;
    const content = sealed === undefined ? NOTHING : await this.#unseal(context, sealed);
    const whole = uncover({ shown: value, references, values: content.values }, (name) => this.#secretOf(name));
    return { value: whole as T, secrets: content.secrets };
  }

  /** The secret parts of a value, for another context. References stay names. Throws NodeFailed and SealingUnavailable. */
  async reseal(from: string, to: string, hidden: Hidden): Promise<Hidden> {
    if (hidden.sealed === undefined) return hidden;
    const content = await this.#unseal(from, hidden.sealed);
    return { ...hidden, sealed: await this.#sealing.seal(to, JSON.stringify(content)) };
  }

  #secretOf(name: string): string {
    const secret = this.#secrets.get(name);
    if (secret !== undefined) return secret.text;
    throw new ports.NodeFailed("secret_missing", `The secret ${name} is no longer configured`, { retryable: false });
  }

  async #unseal(context: string, sealed: string): Promise<SealedContent> {
    try {
      return JSON.parse(await this.#sealing.open(context, sealed)) as SealedContent;
    } catch (error) {
      throw error instanceof ports.SealBroken ? toNodeFailed(error) : error;
    }
  }
}

function toNodeFailed(cause: ports.SealBroken): ports.NodeFailed {
  return cause.reason === "other-key"
    ? new ports.NodeFailed("instance_key_changed", "The run holds values that were sealed under another instance key", {
        ...{ retryable: false, cause },
      })
    : new ports.NodeFailed("sealed_value_damaged", "A sealed value of the run cannot be opened", { retryable: false, cause });
}

/** A text as a list of literal parts and names of configured secrets. */
type ReferringText = readonly (string | { readonly secret: string })[];

/** A masked JSON value, and the data that restores the original. */
interface Concealed {
  readonly shown: unknown;
  /** Texts that contain configured secrets. */
  readonly references: readonly (readonly [JsonPath, ReferringText])[];
  /** All other hidden values. */
  readonly values: readonly (readonly [JsonPath, unknown])[];
  /** The secrets in `values`. They are masked from then on wherever these values are used. */
  readonly secrets: readonly string[];
}

/** Removes found secrets and the values at sensitive places from a JSON value. Undefined if there is nothing to remove. */
function conceal(value: unknown, finder: SecretFinder, sensitive: SensitivePaths = []): Concealed | undefined {
  const references: [JsonPath, ReferringText][] = [];
  const secrets = new Set<string>();
  const values: [JsonPath, unknown][] = matchingPaths(value, sensitive).map((path) => [path, valueAt(value, path)]);
  for (const [, each] of values) for (const text of textsIn(each)) secrets.add(text);
  const rest = withValuesAt(
    value,
    values.map(([path]) => [path, MASKED]),
  );

  /** The current path of the walk. It is copied only if a secret is found. */
  const way: (string | number)[] = [];
  const hide = (hidden: unknown): void => {
    values.push([[...way], hidden]);
    for (const text of [...textsIn(hidden), ...namesIn(hidden)]) {
      for (const { secret } of finder.find(text)) if (secret.name === undefined) secrets.add(secret.text);
    }
  };
  const walk = (each: unknown): unknown => {
    if (typeof each === "number") {
      if (!finder.has(String(each))) return each;
      hide(each);
      return MASKED;
    }
    if (typeof each === "string") {
      if (!finder.isIn(each)) return each;
      const referring = toReferringText(each, finder);
      if (referring) references.push([[...way], referring]);
      else hide(each);
      return maskText(each, finder);
    }
    if (typeof each !== "object" || each === null) return each;
    if (!Array.isArray(each) && Object.keys(each).some((key) => finder.isIn(key))) {
      // The original value, including the values at sensitive places inside it.
      hide(valueAt(value, way));
      return MASKED;
    }
    const entries = Object.entries(each).map(([key, inner]) => {
      way.push(Array.isArray(each) ? Number(key) : key);
      const entry = [key, walk(inner)] as const;
      way.pop();
      return entry;
    });
    if (entries.every(([key, inner]) => inner === (each as Record<string, unknown>)[key])) return each;
    return Array.isArray(each) ? entries.map(([, inner]) => inner) : Object.fromEntries(entries);
  };
  const shown = finder.isEmpty ? rest : walk(rest);
  return references.length + values.length > 0 ? { shown, references, values, secrets: [...secrets] } : undefined;
}

/** The text with names instead of configured secrets. Undefined if it contains other secrets, or secrets in an encoded form. */
function toReferringText(text: string, finder: SecretFinder): ReferringText | undefined {
  const parts: (string | { readonly secret: string })[] = [];
  let from = 0;
  for (const { start, end, secret, isPlain } of finder.find(text)) {
    if (secret.name === undefined || !isPlain) return undefined;
    // If several secrets begin at one position, the longest comes first. A secret inside another is covered by it.
    if (end <= from) continue;
    if (start < from) return undefined;
    if (start > from) parts.push(text.slice(from, start));
    parts.push({ secret: secret.name });
    from = end;
  }
  if (from < text.length) parts.push(text.slice(from));
  return parts;
}

/** Restores the original value. `secretOf` returns the configured secrets by name. */
function uncover({ shown, references, values }: Omit<Concealed, "secrets">, secretOf: (name: string) => string): unknown {
  const texts = references.map(
    ([path, parts]) => [path, parts.map((part) => (typeof part === "string" ? part : secretOf(part.secret))).join("")] as const,
  );
  return withValuesAt(withValuesAt(shown, texts), values);
}
