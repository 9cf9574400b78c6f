import { definePort, type Port } from "../grammar/port.ts";

/**
 * Whether the app can do its work now. Adapters and plugins add a check for each service that they depend on. The probes ask all of
 * them. The app itself fills this port.
 */
export interface Readiness {
  /**
   * Ask this check, too, until the returned function is called. Throws an Error if the app has a check of the same name, or if the
   * name is not 1-64 characters.
   */
  add(check: ReadinessCheck): () => void;
  /**
   * Ask all checks at the same time. Resolves with those that fail, in the order in which they were added, after at most
   * `READINESS_MS`. Never rejects: a check that throws, or does not answer in that time, fails.
   */
  failures(): Promise<readonly ReadinessFailure[]>;
}

/** One thing without which the app cannot do its work. */
export interface ReadinessCheck {
  /** The name of the checked dependency, for people: `PostgreSQL`. */
  readonly name: string;
  /**
   * Undefined if all is well; otherwise why not. Callers without a token read the answer: it must not contain an address, a secret
   * or data. They may also ask often: a check answers from what the process knows, or asks a server for all callers at once.
   */
  reason(): string | undefined | Promise<string | undefined>;
}

/** A check that fails, and why. */
export interface ReadinessFailure {
  readonly name: string;
  readonly reason: string;
}

/** Time limit of all checks, in milliseconds. Orchestrators usually give up a probe after a second. */
export const READINESS_MS = 750;

/** The port of readiness. */
export const readiness: Port<Readiness> = definePort<Readiness>("readiness");
