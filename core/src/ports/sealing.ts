import { definePort, type Port } from "../grammar/port.ts";

/**
 * Encrypts texts, so that stores do not hold them in plain form. They are sealed with the instance's key, and only the same
 * instance can open them. A context, such as `workflow-run:ID`, separates them: a text that was sealed in one context cannot be
 * opened in another. Every function throws TypeError for a context that is not 1-512 well-formed characters.
 */
export interface Sealing {
  /**
   * The sealed text: ASCII without spaces and quotes, different at each call. Its length reveals the length of the text. Throws
   * TypeError for a text that is not well-formed Unicode, and SealingUnavailable.
   */
  seal(context: string, text: string): Promise<string>;
  /** Opens a text that was sealed in this context. Throws SealBroken for any other text, and SealingUnavailable. */
  open(context: string, sealed: string): Promise<string>;
  /**
   * Whether `seal` would use another key now, because the instance's key was changed. A record that lives long is then sealed again, before
   * the earlier key is taken away. False for texts that were not sealed. Throws SealingUnavailable.
   */
  isOutdated(sealed: string): Promise<boolean>;
}

/** Thrown by `open` for a text that this instance did not seal in this context. */
export class SealBroken extends Error {
  override readonly name = "SealBroken";
  /** `other-key`: sealed with a key that the instance does not have. `damaged`: not a sealed text of this context. */
  readonly reason: "other-key" | "damaged";

  constructor(reason: SealBroken["reason"], options?: ErrorOptions) {
    super(reason === "other-key" ? "It was sealed under another instance key" : "It was not sealed here, or is damaged", options);
    this.reason = reason;
  }
}

/**
 * Thrown when the instance's key is unavailable, and by `open` when the key is not the one that the instance's values were sealed
 * with.
 */
export class SealingUnavailable extends Error {
  override readonly name = "SealingUnavailable";
}

/** The port of sealing. */
export const sealing: Port<Sealing> = definePort<Sealing>("sealing");
