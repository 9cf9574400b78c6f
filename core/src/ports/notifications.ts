import { definePort, type Port } from "../grammar/port.ts";
import type { Write } from "./records.ts";

/** What an instance tells its operators. `schedule.failing`, `decision.waiting` and `limit.near` are states; `run.failed` is an event. */
export const NOTIFICATION_KINDS = ["schedule.failing", "run.failed", "decision.waiting", "limit.near"] as const;

/** One kind of notifications. */
export type NotificationKind = (typeof NOTIFICATION_KINDS)[number];

/** Tells the operators of an instance what needs a person. An instance that tells nothing has no adapter of this port. */
export interface Notifications {
  /**
   * Define a source of states. Call it once per name, before `ready` of the engine; TypeError otherwise. A source whose kind is switched
   * off is never looked at.
   */
  define(source: NotificationSource): void;
  /**
   * The writes that tell of an event. They belong into the commit with which it happens, so that it is told exactly if it has happened.
   * Empty if its kind is switched off. The same kind and id are one notification.
   */
  writes(kind: NotificationKind, subject: NotifiedSubject): readonly Write[];
}

/** Where states come from. */
export interface NotificationSource {
  /** Unique in an app; letters, digits, `_`, `-`. */
  readonly name: string;
  readonly kind: NotificationKind;
  /**
   * The present states that a person should know of, the most important first. It is called often, in one process at a time. A state is
   * told when it is found first, and again only after a look that did not find it.
   */
  look(thresholds: NotificationThresholds, signal: AbortSignal): Promise<readonly NotifiedState[]>;
}

/** From when on a state is told. */
export interface NotificationThresholds {
  /** Failures of a schedule in a row. */
  readonly scheduleFailures: number;
  /** How long a decision waits, in milliseconds. */
  readonly decisionMs: number;
  /** The part of a limit that is used, above 0 and at most 1. */
  readonly limitShare: number;
}

/** What a notification is about. */
export interface NotifiedSubject {
  /** Unique in its source, and among the events of its kind. */
  readonly id: string;
  /** Ids, names, codes and numbers. Never a prompt, a message, a body or a credential. */
  readonly data: Readonly<Record<string, string | number>>;
  /** The page of the console that shows it: the segments of its address. */
  readonly page: readonly string[];
}

/** A state that a person should know of. */
export interface NotifiedState extends NotifiedSubject {
  /** It is told once until this time, in milliseconds since 1970, also if looks in between do not find it. */
  readonly onceUntil?: number | undefined;
}

/** The port of notifications. */
export const notifications: Port<Notifications> = definePort<Notifications>("notifications");
