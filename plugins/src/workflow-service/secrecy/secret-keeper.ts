import { ports } from "@portico/core";
import type { SensitivePaths } from "../definition/sensitive-paths.ts";
import { type Concealed, conceal, uncover } from "./conceal.ts";
import type { Place } from "./json-places.ts";
import { SecretFinder } from "./secret-finder.ts";

/** The data that is stored with a concealed value. */
export interface Hidden {
  /** Texts that contain configured secrets, by place: the names of the secrets, and the literal parts around them. */
  readonly references?: Concealed["references"] | undefined;
  /** All other hidden values: a sealed `SealedContent`. */
  readonly sealed?: string | undefined;
}

/** The stored form of a value. `hidden` is a separate member, so that data of callers cannot imitate it. */
export interface Kept<T = unknown> {
  readonly value: T;
  readonly hidden?: Hidden | undefined;
}

interface SealedContent {
  readonly values: readonly (readonly [Place, unknown])[];
  readonly secrets: readonly string[];
}

export interface Keeping {
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
  async keep<T>(context: string, value: T, { finder = this.finder, sensitive }: Keeping = {}): Promise<Kept<T>> {
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
    { value, hidden }: Kept<T>,
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
