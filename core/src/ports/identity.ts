import { definePort, type Port } from "../port.ts";

/** Who holds a token of the agent service (open points 1: roles). */
export interface Identity {
  /** Resolves a presented token, whatever a stranger sent; undefined when nobody holds it. Compares in constant time. */
  resolve(token: string, signal?: AbortSignal): Promise<Caller | undefined>;
  /**
   * Whether this is the instance access token, which the instance's first owner holds (open points 1). Compares in constant time.
   */
  isInstanceToken(token: string, signal?: AbortSignal): Promise<boolean>;
  /** The user who holds the instance access token; undefined where nobody does. */
  instanceOwner(signal?: AbortSignal): Promise<string | undefined>;
}

export interface Caller {
  /** Absent for role `service`, which resolves to no user. */
  readonly userId: string | undefined;
  readonly role: Role;
}

/** `owner`: everything; `member`: everything but owner-only calls; `service`: a program that is no user. */
export type Role = "owner" | "member" | "service";

export const identity: Port<Identity> = definePort<Identity>("identity");
