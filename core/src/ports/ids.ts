import { definePort, type Port } from "../port.ts";

/**
 * Randomness for names comes in by port, so that a test can foretell it. Nothing is given twice. Secrets come from `secrets`
 * instead.
 */
export interface Ids {
  /** A random UUID, version 4, lowercase. */
  uuid(): string;
  /** `prefix` and at least 96 random bits of letters and digits (`[A-Za-z0-9]`, 17 or more): `req_4fD…`. */
  id(prefix: string): string;
}

export const ids: Port<Ids> = definePort<Ids>("ids");
