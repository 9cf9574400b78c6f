import { ports } from "@portico/core";
import type { SensitivePaths } from "../definition/sensitive-paths.ts";
import { SENSITIVE_CHARACTERS, SENSITIVE_TEXTS } from "../limits.ts";
import { placesOf, textsIn, valueAt, withValuesAt } from "./json-places.ts";
import { type Mask, MASKED, maskJson } from "./mask.ts";
import { SecretFinder, SHORTEST_SECRET } from "./secret-finder.ts";
import { type Kept, runContext, type SecretKeeper } from "./secret-keeper.ts";

/** Words that come of anything. */
const WORDS = new Set(["true", "false", "null"]);

/** What one run may not show: the secrets of the configuration, and those that it came to know while it executes. */
export class RunSecrecy {
  readonly #keeper: SecretKeeper;
  /** The configuration's own finder until the run comes to know more. */
  #finder: SecretFinder;
  #texts = 0;
  #characters = 0;

  constructor(keeper: SecretKeeper) {
    this.#keeper = keeper;
    this.#finder = keeper.finder;
  }

  /** Whether nothing is secret to it, as far as it knows. */
  get isIdle(): boolean {
    return this.#finder.isEmpty;
  }

  /** Hides what is secret in whatever is shown. */
  readonly mask: Mask = (value) => maskJson(value, this.#finder);

  /** The same, of a node's output that has sensitive places. */
  show(output: unknown, sensitive?: SensitivePaths): unknown {
    if (!sensitive) return this.mask(output);
    const places = placesOf(output, sensitive);
    const shown = withValuesAt(
      output,
      places.map((place) => [place, MASKED]),
    );
    return this.mask(shown);
  }

  /** What stands at these places is secret from now on, wherever it turns up. Throws NodeFailed where a run knows too much. */
  learn(output: unknown, sensitive: SensitivePaths): void {
    for (const place of placesOf(output, sensitive)) this.#add(textsIn(valueAt(output, place)));
  }

  /** What an expression made of something secret is secret, too. Throws NodeFailed where a run knows too much. */
  readonly derived = (read: readonly unknown[], made: unknown): void => {
    if (this.#finder.isEmpty || !read.some((value) => maskJson(value, this.#finder) !== value)) return;
    this.#add(textsIn(made));
  };

  /**
   * A value as it may be stored with what a run remembers, this one or another; the same one where nothing of it is secret. Throws
   * SealingUnavailable.
   */
  keep<T>(runId: string, value: T, sensitive?: SensitivePaths): Promise<Kept<T>> {
    return this.#keeper.keep(runContext(runId), value, { finder: this.#finder, sensitive });
  }

  /**
   * What a run has stored, made whole; what is secret in it is masked from now on. Throws NodeFailed where it cannot be, and
   * SealingUnavailable.
   */
  async open<T>(runId: string, kept: Kept<T>): Promise<T> {
    if (!kept.hidden) return kept.value;
    const { value, secrets } = await this.#keeper.open(runContext(runId), kept);
    this.#add(secrets);
    return value;
  }

  #add(texts: Iterable<string>): void {
    for (const text of texts) {
      if (text.length < SHORTEST_SECRET || WORDS.has(text) || this.#finder.has(text)) continue;
      this.#texts++;
      this.#characters += text.length;
      if (this.#texts > SENSITIVE_TEXTS || this.#characters > SENSITIVE_CHARACTERS) {
        throw new ports.NodeFailed("too_many_secrets", "The run has more sensitive texts than it can look for", {
          retryable: false,
        });
      }
      if (this.#finder === this.#keeper.finder) this.#finder = new SecretFinder(this.#keeper.finder);
      this.#finder.add({ text });
    }
  }
}
