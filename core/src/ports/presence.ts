import { definePort, type Port } from "../grammar/port.ts";

/**
 * Tells which process holds a client's connection. A process registers the sockets that it holds. Its entries disappear with it:
 * they have a lifetime, which the process extends while it lives.
 */
export interface Presence {
  /** The ID of this process in the registry. Every opening has a new one. */
  readonly process: string;
  /**
   * Register a socket of this process, with facts that others need to know of it. This process finds it at once, and other
   * processes shortly after. While the registry is unavailable, other processes do not find it; the entry appears when the registry
   * is available again. A second call replaces the facts. Does nothing after closing. Throws TypeError for facts that are not a
   * JSON object.
   */
  hold(socketId: string, facts: object): void;
  /** Remove a socket of this process. Does nothing for others. */
  release(socketId: string): void;
  /**
   * Where a socket is. Undefined if no living process holds it. A process that died is still found until the lifetime of its
   * entries ends. Throws PresenceUnavailable if this process does not hold the socket and the registry is unavailable.
   */
  locate(socketId: string): Promise<LocatedSocket | undefined>;
}

/** A socket of this process or another one. */
export interface LocatedSocket {
  /** `Presence.process` of the process that holds it. */
  readonly process: string;
  /** As given to `hold`, as JSON represents them. */
  readonly facts: Readonly<Record<string, unknown>>;
}

/** The registry cannot be read now. */
export class PresenceUnavailable extends Error {
  override readonly name = "PresenceUnavailable";
}

/** The port of presence. */
export const presence: Port<Presence> = definePort<Presence>("presence");
