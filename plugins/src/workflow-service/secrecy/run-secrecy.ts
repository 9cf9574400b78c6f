import { ports } from "@portico/core";
import { type SensitivePaths, matchingPaths, textsIn, valueAt, withValuesAt } from "./sensitive-paths.ts";
import { SENSITIVE_CHARACTERS, SENSITIVE_TEXTS } from "../contracts/limits.ts";
import { type Mask, maskBeginning, MASKED, maskJson, maskBytes } from "./mask.ts";
import { SecretFinder, SHORTEST_SECRET } from "./secret-finder.ts";
import { type StoredForm, runContext, type SecretKeeper } from "./secret-keeper.ts";

/** Common words that are never treated as secrets. */
const WORDS = new Set(["true", "false", "null"]);

/** The secrets of one run: the configured secrets, and those that it learns during its execution. */
export class RunSecrecy {
  readonly #keeper: SecretKeeper;
  /** The finder of the configured secrets, until the run learns its first own secret. */
  #finder: SecretFinder;
  #texts = 0;
  #characters = 0;

  constructor(keeper: SecretKeeper) {
    this.#keeper = keeper;
    this.#finder = keeper.finder;
  }

  /** Whether the run knows no secrets. */
  get isIdle(): boolean {
    return this.#finder.isEmpty;
  }

  /** Masks the secrets in a value that is shown. */
  readonly mask: Mask = (value) => maskJson(value, this.#finder);

  /** Whether a text contains a secret. */
  readonly isIn = (text: string): boolean => this.#finder.isIn(text);

  /** Masks the secrets in the beginning of a longer text, whose end may have a part of a secret. */
  maskBeginning(text: string): string {
    return maskBeginning(text, this.#finder);
  }

  /** Masks the secrets in the bytes of a text. */
  maskBytes(source: ports.BlobSource): ports.BlobSource {
    return this.isIdle ? source : maskBytes(source as AsyncIterable<Uint8Array>, this.#finder);
  }

  /** Masks a node's output, including the values at its sensitive places. */
  show(output: unknown, sensitive?: SensitivePaths): unknown {
    if (!sensitive) return this.mask(output);
    const paths = matchingPaths(output, sensitive);
    const shown = withValuesAt(
      output,
      paths.map((path) => [path, MASKED]),
    );
    return this.mask(shown);
  }

  /** The values at these places are secret from now on, at any path. Throws NodeFailed if a run has too many secrets. */
  learn(output: unknown, sensitive: SensitivePaths): void {
    for (const path of matchingPaths(output, sensitive)) this.#add(textsIn(valueAt(output, path)));
  }

  /** The result of an expression that read a secret is also secret. Throws NodeFailed if a run has too many secrets. */
  readonly derived = (read: readonly unknown[], made: unknown): void => {
    if (this.#finder.isEmpty || !read.some((value) => maskJson(value, this.#finder) !== value)) return;
    this.#add(textsIn(made));
  };

  /**
   * Returns the form of a value that may be stored with this or another run. Without secrets, it is the value itself. Throws
   * SealingUnavailable.
   */
  toStored<T>(runId: string, value: T, sensitive?: SensitivePaths): Promise<StoredForm<T>> {
    return this.#keeper.toStored(runContext(runId), value, { finder: this.#finder, sensitive });
  }

  /**
   * Restores a stored value. Its secrets are masked from now on. Throws NodeFailed if it cannot be restored, and
   * SealingUnavailable.
   */
  async open<T>(runId: string, stored: StoredForm<T>): Promise<T> {
    if (!stored.hidden) return stored.value;
    const { value, secrets } = await this.#keeper.open(runContext(runId), stored);
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
