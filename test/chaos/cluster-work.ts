import type { ports } from "@portico/core";

/** The actions of a work, in order. */
export type Deed =
  | { readonly is: "step"; readonly repeatable: boolean; readonly ms: number }
  | { readonly is: "sleep"; readonly ms: number }
  | { readonly is: "wait"; readonly name: string; readonly ms?: number | undefined };

/** The input of a work. */
export interface Script {
  readonly deeds: readonly Deed[];
}

/** The output of a work. */
export interface Told {
  /** The execution that ended it. */
  readonly execution: string;
  readonly answers: readonly unknown[];
}

/** The kinds that every process defines. */
export const KINDS = {
  "resumed-here": { onInterrupted: "resume", concurrencyPerKey: 1, concurrency: 4, begins: "here" },
  "resumed-anywhere": { onInterrupted: "resume", concurrencyPerKey: 2, concurrency: 4, begins: "anywhere" },
  "closed-here": { onInterrupted: "close", concurrencyPerKey: 2, concurrency: 4, begins: "here" },
  "closed-anywhere": { onInterrupted: "close", concurrencyPerKey: 1, concurrency: 4, begins: "anywhere" },
} as const satisfies Record<string, ports.WorkOptions<Script>>;

/** The name of a kind. */
export type KindName = keyof typeof KINDS;

/** The requests to a process. */
export type Request =
  | { readonly is: "start"; readonly kind: KindName; readonly id: string; readonly key: string; readonly script: Script }
  | { readonly is: "signal"; readonly id: string; readonly name: string; readonly payload: number }
  | { readonly is: "cancel"; readonly id: string }
  | { readonly is: "status"; readonly id: string }
  | { readonly is: "record"; readonly collection: "accepted" | "held"; readonly id: string }
  | { readonly is: "close" };

/** The answer of a process: the result of the engine's method, or the name of its error. */
export type Answer = { readonly answer: unknown } | { readonly error: string };

/** The stores of a process, and its name. */
export interface WorkPlace {
  /** Names one process from its start to its end. */
  readonly life: string;
  readonly postgresUrl: string;
  readonly schema: string;
  readonly redisUrl: string;
  readonly prefix: string;
  readonly leaseMs: number;
  /** A file to which all processes append what happened. */
  readonly happened: string;
}

/** An event in a process, written when it happens. */
export type Happening = { readonly life: string; readonly at: number } & (
  | { readonly is: "began" | "left"; readonly id: string; readonly execution: string }
  | { readonly is: "ran"; readonly id: string; readonly step: string }
  /** A step, sleep or wait was answered. */
  | { readonly is: "passed"; readonly id: string; readonly deed: number; readonly answer: unknown }
  | { readonly is: "closed"; readonly id: string }
  | { readonly is: "chore began" | "chore ended" }
  /** The process lost its lease. */
  | { readonly is: "lost" }
  | { readonly is: "error"; readonly message: string }
);

/** An event as its process writes it. */
export type ToldHappening = Happening extends infer Each ? (Each extends Happening ? Omit<Each, "life" | "at"> : never) : never;
