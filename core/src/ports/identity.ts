import { definePort, type Port } from "../grammar/port.ts";

/** The holders of tokens of the agent service (open points 1: roles). */
export interface Identity {
  /** Resolves a presented token, which may be any text. Undefined for an unknown token. Compares in constant time. */
  resolve(token: string, signal?: AbortSignal): Promise<Caller | undefined>;
  /**
   * Whether this is the instance access token, which belongs to the instance's first owner (open points 1). Compares in constant
   * time.
   */
  isInstanceToken(token: string, signal?: AbortSignal): Promise<boolean>;
  /** The user who holds the instance access token. Undefined without such a user. */
  instanceOwner(signal?: AbortSignal): Promise<string | undefined>;
}

/** The caller that a token identifies. */
export interface Caller {
  /** Absent for role `service`, which has no user. */
  readonly userId: string | undefined;
  readonly role: Role;
  /** Names the token without revealing it, for records of who did what. Absent if the identity names no tokens. */
  readonly tokenId?: string;
  /** Aborts when the token stops being valid: long connections that it opened end then. Absent if tokens never end. */
  readonly ended?: AbortSignal;
  /** When the token ends by itself, as a session does, in milliseconds since 1970. Absent for other tokens. */
  readonly expiresAt?: number;
}

/** `owner`: everything. `member`: everything except owner-only calls. `service`: a program without a user. */
export type Role = "owner" | "member" | "service";

/** The port of identity. */
export const identity: Port<Identity> = definePort<Identity>("identity");
