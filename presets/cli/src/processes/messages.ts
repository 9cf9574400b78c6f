import type { MetricsSnapshot } from "@portico/presets/platform/proxy-process";
import type { ConfigFile } from "../config-file.ts";

/** Set in the environment of a further process of the proxy, with its number. */
export const NUMBER_VARIABLE = "PORTICO_PROXY_PROCESS";

/** What a further process of the proxy needs to serve the same as the instance. */
export interface ProcessStart {
  /** From 2 on: the instance itself is the first. */
  readonly number: number;
  /** It replaces a process that has ended: the instance may have read its secrets again since its start. */
  readonly isReplacement: boolean;
  /** How many processes serve the proxy. */
  readonly count: number;
  /** Where the proxy listens. */
  readonly port: number;
  /** Surface name to URL, of the instance. */
  readonly urls: Readonly<Record<string, string>>;
  readonly hasConsole: boolean;
  /** The configuration file as the instance read it. Undefined if it has none, or contains code: then the process reads it itself. */
  readonly configFile: ConfigFile | undefined;
  /** Ids of the providers that were found on this machine. */
  readonly found: readonly string[];
}

/** Messages from the instance to a further process of the proxy. */
export type ToProcess =
  | { readonly kind: "start"; readonly start: ProcessStart }
  | { readonly kind: "snapshot" }
  | { readonly kind: "hangup" }
  | { readonly kind: "stop"; readonly graceMs: number };

/** Messages from a further process of the proxy to the instance. */
export type FromProcess =
  | { readonly kind: "ready" }
  | { readonly kind: "failed"; readonly message: string; readonly exitCode: number }
  | { readonly kind: "snapshot"; readonly snapshot: MetricsSnapshot }
  | { readonly kind: "lines"; readonly lines: readonly string[] };
