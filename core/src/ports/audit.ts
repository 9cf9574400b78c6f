import { definePort, type Port } from "../grammar/port.ts";
import type { Role } from "./identity.ts";
import type { Write } from "./records.ts";

/**
 * An append-only record of who changed what: tokens, grants, secrets, configurations, decisions. No call edits or removes an
 * entry; adapters remove entries only when they have expired. An entry contains names and codes, and never a secret, a prompt or
 * a body.
 */
export interface Audit {
  /**
   * Record an action that has succeeded once this resolves, together with the writes that are the action: all are durable when
   * this resolves, or none. `writes` are for the port `records` of the same app. Throws as `records.batch` does. An action
   * without writes, such as a signature, is recorded before its result is used.
   */
  record(fact: AuditFact, writes?: readonly Write[]): Promise<void>;
  /**
   * Run an action that other stores keep: an entry `begun` is durable before `run` is called, and an entry `done` or `failed`
   * follows. If the process ends in between, `begun` stays alone: whether the action took effect is then unknown. Resolves and
   * rejects as `run` does. Throws the error of the store, and does not call `run`, if `begun` cannot be recorded.
   */
  attempt<T>(fact: AuditFact, run: () => Promise<T>): Promise<T>;
  /** Entries, the newest first. Throws AuditCursorInvalid for an `after` that is not `next` of an earlier page. */
  read(query?: AuditQuery): Promise<AuditPage>;
}

/** What happened, and who did it. */
export interface AuditFact {
  /** The kind of object and what was done with it, in lowercase words: `safe-token.issue`. */
  readonly action: string;
  /** The id of the object. Absent if the action concerns all of them. */
  readonly object?: string | undefined;
  /** How many objects, if there may be several. */
  readonly count?: number | undefined;
  readonly who: AuditActor;
}

/** Who did something, and from where. */
export interface AuditActor {
  /**
   * The role of the caller's token. Besides: `workflow` for the workflow service's token, `grant` for an execution grant, `link`
   * for an approval link of a gate or the address of a callback, `agent` for an agent on behalf of its user, `command` for the command line, `instance` for the
   * service itself, `unknown` for callers without a valid credential.
   */
  readonly role: Role | "workflow" | "grant" | "link" | "agent" | "command" | "instance" | "unknown";
  readonly userId?: string | undefined;
  /** Names the credential without revealing it. */
  readonly tokenId?: string | undefined;
  /** Where the connection came from. */
  readonly address?: string | undefined;
  /** The header `X-Forwarded-For`, for adapters that know which proxies to believe. It is not recorded itself. */
  readonly forwardedFor?: string | undefined;
}

/** One entry of the record. */
export interface AuditEntry {
  readonly id: string;
  /** ISO 8601. */
  readonly at: string;
  readonly action: string;
  readonly object?: string | undefined;
  readonly count?: number | undefined;
  /** `begun` is followed by another entry, with `of`, unless the process ended in between. */
  readonly outcome: "done" | "begun" | "failed";
  /** The code of the error of a failed action. */
  readonly error?: string | undefined;
  /** The id of the entry `begun` whose end this is. */
  readonly of?: string | undefined;
  readonly who: Omit<AuditActor, "forwardedFor">;
}

/** Which entries to read. */
export interface AuditQuery {
  /** Milliseconds since 1970. Entries from this time on. */
  readonly since?: number | undefined;
  /** Entries before this time. */
  readonly until?: number | undefined;
  readonly action?: string | undefined;
  /** Entries of this user's actions. */
  readonly userId?: string | undefined;
  /** A part of the object's id. */
  readonly object?: string | undefined;
  /** The address of the callers, or the beginning of it: `192.0.2.`. */
  readonly address?: string | undefined;
  /** 1-1000; default 100. */
  readonly limit?: number | undefined;
  /** `next` of the previous page of the same query. */
  readonly after?: string | undefined;
}

/** One page of entries. */
export interface AuditPage {
  readonly items: readonly AuditEntry[];
  /** Set if there may be more entries; a page with `next` may have few entries, or none. */
  readonly next: string | undefined;
}

/** Thrown by `read` for an `after` that is not `next` of an earlier page. */
export class AuditCursorInvalid extends Error {
  override readonly name = "AuditCursorInvalid";
}

/** The port of the audit. Areas need it with `optional`: without it, they record nothing. */
export const audit: Port<Audit> = definePort<Audit>("audit");
