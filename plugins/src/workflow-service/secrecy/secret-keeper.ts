import { ports } from "@portico/core";
import type { SensitivePaths } from "../definition/sensitive-paths.ts";
import { type Concealed, conceal, uncover } from "./conceal.ts";
import type { Place } from "./json-places.ts";
import { SecretFinder } from "./secret-finder.ts";

/** What stands in a store beside a value that was concealed. */
export interface Hidden {
  /** Texts with secrets of the configuration in them, by place: their names, and what is around them. */
  readonly references?: Concealed["references"] | undefined;
  /** All else that is not shown: a `SealedContent`, sealed. */
  readonly sealed?: string | undefined;
}

/** A value as it is stored. `hidden` stands apart, so that nothing that a caller sends can look like it. */
export interface Kept<T = unknown> {
  readonly value: T;
  readonly hidden?: Hidden | undefined;
}

interface SealedContent {
  readonly values: readonly (readonly [Place, unknown])[];
  readonly secrets: readonly string[];
}

export interface Keeping {
  /** Knows what is secret; default: the secrets of the configuration. */
  readonly finder?: SecretFinder | undefined;
  /** Places that are secret whatever stands there. */
  readonly sensitive?: SensitivePaths | undefined;
}

/** Where values of a run are sealed, so that another run cannot open them. */
export function runContext(runId: string): string {
  return `workflow-run:${runId}`;
}

const NOTHING: SealedContent = { values: [], secrets: [] };

/** Keeps secrets out of what is stored: those of the configuration by reference, all others sealed. */
export class SecretKeeper {
  /** What the configuration has. */
  readonly finder = new SecretFinder();
  readonly #secrets: ReadonlyMap<string, string>;
  readonly #sealing: ports.Sealing;

  constructor(secrets: Readonly<Record<string, string>>, sealing: ports.Sealing) {
    this.#secrets = new Map(Object.entries(secrets));
    this.#sealing = sealing;
    for (const [name, text] of this.#secrets) this.finder.add({ name, text });
  }

  /**
   * A value as it may be stored; the value itself where nothing of it is secret. It is opened in the same context. Throws SealingUnavailable.
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
   * What was kept, and what was secret in it beside the configuration's. Throws NodeFailed where it cannot be opened, and SealingUnavailable.
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

  #secretOf(name: string): string {
    const text = this.#secrets.get(name);
    if (text !== undefined) return text;
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
