import { definePort, type Port } from "../grammar/port.ts";

/** Random IDs are a port, so that a test can predict them. Every ID is unique. For secrets, use `secrets`. */
export interface Ids {
  /** A random UUID, version 4, lowercase. */
  uuid(): string;
  /** `prefix` and at least 96 random bits of letters and digits (`[A-Za-z0-9]`, 17 or more): `req_4fD…`. */
  id(prefix: string): string;
}

/** The port of ids. */
export const ids: Port<Ids> = definePort<Ids>("ids");
